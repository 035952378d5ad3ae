"""What every knowledge store does alike with passages: their order, their names for filters, their cosines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from storage.errors import EmbeddingChanged
from storage.knowledge import Vector
from storage.models import Version

MOST_TERMS = 400  # of one question

Item = TypeVar("Item")
Place = tuple[str, int, int]


def key(version: Version) -> str:
    """A version as one text, for filters."""
    return f"{version.document}.{version.version}"


def version_of(key: str) -> Version:
    document, version = key.rsplit(".", 1)
    return Version(document, int(version))


def place(id: str) -> Place:
    """Where the passage of this id stands, for the order among equal scores."""
    document, version, number = id.rsplit(".", 2)
    return document, int(version), int(number)


def ranked(scores: Mapping[str, float]) -> dict[str, float]:
    """Ids with their scores, the best first."""
    return dict(sorted(scores.items(), key=lambda found: (-found[1], place(found[0]))))


def question_terms(terms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(terms))[:MOST_TERMS]


def portions(values: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def cosine(one: Vector | None, other: Vector | None) -> float | None:
    if one is None or other is None:
        return None
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else None


def dimension_changed(given: Collection[int], stored: int) -> EmbeddingChanged:
    sizes = ", ".join(map(str, sorted(given)))
    return EmbeddingChanged(
        f"Vectors of {sizes} dimensions don't fit the stored ones of {stored}: set EMBEDDING_MODEL back, "
        "or run `python -m bot reembed` to embed every passage anew."
    )
