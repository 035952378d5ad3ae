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


def cosines(one: Vector | None, others: Sequence[Vector | None]) -> list[float | None]:
    """Of each of the others to this one; None where there is no vector, or one without a direction."""
    there = [at for at, other in enumerate(others) if other is not None]
    near: list[float | None] = [None] * len(others)
    if one is not None and there:
        all_of_them = np.stack([other for other in others if other is not None])
        lengths = np.linalg.norm(all_of_them, axis=1) * np.linalg.norm(one)
        for at, product, length in zip(there, (all_of_them @ one).tolist(), lengths.tolist(), strict=True):
            near[at] = product / length if length else None
    return near


def dimension_changed(given: Collection[int], stored: int) -> EmbeddingChanged:
    sizes = ", ".join(map(str, sorted(given)))
    return EmbeddingChanged(
        f"Vectors of {sizes} dimensions don't fit the stored ones of {stored}: set EMBEDDING_MODEL back, "
        "or run `python -m bot reembed` to embed every passage anew."
    )
