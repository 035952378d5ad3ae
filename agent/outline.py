"""A whole document in a few lines: the beginning of each of its parts, or of the page, slide or sheet that is meant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent.context import Context
from agent.followups import says_nothing
from agent.quoting import Quote, sentences
from agent.shapes import Shape, asked_shape
from agent.state import Evidence, Finding, Wish, as_evidence
from agent.texts import Texts, plain
from agent.writing import Source, Writing, as_quotation
from storage.models import Document, Hit, Passage, Section

_PARTS = 8  # that are quoted
_READ = 1200  # characters of one that a model reads
_BEGINNING = 400  # characters of one that are quoted, where there are several
_ALONE = 900  # the same, where it is the only one
_SENTENCE = 12  # characters of the shortest

_KINDS = {"seite": "page", "folie": "slide", "blatt": "sheet", "tab": "sheet", "页": "page", "张": "slide"}
_NUMBERED = re.compile(r"\b(page|slide|sheet|tab|seite|folie|blatt)\s+(?:number\s+|no\.?\s*|#\s*)?(\d{1,5})\b", re.I)
_NUMBERED_IN_CHINESE = re.compile(r"第\s*(?P<number>\d{1,5})\s*(?P<kind>页|张)")
_CALLED = re.compile(r"\b(?i:sheet|tab|blatt)\s+[\"'“„]?([A-ZÄÖÜ][\w-]*(?: [A-ZÄÖÜ\d][\w-]*)*)[\"'”“]?")


def wish_of(question: str) -> Wish | None:
    """What a question that no longer holds the names of its documents wants of them as they are; None where it asks
    for something that they say."""
    wish = Wish()
    for pattern in (_NUMBERED, _NUMBERED_IN_CHINESE, _CALLED):
        found = pattern.search(question)
        if found:
            wish = _wish(found)
            question = f"{question[: found.start()]} {question[found.end() :]}"
            break
    return wish if says_nothing(question) and asked_shape(question) is Shape.ANY else None


def _wish(found: re.Match[str]) -> Wish:
    if found.re is _CALLED:
        return Wish("sheet", name=found[1])
    kind, number = (found["kind"], found["number"]) if found.re is _NUMBERED_IN_CHINESE else found.groups()
    return Wish(_KINDS.get(kind.casefold(), kind.casefold()), int(number))


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a section under one heading and on one page. `place` is that of the page, slide or sheet alone."""

    section: Section
    start: int
    end: int

    @property
    def page(self) -> int | None:
        return self.section.anchor_at(self.start).page

    @property
    def place(self) -> str:
        return self.section.anchor_at(self.start).place


def _meant(part: _Part, wish: Wish) -> bool:
    if not wish.kind:
        return True
    if wish.name:
        return part.place.casefold() == f"{wish.kind} {wish.name}".casefold()
    return part.page == wish.number and part.place.startswith(wish.kind)


async def outline(documents: Sequence[str], wish: Wish, context: Context) -> tuple[list[Evidence], int]:
    """The parts that are quoted, each from its first sentence on, and how many there are beside them."""
    visible = await context.search.documents(documents)
    catalog = context.parts.documents
    read = await asyncio.gather(*(catalog.sections(document.key) for document in visible))
    evidence: list[Evidence] = []
    left_out = 0
    for document, sections in zip(visible, read, strict=True):
        parts = [part for section in sections for part in _parts(section) if _meant(part, wish)]
        most = max(1, _PARTS // len(visible))
        evidence += [_evidence(part, document) for part in parts[:most]]
        left_out += len(parts[most:])
    return evidence, left_out


def _parts(section: Section) -> Iterable[_Part]:
    bounds = [*(place.offset for place in section.places()), len(section.text)]
    for start, end in pairwise(bounds):
        told = [begins for begins, _ in sentences(section.text[start:end]) if section.text[start + begins] != "#"]
        if told:
            yield _Part(section, start + told[0], start + len(section.text[start:end].rstrip()))


def _evidence(part: _Part, document: Document) -> Evidence:
    end = min(part.end, part.start + _READ)
    passage = Passage(
        document=document.document,
        version=document.version,
        number=part.section.number,
        workspace=document.workspace,
        audience=document.audience,
        name=document.name,
        section=part.section.number,
        start=part.start,
        end=end,
        headings=part.section.headings_at(part.start),
        page=part.page,
        place=part.place,
        text=part.section.text[part.start : end],
    )
    return as_evidence(Hit(passage, 1.0), part.section, document.link)


async def write_outline(writing: Writing, finding: Finding, texts: Texts) -> bool:
    """The beginning of each part with its place; False where there are none."""
    sources = [Source(evidence) for evidence in finding["evidence"]]
    several = len({source.hit.passage.document for source in sources}) > 1
    for source in sources:
        passage = source.hit.passage
        quoted = _beginning(source.hit, alone=len(sources) == 1)
        place = ", ".join(part for part in (passage.place, " › ".join(passage.headings)) if part)
        label = f"{passage.name}, {place}" if several and place else passage.name if several else place
        quotation = as_quotation(quoted.text, writing.cite(source, quoted))
        await writing.paragraph(f"{plain(label)}\n{quotation}" if label else quotation)
    if sources and finding["left_out"]:
        await writing.paragraph(texts.left_out.format(count=finding["left_out"]))
    return bool(sources)


def _beginning(hit: Hit, *, alone: bool) -> Quote:
    """Its first whole sentence; where nothing else is quoted, all from the start on that fits."""
    text, most = hit.passage.text, _ALONE if alone else _BEGINNING
    spans = sentences(text)
    fitting = [span for span in spans if span[1] - (0 if alone else span[0]) <= most] or [(0, most)]
    if alone:
        start, end = 0, min(fitting[-1][1], len(text))
    else:
        start, end = next((span for span in fitting if _is_whole(text[slice(*span)])), fitting[0])
    return Quote(hit, text[start:end], start, end)


def _is_whole(sentence: str) -> bool:
    """Whether it is a sentence, and no caption or item of a list."""
    return len(sentence) >= _SENTENCE and sentence.endswith((".", "!", "?", "。", "！", "？"))
