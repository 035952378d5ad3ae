"""The reply as it grows. What is added to a draft has been checked, and is shown at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.outcomes import Citation, Emit, Token
from agent.prompts import NOT_FOUND
from agent.quoting import Quote, borrowed, quote, sentences, support
from agent.state import Evidence, Finding, hit_of, section_of
from agent.texts import Texts, listed, plain
from storage.models import Hit
from storage.terms import content_terms

QUOTES = 3  # of one answer
_QUOTES_EACH = 2  # of one document, where several are asked about
_LONGEST_WORDS = 8  # that "not found" names
_LONGEST_STATEMENT = 4000  # characters without an end: no sentence of a sound answer

_MARK = re.compile(r"\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]|【\s*(\d{1,3})[^】\n]*】")
_LOOSE_MARKS = re.compile(r"\s*((?:\[[\d\s,;]*\][.。]?\s*)+)")
_IMAGE = re.compile(r"!\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])")
_LINK = re.compile(r"\[([^\]\n]*)\]\([^)\n]*\)")
_TAG = re.compile(r"<[^>\n]*>")
_BLOCK = re.compile(r"\s*(?:\||```|~~~)")


class Source:
    """A passage that may be cited."""

    def __init__(self, evidence: Evidence) -> None:
        self.hit = hit_of(evidence)
        self.section = section_of(evidence)
        self.link = evidence["link"]

    def citation(self, number: int, quoted: Quote) -> Citation:
        passage = self.hit.passage
        offset = quoted.offset
        return Citation(
            number=number,
            document=passage.document,
            version=passage.version,
            name=passage.name,
            section=passage.section,
            page=self.section.anchor_at(offset).page,
            place=self.section.place_at(offset),
            quote=quoted.text,
            link=self.link,
        )


class Writing:
    """`text` and `citations` are the reply so far; the tokens that were emitted are `text`, piece by piece."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.text = ""
        self.citations: list[Citation] = []

    async def add(self, piece: str) -> None:
        self.text += piece
        await self._emit(Token(text=piece))

    async def paragraph(self, text: str) -> None:
        await self.add(f"\n\n{text}" if self.text else text)

    def cite(self, source: Source, quoted: Quote) -> int:
        """The number of this citation, a new one or that of the same quote before."""
        made = source.citation(len(self.citations) + 1, quoted)
        for known in self.citations:
            if known.model_copy(update={"number": made.number}) == made:
                return known.number
        self.citations.append(made)
        return made.number


async def write_quotes(writing: Writing, finding: Finding) -> bool:
    """The best sentences, word for word; False where there are none."""
    sources = [Source(evidence) for evidence in finding["evidence"]]
    quotes = _quotes(finding, [source.hit for source in sources])
    for quoted in quotes:
        source = next(source for source in sources if source.hit == quoted.hit)
        await writing.paragraph(as_quotation(quoted.shown, writing.cite(source, quoted)))
    return bool(quotes)


async def write_not_found(writing: Writing, finding: Finding, texts: Texts) -> None:
    lines = [texts.not_found.format(terms=listed(texts, _looked_for(finding["question"])))]
    if finding["nearest"]:
        names = listed(texts, (plain(near["name"]) for near in finding["nearest"]))
        lines.append(texts.nearest.format(names=names))
    if finding["limits"]:
        lines.append(texts.unknown_script)
    await writing.paragraph(" ".join(lines))


class Statements:
    """Takes a model's words and lets through, sentence by sentence, what a passage supports.

    A sentence keeps the citations that bear it out. Where none does, it is given the passage that supports it, or it
    is dropped.
    """

    def __init__(self, writing: Writing, evidence: Sequence[Evidence]) -> None:
        self._writing = writing
        self._sources = [Source(each) for each in evidence]
        self.hits = [source.hit for source in self._sources]
        self._waiting = ""
        self._separator = "\n\n" if writing.text else ""
        self.begun = False
        self.dropped = 0
        self.denied = False  # the model said that the passages don't hold the answer

    async def feed(self, words: str) -> None:
        self._waiting += words
        await self._take(final=False)

    async def end(self) -> None:
        await self._take(final=True)

    def restart(self) -> None:
        self._waiting = ""

    async def _take(self, *, final: bool) -> None:
        done = len(self._waiting) if final else _complete(self._waiting)
        text, self._waiting = self._waiting[:done], self._waiting[done:]
        for start, end, gap in _statements(text):
            await self._statement(text[start:end], gap)

    async def _statement(self, text: str, gap: str) -> None:
        statement = _bare(text)
        if NOT_FOUND in statement.upper():
            self.denied = True
            return
        numbers = self._supported_by(statement, _marks(text))
        if not numbers:
            self.dropped += 1
            return
        marks = "".join(f"[{number}]" for number in dict.fromkeys(numbers))
        lead = (gap or " ") if self.begun else self._separator
        self.begun = True
        await self._writing.add(f"{lead}{_with_marks(statement, marks)}")

    def _supported_by(self, statement: str, marks: Sequence[int]) -> list[int]:
        cited = [self._sources[mark - 1] for mark in marks if 0 < mark <= len(self._sources)]
        bearing = [source for source in cited if support(statement, [source.hit]) is not None]
        if not bearing:
            hit = support(statement, self.hits)
            bearing = [source for source in self._sources if source.hit == hit]
        return [self._writing.cite(source, _best_quote(statement, source.hit)) for source in bearing]


def _quotes(finding: Finding, hits: Sequence[Hit]) -> list[Quote]:
    if not finding["several"]:
        return quote(finding["question"], hits, QUOTES)
    documents = dict.fromkeys(hit.passage.document for hit in hits)
    return [
        quoted
        for document in documents
        for quoted in quote(
            finding["question"], [hit for hit in hits if hit.passage.document == document], _QUOTES_EACH
        )
    ]


def _best_quote(statement: str, hit: Hit) -> Quote:
    best = quote(statement, [hit], 1)
    if best:
        return best[0]
    start, end = borrowed(hit.passage), len(hit.passage.text)
    return Quote(hit, hit.passage.text[start:], start, end)


def as_quotation(text: str, number: int) -> str:
    """A block quote; the brackets of the text itself are kept apart from citations by a word joiner."""
    shown = re.sub(r"\[(?=\s*\d)", "[\u2060", text)
    last = shown.rpartition("\n")[2]
    mark = f"\n\n[{number}]" if _BLOCK.match(last) else f" [{number}]"
    quoted = "\n".join(f"> {line}".rstrip() for line in shown.split("\n"))
    return f"{quoted}{mark}"


def _looked_for(question: str) -> list[str]:
    words = dict.fromkeys(re.findall(r"\w[\w'’./-]*\w|\w", question))
    telling = [word for word in words if content_terms(word)] or list(words)
    return [plain(word) for word in telling[:_LONGEST_WORDS]]


def _complete(text: str) -> int:
    """How much of the text is whole sentences: the last one may go on, and its citation may follow."""
    spans = sentences(text)
    if len(text) > _LONGEST_STATEMENT:
        return len(text)
    for start, _ in reversed(spans[1:]):
        following = text[start:]
        if not _LOOSE_MARKS.match(following) and not following.startswith("["):
            return start
    return 0


def _statements(text: str) -> list[tuple[int, int, str]]:
    """The spans of statements, each with the marks that follow it, and the gap before it where that is a new line."""
    spans: list[tuple[int, int, str]] = []
    for start, end in sentences(text):
        loose = _LOOSE_MARKS.match(text, start)
        place = min(loose.end(), end) if loose else start
        if loose and spans:
            before, _, gap = spans.pop()
            spans.append((before, place, gap))
        if place < end:
            lead = text[spans[-1][1] if spans else 0 : place]
            spans.append((place, end, "\n\n" if lead.count("\n") > 1 else "\n" if "\n" in lead else ""))
    return spans


def _marks(text: str) -> list[int]:
    return [int(number) for match in _MARK.finditer(text) for number in re.findall(r"\d+", match[1] or match[2] or "")]


def _bare(text: str) -> str:
    """The statement without its marks, and without anything that a reader's client would fetch or follow."""
    for pattern, kept in ((_MARK, ""), (_IMAGE, ""), (_LINK, r"\1"), (_TAG, "")):
        text = pattern.sub(kept, text)
    return re.sub(r"[ \t]+([.,;:!?。！？]|$)", r"\1", text).strip()


def _with_marks(statement: str, marks: str) -> str:
    return f"{statement}\n\n{marks}" if _BLOCK.match(statement.rpartition("\n")[2]) else f"{statement} {marks}"
