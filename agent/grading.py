"""Whether the passages answer the question, and whether it must be asked back which document is meant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from agent.ambiguity import ambiguous
from agent.quoting import coverage, rough_weights, sentences, terms_of
from agent.shapes import asked_shape, has_ideographs, holds
from storage.models import Hit
from storage.terms import indexed_text

__all__ = ["NOT_FOUND_THRESHOLD", "Grade", "ambiguous", "grade"]

NOT_FOUND_THRESHOLD = 0.5  # the coefficients are fitted so that the chosen operating point lies here
_CANDIDATES = 100
_FIRST = 3  # passages that may hold the answer


@dataclass(frozen=True, slots=True)
class Grade:
    """`confidence` is the probability that the first passages hold the answer."""

    found: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class Signals:
    """What tells an answer from its neighbours. Each share is of the question's terms, weighted by their rarity."""

    passage: float  # the share that stands in the first passage
    sentence: float  # in the best sentence of the first three, what stands in the one before it counting half
    fitting: float  # the same, of sentences that hold the kind of value that is asked for
    terms: float  # the logarithm of how many terms the question has
    size: float  # the logarithm of how many passages there were to choose from: a small choice has no near misses
    cosine: float | None  # the best of the first three


@dataclass(frozen=True, slots=True)
class _Coefficients:
    passage: float
    sentence: float
    fitting: float
    terms: float
    size: float
    cosine: float
    constant: float


# Logistic regressions over questions with their passage there and taken away; `python -m bench.answers` checks them
_WITH_COSINE = _Coefficients(2.9, 3.05, 0.75, 0.65, -0.25, 4.8, -6.25)
_WITHOUT_COSINE = _Coefficients(3.0, 2.6, 0.8, 1.2, -0.25, 0.0, -4.75)
_IDEOGRAPHS = _Coefficients(6.8, 3.8, 0.9, 1.3, -0.1, 0.0, -9.35)


def grade(question: str, hits: Sequence[Hit], threshold: float = NOT_FOUND_THRESHOLD) -> Grade:
    signals = signals_of(question, hits)
    if signals is None:
        return Grade(False, 0.0)
    by = _coefficients(question, signals)
    evidence = by.constant + by.passage * signals.passage + by.sentence * signals.sentence
    evidence += by.fitting * signals.fitting + by.terms * signals.terms + by.size * signals.size
    evidence += by.cosine * (signals.cosine or 0.0)
    confidence = 1 / (1 + math.exp(-evidence))
    return Grade(confidence >= threshold, confidence)


def _coefficients(question: str, signals: Signals) -> _Coefficients:
    if signals.cosine is not None:
        return _WITH_COSINE
    return _IDEOGRAPHS if has_ideographs(question) else _WITHOUT_COSINE


def signals_of(question: str, hits: Sequence[Hit]) -> Signals | None:
    """None where there is nothing to judge."""
    weights = rough_weights(question, [indexed_text(hit.passage) for hit in hits[:_CANDIDATES]])
    if not hits or not weights:
        return None
    first = hits[:_FIRST]
    lines = [(line, share) for hit in first for line, share in _shares(weights, hit)]
    shape = asked_shape(question)
    cosines = [hit.cosine for hit in first if hit.cosine is not None]
    return Signals(
        passage=coverage(weights, _all_terms(first[0])),
        sentence=max((share for _, share in lines), default=0.0),
        fitting=max((share for line, share in lines if holds(shape, line, question)), default=0.0),
        terms=math.log1p(len(weights)),
        size=math.log1p(min(len(hits), _CANDIDATES)),
        cosine=max(cosines, default=None),
    )


def _all_terms(hit: Hit) -> frozenset[str]:
    """The terms of a passage with its headings and the name of its document."""
    return terms_of(indexed_text(hit.passage)) | terms_of(PurePath(hit.passage.name).stem)


def _shares(weights: Mapping[str, float], hit: Hit) -> list[tuple[str, float]]:
    """Each sentence with its share of the question's terms."""
    text = hit.passage.text
    around = terms_of(" ".join((*hit.passage.headings, PurePath(hit.passage.name).stem)))
    lines = [text[start:end] for start, end in sentences(text)]
    terms = [around, *(terms_of(line) for line in lines)]
    shares = []
    for line, (before, own) in zip(lines, pairwise(terms), strict=True):
        alone = coverage(weights, own)
        shares.append((line, alone + (coverage(weights, own | before | around) - alone) / 2))
    return shares
