"""Several documents that hold the same kind of fact, and a question that doesn't tell them apart: which one is meant?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from agent.outcomes import Option
from agent.quoting import Line, coverage, scored_lines, term_weights, terms_of
from agent.shapes import Shape, asked_shape, holds, names, numbers
from storage.models import Hit
from storage.terms import STOP_WORDS, content_terms, indexed_text

_CONSIDERED = 20  # passages
_SHARE = 0.62  # of the question's terms that a fact must hold
_NEARLY = 0.86  # of the best document's share, for another to be as good
_ALIKE = 0.3  # how like each other two sentences are that say the same kind of thing, where a value is asked for
_ALIKE_IN_WORDS = 0.45  # the same, where any answer would do
_COPY = 0.8  # how like each other two sentences are that say the same thing


@dataclass(frozen=True, slots=True)
class _Fact:
    """The sentence of a document that answers, and how well it and its document fit the question."""

    line: Line
    share: float
    known: frozenset[str]  # the terms of the document, as far as its passages were found
    context: frozenset[str]  # the terms of the sentence, the one before it, its headings

    @property
    def hit(self) -> Hit:
        return self.line.hit


def ambiguous(question: str, hits: Sequence[Hit], limit: int = 5) -> tuple[Option, ...]:
    """The documents to choose from where several hold the fact and the question doesn't tell them apart, else ()."""
    hits = hits[:_CONSIDERED]
    if len({hit.passage.document for hit in hits}) < 2 or not content_terms(question):
        return ()
    weights = term_weights(question, [indexed_text(hit.passage) for hit in hits])
    rivals = _rivals(question, weights, _facts(question, weights, hits))
    if len(rivals) < 2 or not _differ(rivals):
        return ()
    return _options(rivals[:limit])


def _facts(question: str, weights: Mapping[str, float], hits: Sequence[Hit]) -> list[_Fact]:
    """The best sentence of each document, the best document first."""
    shape = asked_shape(question)
    best: dict[str, _Fact] = {}
    for line in scored_lines(question, hits):
        if not holds(shape, line.text, question):
            continue
        document = line.hit.passage.document
        context = _context(line)
        fact = _Fact(line, coverage(weights, context), frozenset(), context)
        if document not in best or (fact.share, line.score) > (best[document].share, best[document].line.score):
            best[document] = fact
    known = {document: _known(document, hits) for document in best}
    facts = [replace(fact, known=known[document]) for document, fact in best.items()]
    return sorted(facts, key=lambda fact: -fact.share)


def _context(line: Line) -> frozenset[str]:
    passage = line.hit.passage
    return terms_of(line.text) | line.before | terms_of(" ".join(passage.headings))


def _known(document: str, hits: Sequence[Hit]) -> frozenset[str]:
    passages = [hit.passage for hit in hits if hit.passage.document == document]
    name = terms_of(PurePath(passages[0].name).stem)
    return name.union(*(terms_of(indexed_text(passage)) for passage in passages))


def _rivals(question: str, weights: Mapping[str, float], facts: Sequence[_Fact]) -> list[_Fact]:
    """The documents that answer as well as the best, none of which the question names."""
    if not facts or facts[0].share < _SHARE:
        return []
    known = {fact.hit.passage.document: coverage(weights, fact.known) for fact in facts}
    most = max(known.values())
    wanted = asked_shape(question)
    likeness = _ALIKE_IN_WORDS if wanted is Shape.ANY else _ALIKE
    first = next(fact for fact in facts if known[fact.hit.passage.document] == most)
    if first.share < _SHARE:
        return []
    return [
        fact
        for fact in facts
        if fact.share >= max(_SHARE, _NEARLY * facts[0].share)
        and known[fact.hit.passage.document] >= most - 0.02
        and (fact is first or _likeness(first, fact, question) >= likeness)
    ]


def _likeness(one: _Fact, other: _Fact, question: str) -> float:
    """How like each other two sentences are, their values and names left out."""
    first, second = (_frame(fact.line.text) for fact in (one, other))
    asked = frozenset(content_terms(question))
    first, second = first | (asked & one.context), second | (asked & other.context)
    return len(first & second) / len(first | second) if first | second else 0.0


def _frame(text: str) -> frozenset[str]:
    own = terms_of(" ".join(names(text)))
    return frozenset(term for term in terms_of(text) - own if not term[0].isdigit() and term not in STOP_WORDS)


def _differ(rivals: Sequence[_Fact]) -> bool:
    """Whether they say different things, and aren't copies of one statement."""
    first = rivals[0]
    return any(
        numbers(fact.line.text) != numbers(first.line.text) or _sameness(first, fact) < _COPY for fact in rivals[1:]
    )


def _sameness(one: _Fact, other: _Fact) -> float:
    first, second = terms_of(one.line.text), terms_of(other.line.text)
    return len(first & second) / len(first | second) if first | second else 1.0


def _options(rivals: Sequence[_Fact]) -> tuple[Option, ...]:
    labels = [PurePath(fact.hit.passage.name).stem for fact in rivals]
    if len(set(labels)) < len(labels):
        labels = [_with_place(label, fact.hit) for label, fact in zip(labels, rivals, strict=True)]
    passages = [fact.hit.passage for fact in rivals]
    return tuple(
        Option(label=label, document=passage.document, version=passage.version)
        for label, passage in zip(_numbered(labels), passages, strict=True)
    )


def _with_place(label: str, hit: Hit) -> str:
    place = hit.passage.headings[0] if hit.passage.headings else hit.passage.place
    return f"{label}, {place}" if place else label


def _numbered(labels: Sequence[str]) -> list[str]:
    """Labels that nothing tells apart are counted."""
    return [
        f"{label} ({labels[:place].count(label) + 1})" if labels.count(label) > 1 else label
        for place, label in enumerate(labels)
    ]
