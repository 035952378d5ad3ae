"""Several documents hold the same kind of fact, and the question doesn't tell them apart: which one is meant?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

from agent.outcomes import Option
from agent.quoting import Line, asked_terms, coverage, rough_weights, scored_lines, stands_in, terms_of
from agent.shapes import Shape, asked_shape, holds, names, numbers
from storage.models import Hit, Passage
from storage.terms import STOP_WORDS, cut, indexed_text, normalized

_CONSIDERED = 20  # passages
_SHARE = 0.5  # of the question's terms that a fact must hold
_NEARLY = 0.86  # of the best document's share, for another to be as good
_ALIKE = 0.3  # how like each other two sentences are that say the same kind of thing, where a value is asked for
_ALIKE_IN_WORDS = 0.45  # the same, where any answer would do
_SLIGHTLY = 0.02  # below the best, of what a document holds of the question
_COPY = 0.8  # how like each other two sentences are that say the same thing


# Words for a kind of document, by which people call all of that kind, and those that some of them are called
_KINDS = (
    (
        "contract agreement vertrag vereinbarung 合同 协议 合约",
        "lease tenancy mietvertrag arbeitsvertrag kaufvertrag 租约 租赁",
    ),
    (
        "policy rule guideline regulation richtlinie regelung 政策 制度 规定 规章 办法",
        "handbook directive ordnung 守则 手册",
    ),
)
_ANY_KIND = "document file paper dokument datei unterlage 文件 文档 资料"


@dataclass(frozen=True, slots=True)
class _Fact:
    """The sentence of a document that answers, and how well it and its document fit the question."""

    line: Line
    share: float
    context: frozenset[str]  # the terms of the sentence, the one before it, its headings

    @property
    def hit(self) -> Hit:
        return self.line.hit


def ambiguous(question: str, hits: Sequence[Hit], limit: int = 5) -> tuple[Option, ...]:
    """The documents to choose from where several hold the fact and the question doesn't tell them apart, else ()."""
    hits = hits[:_CONSIDERED]
    weights = rough_weights(question, [indexed_text(hit.passage) for hit in hits])
    fitting = _fitting(weights, hits)
    if len(fitting) < 2:
        return ()
    considered = [hit for hit in hits if hit.passage.document in fitting]
    rivals = _rivals(question, _facts(question, weights, considered, fitting))
    if len(rivals) < 2 or not _differ(rivals):
        return ()
    return _options(rivals[:limit])


def _fitting(weights: Mapping[str, float], hits: Sequence[Hit]) -> dict[str, frozenset[str]]:
    """The documents that hold as much of what is asked as any, with their terms, as far as their passages were found:
    the others the question doesn't mean."""
    passages: dict[str, list[Passage]] = {}
    for hit in hits:
        passages.setdefault(hit.passage.document, []).append(hit.passage)
    at_most = {document: _roughly_held(weights, found) for document, found in passages.items()}
    known: dict[str, frozenset[str]] = {}
    shares: dict[str, float] = {}
    for document in sorted(passages, key=lambda document: -at_most[document]):
        if at_most[document] < max(shares.values(), default=0.0) - _SLIGHTLY:
            break  # cutting a text into terms is what takes time here
        known[document] = _known(passages[document])
        shares[document] = coverage(weights, known[document])
    most = max(shares.values(), default=0.0)
    return {document: known[document] for document, share in shares.items() if share >= most - _SLIGHTLY}


def _roughly_held(weights: Mapping[str, float], passages: Sequence[Passage]) -> float:
    """The share of the question's terms that these passages hold at most."""
    texts = [normalized(f"{PurePath(passage.name).stem}\n{indexed_text(passage)}") for passage in passages]
    kinds = _every_kind()
    return coverage(
        weights, frozenset(term for term in weights if term in kinds or any(stands_in(term, text) for text in texts))
    )


def _known(passages: Sequence[Passage]) -> frozenset[str]:
    name = terms_of(PurePath(passages[0].name).stem)
    known = name.union(*(terms_of(indexed_text(passage)) for passage in passages))
    return known | _kind(known)


@cache
def _every_kind() -> frozenset[str]:
    return _kind_terms(_ANY_KIND).union(*(_kind_terms(all_are) for all_are, _ in _KINDS))


def _kind(known: frozenset[str]) -> frozenset[str]:
    """What a document with these terms may be called, though it doesn't say so itself: an agreement is a contract."""
    return _kind_terms(_ANY_KIND).union(
        *(_kind_terms(all_are) for all_are, some_are in _KINDS if not known.isdisjoint(_kind_names(all_are, some_are)))
    )


@cache
def _kind_terms(words: str) -> frozenset[str]:
    return frozenset(cut(words))


@cache
def _kind_names(*words: str) -> frozenset[str]:
    """One term for each word: the whole of it, where it is cut into more."""
    return frozenset(max(cut(word), key=len) for each in words for word in each.split())


def _facts(
    question: str, weights: Mapping[str, float], hits: Sequence[Hit], known: Mapping[str, frozenset[str]]
) -> list[_Fact]:
    """The best sentence of each document, the best document first."""
    shape = asked_shape(question)
    best: dict[str, _Fact] = {}
    kinds = {document: _kind(terms) for document, terms in known.items()}
    for line in scored_lines(question, hits):
        if not holds(shape, line.text, question):
            continue
        context = terms_of(line.text) | line.before | terms_of(" ".join(line.hit.passage.headings))
        context |= kinds[line.hit.passage.document]
        fact = _Fact(line, coverage(weights, context), context)
        before = best.get(line.hit.passage.document)
        if before is None or (fact.share, line.score) > (before.share, before.line.score):
            best[line.hit.passage.document] = fact
    return sorted(best.values(), key=lambda fact: -fact.share)


def _rivals(question: str, facts: Sequence[_Fact]) -> list[_Fact]:
    """The facts that answer about as well as the best, and in about the same words."""
    if not facts:
        return []
    first = facts[0]
    least = max(_SHARE, _NEARLY * first.share)
    likeness = _ALIKE_IN_WORDS if asked_shape(question) is Shape.ANY else _ALIKE
    return [
        fact
        for fact in facts
        if fact.share >= least and (fact is first or _likeness(first, fact, question) >= likeness)
    ]


def _likeness(one: _Fact, other: _Fact, question: str) -> float:
    """How like each other two sentences are, their values and names left out."""
    first, second = (_frame(fact.line.text) for fact in (one, other))
    asked = frozenset(asked_terms(question))
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
