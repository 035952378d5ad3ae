"""Several rankings as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from storage.knowledge import Fusion
from storage.models import Hit

RRF_K = 60

Key = TypeVar("Key", bound=Hashable)


def fuse(
    keyword: Mapping[Key, float], dense: Mapping[Key, float], *, fusion: Fusion, dense_weight: float
) -> dict[Key, float]:
    """Scores from 0 to 1 for everything that either side found, in no order of its own.

    Each side is a mapping of its candidates to its own scores, the best first.
    """
    scale = _reciprocal if fusion is Fusion.RRF else _relative
    if not dense or not keyword:
        return scale(dense or keyword)
    fused: defaultdict[Key, float] = defaultdict(float)
    weights = (0.5, 0.5) if fusion is Fusion.RRF else (1 - dense_weight, dense_weight)
    for side, weight in zip((keyword, dense), weights, strict=True):
        for key, score in scale(side).items():
            fused[key] += weight * score
    return dict(fused)


def merge(rankings: Sequence[Sequence[Hit]], limit: int | None = None) -> list[Hit]:
    """What several phrasings of one question found, as one ranking: found by many and found high come first."""
    scores: defaultdict[str, float] = defaultdict(float)
    hits: dict[str, Hit] = {}
    found = [ranking for ranking in rankings if ranking]
    for ranking in found:
        for hit in ranking:
            scores[hit.passage.id] += hit.score / len(found)
            hits.setdefault(hit.passage.id, hit)
    best = sorted(hits, key=lambda id: -scores[id])  # equal scores stay in the order of the first ranking
    return [replace(hits[id], score=scores[id]) for id in best[:limit]]


def _relative(side: Mapping[Key, float]) -> dict[Key, float]:
    if not side:
        return {}
    lowest, highest = min(side.values()), max(side.values())
    if highest <= lowest:
        return dict.fromkeys(side, 1.0)
    return {key: (score - lowest) / (highest - lowest) for key, score in side.items()}


def _reciprocal(side: Mapping[Key, float]) -> dict[Key, float]:
    """1 for the first place. Equal scores share the better place."""
    places: dict[float, int] = {}
    for place, score in enumerate(side.values(), start=1):
        places.setdefault(score, place)
    return {key: (RRF_K + 1) / (RRF_K + places[score]) for key, score in side.items()}
