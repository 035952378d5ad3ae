"""Whether the passages answer the question, and whether it must be asked back which document is meant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from agent.outcomes import Option
from agent.quoting import coverage, sentences, term_weights, terms_of
from agent.shapes import asked_shape, holds
from storage.models import Hit
from storage.terms import content_terms, indexed_text

NOT_FOUND_THRESHOLD = 0.5  # the coefficients are fitted so that the chosen operating point lies here
_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Grade:
    """`confidence` is the probability that the first passages hold the answer."""

    found: bool
    confidence: float


def grade(question: str, hits: Sequence[Hit], threshold: float = NOT_FOUND_THRESHOLD) -> Grade:
    if not hits:
        return Grade(False, 0.0)
    candidates = hits[:_CANDIDATES]
    weights = term_weights(question, [indexed_text(hit.passage) for hit in candidates])
    share = max(coverage(weights, terms_of(indexed_text(hit.passage))) for hit in candidates[:3])
    cosine = candidates[0].cosine
    z = 6.0 * (share - 0.6) if cosine is None else 4.0 * (share - 0.6) + 4.0 * (cosine - 0.45)
    confidence = 1 / (1 + math.exp(-z))
    return Grade(confidence >= threshold, confidence)


def ambiguous(question: str, hits: Sequence[Hit], limit: int = 5) -> tuple[Option, ...]:
    """The documents to choose from where several hold the fact and the question doesn't tell them apart, else ()."""
    wanted = frozenset(content_terms(question))
    if not wanted:
        return ()
    firsts: dict[str, Hit] = {}
    for hit in hits:
        firsts.setdefault(hit.passage.document, hit)
    shares = {document: _best_share(question, wanted, hit) for document, hit in firsts.items()}
    top = max(shares.values(), default=0.0)
    rivals = [firsts[document] for document, share in shares.items() if share >= 0.9 * top and share >= 0.6]
    if len(rivals) < 2 or any(wanted & terms_of(PurePath(hit.passage.name).stem) for hit in rivals):
        return ()
    return tuple(
        Option(label=PurePath(hit.passage.name).stem, document=hit.passage.document, version=hit.passage.version)
        for hit in rivals[:limit]
    )


def _best_share(question: str, wanted: frozenset[str], hit: Hit) -> float:
    shape = asked_shape(question)
    text = hit.passage.text
    return max(
        (
            len(wanted & terms_of(text[start:end])) / len(wanted)
            for start, end in sentences(text)
            if holds(shape, text[start:end], question)
        ),
        default=0.0,
    )
