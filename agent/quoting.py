"""The answer without a model: the sentences of the passages that answer the question, word for word."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.shapes import Shape, asked_shape, holds, names, numbers, without_asking_words
from storage.models import Hit, Passage
from storage.terms import content_terms, cut

_CONSIDERED = 8  # passages that quotes are taken from
_LONGEST = 420  # characters of a quote before it is cut at a clause
_WORTH = 1.5  # that a further quote may score below the best
_NEAR = 1.5  # that a neighbour may score below its sentence, to be quoted with it


@dataclass(frozen=True, slots=True)
class Quote:
    """`text` is `hit.passage.text[start:end]`, word for word."""

    hit: Hit
    text: str
    start: int
    end: int

    @property
    def offset(self) -> int:
        """Where it starts in the text of its section."""
        return self.hit.passage.start + self.start - borrowed(self.hit.passage)


def borrowed(passage: Passage) -> int:
    """How many characters of a passage's text are said again before it: the head of the table that it begins in."""
    extra = len(passage.text) - (passage.end - passage.start)
    return extra if 0 < extra < len(passage.text) and _TABLE_ROW.match(passage.text.split("\n", 1)[0]) else 0


Span = tuple[int, int]

_FENCE = re.compile(r"[ \t]*(```|~~~)")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-{2,}[\s:|-]*$")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•·‣▪]|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)])\s+\S")
_HEADING = re.compile(r"\s*#{1,6}\s")
_RULE = re.compile(r"\s*(?:<!--.*-->|[-=_*]{3,})\s*$")
_CLOSERS = "\"'”’»)\\]」』）】》"
_END = re.compile(rf"(?:[.!?…]+[{_CLOSERS}]*(?=\s)|[。！？｡]+[{_CLOSERS}]*|[।؟۔]+(?=\s|$))")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|cf|no|nos|fig|figs|al|inc|ltd|co|corp|jr|sr|vol|pp?|art|sec|ch|approx|ca|dept|"
    r"est|gen|col|sgt|rev|hon|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|z\.b|d\.h|bzw|usw|ggf|abs|nr|inkl|u\.s|a\.m|p\.m)"
    r"|\b[A-Z]|^\s*\d{1,3})\.$",
    re.I,
)


def sentences(text: str) -> list[Span]:
    """Where each sentence stands. Table rows, list items, headings and code fences are whole."""
    return list(_sentences(text))


@lru_cache(maxsize=2048)
def _sentences(text: str) -> tuple[Span, ...]:
    return tuple(span for block in _blocks(text) for span in _split(text, *block))


def _blocks(text: str) -> Iterable[Span]:
    """Paragraphs, list items, table rows, headings and code fences, one by one."""
    start: int | None = None
    end = 0
    fence = ""
    for line_start, line_end in _lines(text):
        line = text[line_start:line_end]
        if fence:
            end = line_end
            fence = "" if line.strip() == fence else fence
            if not fence and start is not None:
                yield start, end
                start = None
            continue
        opened = _FENCE.match(line)
        if start is not None and (opened or _starts_anew(text[start:end], line)):
            yield start, end
            start = None
        if opened:
            start, end, fence = line_start, line_end, opened[1]
        elif line.strip() and not _is_rule(line):
            start = line_start if start is None else start
            end = line_end
    if start is not None:
        yield start, end


def _lines(text: str) -> Iterable[Span]:
    for match in re.finditer(r"[^\n\f\v\u2028\u2029]+|\n\s*\n", text):
        yield match.span()


def _is_rule(line: str) -> bool:
    return bool(_TABLE_RULE.match(line) or _RULE.match(line))


def _starts_anew(block: str, line: str) -> bool:
    """Whether `line` is no continuation of the block before it."""
    if not line.strip() or any(pattern.match(line) for pattern in (_LIST_ITEM, _TABLE_ROW, _HEADING)) or _is_rule(line):
        return True
    if _TABLE_ROW.match(block) or _HEADING.match(block):
        return True
    last = block.rsplit("\n", 1)[-1].strip()
    following = line.strip()
    if following[0].islower():
        return False
    return len(last) < 50 or last[-1] in ".!?:;。！？：；"


def _split(text: str, start: int, end: int) -> Iterable[Span]:
    block = text[start:end]
    if _FENCE.match(block) or _TABLE_ROW.match(block) or (_LIST_ITEM.match(block) and len(block) <= _LONGEST):
        yield from _stripped(text, start, end)
        return
    place = start
    for match in _END.finditer(text, start, end):
        if match.end() < end and _goes_on(text, place, match.end(), end):
            continue
        yield from _stripped(text, place, match.end())
        place = match.end()
    yield from _stripped(text, place, end)


def _goes_on(text: str, start: int, place: int, end: int) -> bool:
    """Whether the full stop before `place` ends no sentence: an abbreviation, or what follows starts small."""
    if _ABBREVIATION.search(text[max(start, place - 12) : place]):
        return True
    following = text[place:end].lstrip()
    return not following or (following[0].islower() and text[place - 1] in ".…")


def _stripped(text: str, start: int, end: int) -> Iterable[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


@lru_cache(maxsize=8192)
def terms_of(text: str) -> frozenset[str]:
    return frozenset(cut(text))


_BACKGROUND = 30  # texts that are taken to hold none of the terms: else those of a small collection would weigh nothing


def term_weights(question: str, texts: Sequence[str]) -> dict[str, float]:
    """The question's terms, weighted by how few of the texts hold them."""
    count = len(texts) + _BACKGROUND
    found = [terms_of(text) for text in texts]
    weights = {}
    for term in asked_terms(question):
        frequency = sum(term in terms for terms in found)
        weights[term] = math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
    return weights


def asked_terms(question: str) -> list[str]:
    """What a question is about: its terms without those that only ask."""
    return content_terms(without_asking_words(question)) or content_terms(question) or cut(question)


def coverage(weights: Mapping[str, float], terms: frozenset[str]) -> float:
    """The weighted share of the question's terms that stand among these."""
    whole = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in terms) / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence among those of its passage. `score` is a log-probability up to a constant: fitted, see below."""

    hit: Hit
    place: int
    start: int
    end: int
    score: float = 0.0
    before: frozenset[str] = frozenset()  # the terms of the sentence before it, and of its table's head

    @property
    def text(self) -> str:
        return self.hit.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    terms: frozenset[str]
    shape: Shape
    weights: Mapping[str, float]


# Fitted by a conditional logit on half the paragraphs of xquad_en, xquad_zh and cmrc2018: which sentence holds the answer.
_OWN = 4.2  # the question's terms that stand in the sentence
_RARE = 5.0  # the same, those that are rare in the passage counting more
_BEFORE = 3.8  # in the sentence before it, and not in itself
_BEFORE_PRONOUN = 1.6  # the same, where the sentence begins with "he", "it", "this"
_AFTER = 1.6  # in the sentence after it
_RANK = 6.3  # the passage's score, relative to the best
_FITS, _MISSES = 0.8, -1.1  # holds, or lacks, the kind of value that is asked for
_NEWS, _LENGTH = -0.7, 0.8  # logarithms of its other terms, and of its characters
_ASKS = -2.4  # is a question itself, or a heading: what follows answers it

_REFERS_BACK = re.compile(
    r"[-*\s\"“]*(?:he|she|it|they|this|these|that|those|his|her|its|their|er|sie|es|dies\w*)\b"
    r"|他|她|它|其|该|此|这|那|并|但|而|之后|后来",
    re.I,
)


def quote(question: str, hits: Sequence[Hit], limit: int = 3) -> list[Quote]:
    """What answers best, the best first: from each passage one stretch of a sentence or a few."""
    lines = scored_lines(question, hits[:_CONSIDERED])
    own = (line for line in lines if line.start >= borrowed(line.hit.passage))
    ranked = sorted(own, key=lambda line: -line.score)
    quotes: list[Quote] = []
    for line in ranked:
        if len(quotes) == limit or line.score < ranked[0].score - _WORTH:
            break
        if all(line.hit.passage.id != other.hit.passage.id and line.text not in other.text for other in quotes):
            quotes.append(_stretch(line, [other for other in lines if other.hit is line.hit]))
    return quotes


def scored_lines(question: str, hits: Sequence[Hit]) -> list[Line]:
    lines = [_lines_of(hit) for hit in hits]
    weights = term_weights(question, [line.text for of_passage in lines for line in of_passage])
    asked = _Question(question, terms_of(question), asked_shape(question), weights)
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    return [line for of_passage in lines for line in _score_passage(asked, of_passage, best)]


def _lines_of(hit: Hit) -> list[Line]:
    return [Line(hit, place, start, end) for place, (start, end) in enumerate(sentences(hit.passage.text))]


def _score_passage(asked: _Question, lines: Sequence[Line], best: float) -> Iterable[Line]:
    terms = [terms_of(line.text) for line in lines]
    rare = {
        term: weight * math.log(1 + (len(lines) + 0.5) / (sum(term in each for each in terms) + 0.5))
        for term, weight in asked.weights.items()
    }
    nothing: frozenset[str] = frozenset()
    for place, line in enumerate(lines):
        before = _context(lines, terms, place)
        after = terms[place + 1] if place + 1 < len(lines) else nothing
        own = coverage(asked.weights, terms[place])
        by_context = coverage(asked.weights, terms[place] | before) - own
        score = _OWN * own + _RARE * coverage(rare, terms[place]) + _RANK * line.hit.score / best
        score += by_context * (_BEFORE + _BEFORE_PRONOUN * bool(_REFERS_BACK.match(line.text)))
        score += _AFTER * (coverage(asked.weights, terms[place] | after) - own)
        score += _form(asked, line.text) + _NEWS * math.log1p(len(terms[place] - asked.terms))
        yield replace(line, score=score, before=before)


def _context(lines: Sequence[Line], terms: Sequence[frozenset[str]], place: int) -> frozenset[str]:
    """The terms of what introduces a line: the sentence before it, the line before its list, its table's head; and the
    heading above it."""
    headings = frozenset().union(*(terms_of(heading) for heading in lines[place].hit.passage.headings[-1:]))
    above = next((terms[each] for each in range(place - 1, -1, -1) if _HEADING.match(lines[each].text)), headings)
    introduction = _table_head(lines, place)
    if introduction is None:
        introduction = place - 1
        while introduction > 0 and _LIST_ITEM.match(lines[place].text) and _LIST_ITEM.match(lines[introduction].text):
            introduction -= 1
    return above | terms[introduction] if introduction >= 0 else above


def _form(asked: _Question, text: str) -> float:
    score = _LENGTH * math.log1p(len(text))
    if text.endswith(("?", "？", ":", "：")) or _HEADING.match(text):
        score += _ASKS
    if asked.shape is not Shape.ANY:
        score += _FITS if holds(asked.shape, text, asked.text) else _MISSES
    return score


def _table_head(lines: Sequence[Line], place: int) -> int | None:
    """The place of the head of the table that this row belongs to; None where it is no row, or the head itself."""
    head = place
    while head and _TABLE_ROW.match(lines[head].text) and _is_row_above(lines[head - 1], lines[head]):
        head -= 1
    return head if head != place else None


def _is_row_above(one: Line, other: Line) -> bool:
    between = one.hit.passage.text[one.end : other.start]
    return bool(_TABLE_ROW.match(one.text)) and not re.search(r"\n\s*\n", between)


def _stretch(line: Line, lines: Sequence[Line]) -> Quote:
    """The line with what it needs to be understood: the question or sentence that it refers back to, the table's head;
    and with its neighbours that answer nearly as well."""
    first = last = line.place
    head = _table_head(lines, line.place)
    if head is not None:
        first = head if lines[head].start >= borrowed(line.hit.passage) else first
    elif first and (_REFERS_BACK.match(line.text) or lines[first - 1].text.endswith(("?", "？"))):
        first -= 1
    if first and head is None and lines[first - 1].score > line.score - _NEAR:
        first -= 1
    if last + 1 < len(lines) and lines[last + 1].score > line.score - _NEAR:
        last += 1
    while lines[last].end - lines[first].start > _LONGEST and first < last:
        first, last = (first + 1, last) if first < line.place else (first, last - 1)
        first = line.place if head is not None else first
    start, end = lines[first].start, lines[last].end
    return Quote(line.hit, line.hit.passage.text[start:end], start, end)


_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|\w+n['’]t|kein\w*|nicht|nie|niemals|ohne)\b|不|没|无|未|非|禁止|勿",
    re.I,
)


def support(statement: str, hits: Sequence[Hit]) -> Hit | None:
    """The passage that bears this statement out: it shares its words, and its numbers, names and negation agree."""
    wanted = frozenset(content_terms(statement))
    best: tuple[float, Hit] | None = None
    for hit in hits:
        share = _support_of(statement, wanted, hit.passage.text)
        if share >= 0.5 and (best is None or share > best[0]):
            best = (share, hit)
    return best[1] if best else None


def _support_of(statement: str, wanted: frozenset[str], text: str) -> float:
    if not wanted or not numbers(statement) <= numbers(text):
        return 0.0
    if any(terms_of(name).isdisjoint(terms_of(text)) for name in names(statement)):
        return 0.0
    spans = sentences(text)
    best = max(spans, key=lambda span: len(wanted & terms_of(text[span[0] : span[1]])), default=(0, 0))
    if bool(_NEGATION.search(statement)) != bool(_NEGATION.search(text[best[0] : best[1]])):
        return 0.0
    return len(wanted & terms_of(text)) / len(wanted)
