from __future__ import annotations

import pytest

from storage.fusion import fuse, merge
from storage.knowledge import Fusion
from storage.models import Hit, Passage


def hit(name: str, score: float, cosine: float | None = None) -> Hit:
    return Hit(Passage(name, 1, 1, "w", "channel:c", name, 1, 0, 1, (), None, "", name), score, cosine)


def test_each_side_is_stretched_to_0_to_1_and_weighted() -> None:
    keyword, dense = {"a": 12.0, "b": 7.0, "c": 2.0}, {"b": 0.9, "d": 0.5}
    assert fuse(keyword, dense, fusion=Fusion.RELATIVE, dense_weight=0.75) == pytest.approx(
        {"a": 0.25, "b": 0.125 + 0.75, "c": 0.0, "d": 0.0}
    )


def test_one_side_alone_keeps_its_order_whatever_the_weight() -> None:
    alone = {"a": 12.0, "b": 7.0, "c": 2.0}
    for weight in (0.0, 0.5, 1.0):
        assert fuse(alone, {}, fusion=Fusion.RELATIVE, dense_weight=weight) == {"a": 1.0, "b": 0.5, "c": 0.0}
        assert fuse({}, alone, fusion=Fusion.RELATIVE, dense_weight=weight) == {"a": 1.0, "b": 0.5, "c": 0.0}
    assert fuse({}, {}, fusion=Fusion.RELATIVE, dense_weight=0.5) == {}


def test_equal_scores_and_a_single_find_are_full_marks() -> None:
    assert fuse({"a": 3.0}, {}, fusion=Fusion.RELATIVE, dense_weight=0.5) == {"a": 1.0}
    both = fuse({"a": 3.0, "b": 3.0}, {"a": -0.2}, fusion=Fusion.RELATIVE, dense_weight=0.5)
    assert both == {"a": 1.0, "b": 0.5}


def test_reciprocal_rank_looks_at_places_alone() -> None:
    fused = fuse({"a": 900.0, "b": 2.0}, {"b": 0.3, "a": 0.2}, fusion=Fusion.RRF, dense_weight=0.9)
    assert fused["a"] == pytest.approx(fused["b"])
    assert fused["a"] == pytest.approx((1 + 61 / 62) / 2)
    tied = fuse({"a": 2.0, "b": 2.0, "c": 1.0}, {}, fusion=Fusion.RRF, dense_weight=0.5)
    assert tied == pytest.approx({"a": 1.0, "b": 1.0, "c": 61 / 63})


def test_what_several_phrasings_find_comes_first() -> None:
    merged = merge([[hit("a", 1.0), hit("b", 0.8, 0.7)], [hit("c", 1.0), hit("b", 0.9)]])
    assert [found.passage.name for found in merged] == ["b", "a", "c"]
    assert [found.score for found in merged] == pytest.approx([0.85, 0.5, 0.5])
    assert merged[0].cosine == 0.7  # of the first phrasing that found it


def test_a_phrasing_that_found_nothing_weighs_nothing() -> None:
    assert merge([[], [hit("a", 0.6)], []]) == [hit("a", 0.6)]
    assert merge([]) == [] and merge([[]]) == []


def test_merging_stops_at_the_limit() -> None:
    assert [found.passage.name for found in merge([[hit("a", 1), hit("b", 0.5), hit("c", 0)]], limit=2)] == ["a", "b"]
