"""The answer without a model: the sentences of the passages that answer the question, word for word."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.shapes import Shape, asked_shape, holds, names, numbers, without_asking_words
from storage.models import Hit, Passage
from storage.terms import content_terms, cut, normalized

_CONSIDERED = 8  # passages that quotes are taken from
_LONGEST = 420  # characters of a quote before it is cut at a clause
_WORTH = 1.5  # that a further quote may score below the best
_NEAR = 1.5  # that a neighbour may score below its sentence, to be quoted with it


@dataclass(frozen=True, slots=True)
class Quote:
    """`text` is `hit.passage.text[start:end]`, word for word; `head` is what is shown above it: that of its table."""

    hit: Hit
    text: str
    start: int
    end: int
    head: str = ""

    @property
    def shown(self) -> str:
        return f"{self.head}\n{self.text}" if self.head else self.text

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
_TABLE_ROW = re.compile(r"\s*\|[^\n]*\|\s*\Z")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•·‣▪]|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)])\s+\S")
_HEADING = re.compile(
    r"\s*#{1,6}\s|\s*(?P<bold>\*\*|__)(?=\S)(?:(?!(?P=bold)).){1,120}(?<![.!。！])(?P=bold)\s*\Z"
    r"|\s*第\s?[一二三四五六七八九十百零〇两\d]{1,6}\s?(?:[章节節条條编編篇回]|部分)[^。！；;\n]{0,30}\Z"
)
_WORDS = r"[^\W\d_]+(?:[ &-]+[^\W\d_]+){0,5}"
_TITLE = re.compile(rf"(?=[A-Z]){_WORDS}|(?:[^\W\d_]+ )?\d{{1,3}}(?:\.\d{{1,3}})+\.? ?\(?{_WORDS}\)?")
_RULE = re.compile(r"\s*(?:<!--.*-->|[-=_*]{3,})\s*$")
_CLOSERS = "\"'”’»)\\]」』）】》"
_END = re.compile(rf"(?:[.!?…]+[{_CLOSERS}]*(?=\s)|[。！？｡]+[{_CLOSERS}]*|[।؟۔]+(?=\s|$))")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|cf|no|nos|fig|figs|al|inc|ltd|co|corp|jr|sr|vol|pp?|art|sec|ch|approx|ca|dept|"
    r"est|gen|col|sgt|rev|hon|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|z\.b|d\.h|bzw|usw|ggf|abs|nr|inkl|u\.s|a\.m|p\.m)"
    r"|\b[A-Z]|^\s*\d{1,3})\.$",
    re.I,
)

_GERMAN_DAY = re.compile(r"\b\d{1,2}\.$")
_GERMAN_MONTH = re.compile(
    r"Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Quartal|Klasse|Etage|Stock"
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
    marks = line.strip()
    return ("--" in marks and not marks.strip(" \t:|-")) or _RULE.match(line) is not None


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
    if _GERMAN_DAY.search(text[max(start, place - 4) : place]) and _GERMAN_MONTH.match(following):
        return True
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
    found = [terms_of(text) for text in texts]
    return {
        term: _rarity(sum(term in terms for terms in found), len(texts))
        for term in dict.fromkeys(asked_terms(question))
    }


def rough_weights(question: str, texts: Sequence[str]) -> dict[str, float]:
    """The same for many texts, without cutting each into terms: a term stands where its stem does."""
    plain = [normalized(text) for text in texts]
    return {
        term: _rarity(sum(stands_in(term, text) for text in plain), len(texts))
        for term in dict.fromkeys(asked_terms(question))
    }


def stands_in(term: str, plain: str) -> bool:
    """Whether a normalized text may hold a term: what all forms of a word have in common is looked for, "compan" of
    "compani" for "company" and "companies"."""
    return (term[:-1] if len(term) > 4 and term[-1] in "ie" else term) in plain


def _rarity(frequency: int, count: int) -> float:
    return math.log(1 + (count + _BACKGROUND - frequency + 0.5) / (frequency + 0.5))


def asked_terms(question: str) -> list[str]:
    """What a question is about: its terms without those that only ask."""
    return content_terms(without_asking_words(question)) or content_terms(question) or cut(question)


def coverage(weights: Mapping[str, float], terms: frozenset[str]) -> float:
    """The weighted share of the question's terms that stand among these."""
    whole = sum(weights.values())
    return sum(weights[term] for term in weights.keys() & terms) / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence among those of its passage. `score` is a log-probability up to a constant: fitted, see below."""

    hit: Hit
    place: int
    start: int
    end: int
    score: float = 0.0
    held: frozenset[str] = frozenset()  # the question's terms in it
    before: frozenset[str] = frozenset()  # in what introduces it: see `_contexts`
    opens: bool = False  # it only leads to what follows: a question, a heading, the head of a table

    @property
    def text(self) -> str:
        return self.hit.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    terms: frozenset[str]
    shape: Shape
    weights: Mapping[str, float]


# A conditional logit, fitted on half the paragraphs of xquad_en, xquad_zh and cmrc2018: which sentence has the answer?
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
    lines = _without_running(scored_lines(question, hits[:_CONSIDERED]), hits)
    own = [line for line in lines if line.start >= borrowed(line.hit.passage) and line.score > -math.inf]
    quotes: list[Quote] = []
    best: float | None = None
    for line in sorted(own, key=lambda line: -line.score):
        if len(quotes) == limit or (best is not None and line.score < best - _WORTH):
            break
        if all(line.hit.passage.id != other.hit.passage.id and line.text not in other.text for other in quotes):
            stretch = _stretch(line, [other for other in lines if other.hit is line.hit])
            if stretch is not None:
                quotes.append(stretch)
                best = line.score if best is None else best
    return quotes


_PAGES = 3  # that a line stands on, to be a running head or foot
_EDGE = 2  # lines at the start and the end of a passage that may be running
_PAGE_NUMBER = re.compile(r"\d{1,6}")


def _without_running(lines: Sequence[Line], hits: Sequence[Hit]) -> list[Line]:
    """The lines that are a page's running head or foot are no quotes."""
    running = _running(hits)
    return [
        replace(line, score=-math.inf) if (line.hit.passage.document, _unnumbered(line.text)) in running else line
        for line in lines
    ]


def _running(hits: Sequence[Hit]) -> frozenset[tuple[str, str]]:
    """What stands at the edge of several pages of one document, the page's number apart."""
    seen: dict[tuple[str, str], dict[int, list[int]]] = {}
    for passage in (hit.passage for hit in hits):
        for line in _edges(passage.text) if passage.page is not None else ():
            numbers_of = seen.setdefault((passage.document, _unnumbered(line)), {})
            numbers_of.setdefault(passage.page or 0, [int(number) for number in _PAGE_NUMBER.findall(line)])
    return frozenset(key for key, found in seen.items() if len(found) >= _PAGES and _count_pages(found))


def _edges(text: str) -> set[str]:
    spans = sentences(text)
    return {
        text[start:end] for start, end in (*spans[:_EDGE], *spans[-_EDGE:]) if not _TABLE_ROW.match(text[start:end])
    }


def _unnumbered(text: str) -> str:
    return _PAGE_NUMBER.sub("0", " ".join(text.split()))


def _count_pages(found: Mapping[int, Sequence[int]]) -> bool:
    """Whether each number of the line is one on all pages, or goes with the page; a passage may end on the next."""
    pages = list(found)
    for column in zip(*found.values(), strict=True):
        distances = [number - page for number, page in zip(column, pages, strict=True)]
        if len(set(column)) > 1 and max(distances) - min(distances) > 1:
            return False
    return True


def scored_lines(question: str, hits: Sequence[Hit]) -> list[Line]:
    lines = [_lines_of(hit) for hit in hits]
    weights = term_weights(question, [line.text for of_passage in lines for line in of_passage])
    asked = _Question(question, terms_of(question), asked_shape(question), weights)
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    return [line for of_passage in lines for line in _score_passage(asked, of_passage, best)]


def _lines_of(hit: Hit) -> list[Line]:
    return [Line(hit, place, start, end) for place, (start, end) in enumerate(sentences(hit.passage.text))]


def _score_passage(asked: _Question, lines: Sequence[Line], best: float) -> Iterable[Line]:
    wanted = asked.weights.keys()
    terms = [terms_of(line.text) for line in lines]
    held = [frozenset(wanted & each) for each in terms]
    rare = {
        term: weight * math.log(1 + (len(lines) + 0.5) / (sum(term in each for each in held) + 0.5))
        for term, weight in asked.weights.items()
    }
    contexts = _contexts(lines, terms)
    for place, line in enumerate(lines):
        before = frozenset(wanted & contexts[place])
        after = held[place + 1] if place + 1 < len(lines) else frozenset()
        own = coverage(asked.weights, held[place])
        by_context = coverage(asked.weights, held[place] | before) - own
        score = _OWN * own + _RARE * coverage(rare, held[place]) + _RANK * line.hit.score / best
        score += by_context * (_BEFORE + _BEFORE_PRONOUN * bool(_REFERS_BACK.match(line.text)))
        score += _AFTER * (coverage(asked.weights, held[place] | after) - own)
        opens = _opens(line.text) or _is_table_head(lines, place)
        score += _form(asked, line.text, opens) + _NEWS * math.log1p(len(terms[place] - asked.terms))
        yield replace(line, score=score, held=held[place], before=before, opens=opens)


def _contexts(lines: Sequence[Line], terms: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Of each line, the terms of what introduces it: the heading above it, and the sentence before it, the line before
    its list or its table's head."""
    contexts: list[frozenset[str]] = []
    heading = terms_of(" ".join(lines[0].hit.passage.headings[-1:])) if lines else frozenset()
    began, introduction = 0, -1  # of the list or table that this line belongs to, or of the line itself
    for place, line in enumerate(lines):
        if place and _is_heading(lines[place - 1].text):
            heading = terms[place - 1]
        if not place or not _continues(lines[place - 1], line):
            began, introduction = place, place - 1
        elif _TABLE_ROW.match(line.text):
            introduction = began
        contexts.append(heading if introduction < 0 else heading | terms[introduction])
    return contexts


def _continues(one: Line, other: Line) -> bool:
    """Whether two lines are items of one list or rows of one table: then neither introduces the other."""
    items = bool(_LIST_ITEM.match(one.text)) and bool(_LIST_ITEM.match(other.text))
    return items or (bool(_TABLE_ROW.match(other.text)) and _is_row_above(one, other))


def _form(asked: _Question, text: str, opens: bool) -> float:
    score = _LENGTH * math.log1p(len(text))
    if opens:
        score += _ASKS
    if asked.shape is not Shape.ANY:
        score += _FITS if holds(asked.shape, text, asked.text) else _MISSES
    return score


def _opens(text: str) -> bool:
    """Whether it is a question, a heading or the line before a list: what follows says more."""
    return text.rstrip('*_"”) ').endswith(("?", "？", ":", "：")) or _is_heading(text)


def _is_heading(text: str) -> bool:
    """Marked as one, or a few words without an end, as titles stand in files that mark nothing."""
    return _HEADING.match(text) is not None or _TITLE.fullmatch(text) is not None


def _is_table_head(lines: Sequence[Line], place: int) -> bool:
    """Whether it is the row above a table's rule."""
    line, text = lines[place], lines[place].hit.passage.text
    if not _TABLE_ROW.match(line.text):
        return False
    following = text[line.end :].lstrip("\n").split("\n", 1)[0]
    return following.lstrip().startswith("|") and _is_rule(following)


def _table_head(lines: Sequence[Line], place: int) -> int | None:
    """The place of the head of the table that this row belongs to; None where it is no row, or the head itself."""
    head = place
    while head and _TABLE_ROW.match(lines[head].text) and _is_row_above(lines[head - 1], lines[head]):
        head -= 1
    return head if head != place and _is_table_head(lines, head) else None


def _is_row_above(one: Line, other: Line) -> bool:
    between = one.hit.passage.text[one.end : other.start]
    return bool(_TABLE_ROW.match(one.text)) and not re.search(r"\n\s*\n", between)


def _stretch(line: Line, lines: Sequence[Line]) -> Quote | None:
    """The line with what it needs to be understood, and with its neighbours that answer nearly as well. None where
    there is only what leads to an answer."""
    if _TABLE_ROW.match(line.text) and not line.opens:
        first, last = _rows_alike(line, lines)
    else:
        first, last = _neighbours(line, lines)
    if all(each.opens for each in lines[first : last + 1]) and not all(each.opens for each in lines):
        return None
    start, end = lines[first].start, lines[last].end
    return Quote(line.hit, line.hit.passage.text[start:end], start, end, _head_above(lines, first))


def _head_above(lines: Sequence[Line], row: int) -> str:
    """The head of the row's table with the rule below it, where it is short enough to be shown with each row."""
    head = _table_head(lines, row)
    if head is None or lines[head + 1].start - lines[head].start > _LONGEST:
        return ""
    return lines[head].hit.passage.text[lines[head].start : lines[head + 1].start].strip()


def _rows_alike(line: Line, lines: Sequence[Line]) -> tuple[int, int]:
    """The row with those beside it that hold the same of the question."""

    def alike(one: Line, other: Line) -> bool:
        return _continues(one, other) and not one.opens and other.held == one.held

    first = last = line.place
    while last + 1 < len(lines) and alike(lines[last], lines[last + 1]):
        if lines[last + 1].end - lines[first].start > _LONGEST:
            break
        last += 1
    while first and alike(lines[first - 1], lines[first]) and lines[first - 1].start >= borrowed(line.hit.passage):
        if lines[last].end - lines[first - 1].start > _LONGEST:
            break
        first -= 1
    return first, last


def _neighbours(line: Line, lines: Sequence[Line]) -> tuple[int, int]:
    room = _LONGEST
    first, last = _needed(line, lines), line.place
    if lines[last].end - lines[first].start > room:
        first = line.place
    last = _opened(line, lines, room)
    if first and not _TABLE_ROW.match(line.text) and _is_near(lines[first - 1], line):
        first -= lines[last].end - lines[first - 1].start <= room
    if last + 1 < len(lines) and not lines[last + 1].opens and _is_near(lines[last + 1], line):
        last += lines[last + 1].end - lines[first].start <= room
    return first, last


def _is_near(other: Line, line: Line) -> bool:
    return other.score > line.score - _NEAR and not _TABLE_ROW.match(other.text)


def _needed(line: Line, lines: Sequence[Line]) -> int:
    """Where the quote starts: at the question that it answers, the sentence that it refers to."""
    before = lines[line.place - 1].text if line.place else ""
    refers = bool(before) and (bool(_REFERS_BACK.match(line.text)) or before.rstrip('*_"”) ').endswith(("?", "？")))
    return line.place - refers


_LONGEST_OPENED = 1200  # characters of a quote that needs what follows its first line


def _opened(line: Line, lines: Sequence[Line], room: int) -> int:
    """Where the quote ends: after a question or a heading with what follows it, before a list with its items."""
    last = line.place
    while last + 1 < len(lines) and _leads_on(line, lines[last], lines[last + 1]):
        needed = lines[last].opens and not lines[last + 1].opens
        if lines[last + 1].end - line.start > (_LONGEST_OPENED if needed else room):
            break
        last += 1
    return last


def _leads_on(line: Line, last: Line, following: Line) -> bool:
    if following.score == -math.inf:
        return False
    return last.opens or (line.opens and last.place >= line.place and _continues(last, following))


_SUPPORT = 0.5  # of a statement's terms that must stand in the passage
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|\w+n['’]t|kein\w*|nicht|nie|niemals|ohne)\b"
    r"|不(?!但|仅|断|同|久|过)|没|无(?!论|锡)|未(?!来)|非(?!常|洲)|禁止|勿",
    re.I,
)


def support(statement: str, hits: Sequence[Hit]) -> Hit | None:
    """The passage that bears this statement out: it shares its words, and its numbers, names and negation agree."""
    wanted = frozenset(content_terms(statement))
    said = names(statement) | _first_name(statement, hits)
    best: tuple[float, Hit] | None = None
    for hit in hits:
        share = _shared(wanted, hit)
        if share >= _SUPPORT and (best is None or share > best[0]) and _agrees(statement, wanted, said, hit):
            best = (share, hit)
    return best[1] if best else None


def _shared(wanted: frozenset[str], hit: Hit) -> float:
    """How much of what is stated the passage says. To name its document or heading bears nothing out."""
    said = terms_of(hit.passage.text)
    place = terms_of("\n".join((hit.passage.name, *hit.passage.headings))) - said
    if stated := wanted - place:
        return len(stated & said) / len(stated)
    return 1.0 if wanted else 0.0


def _with_place(hit: Hit) -> str:
    return "\n".join((hit.passage.name, *hit.passage.headings, hit.passage.text))


def _first_name(statement: str, hits: Sequence[Hit]) -> frozenset[str]:
    """The statement's first word, where a capital within some passage shows that it is a name."""
    first = re.match(r"\W*([A-ZÄÖÜ][\w-]+)", statement)
    word = frozenset([first[1].lower()]) if first else frozenset()
    return word if any(word <= names(f"in {_with_place(hit)}") for hit in hits) else frozenset()


def _agrees(statement: str, wanted: frozenset[str], said: frozenset[str], hit: Hit) -> bool:
    known = terms_of(_with_place(hit))
    if any(known.isdisjoint(terms_of(name)) for name in said):
        return False
    lines = [hit.passage.text[start:end] for start, end in sentences(hit.passage.text)]
    nearest = max(lines, key=lambda line: len(wanted & terms_of(line)), default="")
    if (_NEGATION.search(statement) is None) != (_NEGATION.search(nearest) is None):
        return False
    about = [line for line in lines if any(not term[0].isdigit() for term in wanted & terms_of(line))]
    stated = numbers(statement) - ({"1"} if not re.search(r"\b1\b", statement) else set())
    return stated <= numbers("\n".join((hit.passage.name, *hit.passage.headings, *about)))
