"""From outcomes to replies, and replies to parts that fit a platform."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from agent.outcomes import Answer, Clarification, Nearest
from bot.messages import FileLine, Reply, Shortcut
from ingest.ingestor import Verdict
from storage.models import Document

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
CITED = re.compile(r"\[(\d+)\]")


def answer(outcome: Answer) -> Reply:
    """An answer with what was degraded said below it."""
    text = "\n\n".join([outcome.text, *(f"_{each}_" for each in outcome.usage.degraded)])
    found = outcome.kind == "answer"
    return Reply(kind=outcome.kind, text=text, citations=outcome.citations, nearest=outcome.nearest, feedback=found)


def clarification(outcome: Clarification, id: str) -> Reply:
    return Reply(kind="clarification", text=outcome.text, options=outcome.options, clarification=id)


def closed_card(text: str, state: str, choice: Mapping[str, object] | None) -> Reply:
    """A clarification's card whose buttons have given way."""
    if state == "decided" and choice is not None:
        text = f"{text}\n\n✓ {choice['text'] or '_deleted_'}"
    elif state == "expired":
        text = f"{text}\n\n_This question has expired: ask again._"
    elif state == "withdrawn":
        text = f"{text}\n\n_The question was changed or deleted._"
    return Reply(kind="clarification", text=text)


def introduction() -> Reply:
    """What the bot says where it was invited."""
    text = (
        "Hello! I answer questions from your team's own files, with a link to the place for every statement. "
        "Mention me with a question, here or in a thread; `help` tells more.\n\n"
        "**Shall I learn the files that are posted here?**"
    )
    yes = Shortcut(label="Yes, learn them", command="settings knowledge on")
    no = Shortcut(label="No", command="settings knowledge off")
    return Reply(kind="help", text=text, shortcuts=(yes, no))


def report(verdicts: Sequence[Verdict]) -> Reply:
    """One line for each file of a post."""
    lines = tuple(file_line(verdict) for verdict in verdicts)
    return Reply(kind="report", text="\n".join(f"- {line.text}" for line in lines), files=lines)


def with_files(reply: Reply, verdicts: Sequence[Verdict]) -> Reply:
    """A reply to a post that had files and a question: the files first, then the answer."""
    if not verdicts:
        return reply
    files = report(verdicts)
    return reply.model_copy(update={"text": f"{files.text}\n\n{reply.text}", "files": files.files})


def changed_source(document: Document) -> Reply:
    """It names the document, so it is held against the audience before it is sent."""
    text = f"_A source of an answer above has changed: *{_plain(document.name)}* is now version {document.version}._"
    named = Nearest(document=document.document, version=document.version, name=document.name, link=document.link)
    return Reply(kind="notice", text=text, nearest=(named,))


def error(text: str) -> Reply:
    return Reply(kind="error", text=text)


def notice(text: str) -> Reply:
    return Reply(kind="notice", text=text)


def file_line(verdict: Verdict) -> FileLine:
    return FileLine(
        name=verdict.name,
        verdict=verdict.verdict,
        reason=verdict.reason,
        text=f"*{_plain(verdict.name)}*: {_fate(verdict)}",
    )


def _fate(verdict: Verdict) -> str:
    if verdict.verdict == "refused":
        return f"not read: {verdict.reason}"
    if verdict.verdict == "unchanged":
        return "already known"
    if verdict.verdict == "superseded" and verdict.replaces_version is None:
        return f"version {verdict.version}: {verdict.reason}"
    size = f"{counted(verdict.pages, 'page')}, " if verdict.pages else ""
    ready = f"{size}{counted(verdict.passages, 'passage')}, ready"
    if verdict.verdict == "superseded":
        before = f" of {day(verdict.replaces)}" if verdict.replaces is not None else ""
        ready = f"version {verdict.version}, replaces version {verdict.replaces_version}{before}: {ready}"
    return f"{ready} ({verdict.reason})" if verdict.reason else ready


def day(seconds: float) -> str:
    """A date as a person says it: 3 March 2026."""
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.day} {when:%B %Y}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _plain(text: str) -> str:
    """A name in Markdown that shows as it is."""
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text)


def split(reply: Reply, characters: int) -> list[Reply]:
    """Parts of at most `characters`, cut between paragraphs, rows or lines; nothing is left out.

    Each part carries the citations that it names; files go with the first, options and feedback with the last.
    """
    if len(reply.text) <= characters:
        return [reply]
    texts = list(_packed(_blocks(reply.text), characters))
    return [
        reply.model_copy(
            update={
                "text": text,
                "citations": tuple(each for each in reply.citations if each.number in _numbers(text)),
                "files": reply.files if number == 0 else (),
                "options": reply.options if number == len(texts) - 1 else (),
                "clarification": reply.clarification if number == len(texts) - 1 else "",
                "feedback": reply.feedback and number == len(texts) - 1,
            }
        )
        for number, text in enumerate(texts)
    ]


def _numbers(text: str) -> set[int]:
    return {int(number) for number in CITED.findall(text)}


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, with each code fence whole."""
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and opened[1].startswith(fence):
            fence = ""
        if not line.strip() and not fence and block:
            yield "\n".join(block)
            block = []
        else:
            block.append(line)
    if block:
        yield "\n".join(block)


def _packed(blocks: Iterator[str], characters: int) -> Iterator[str]:
    part = ""
    for block in blocks:
        for piece in _fitting(block, characters):
            joined = f"{part}\n\n{piece}" if part else piece
            if len(joined) > characters:
                yield part
                joined = piece
            part = joined
    if part:
        yield part


def _fitting(block: str, characters: int) -> Iterator[str]:
    """A block as it is, or cut into pieces that fit: between lines, a fence closed and opened again at each cut."""
    if len(block) <= characters:
        yield block
        return
    lines = block.split("\n")
    opened = FENCE.match(lines[0])
    head, tail = (f"{lines[0]}\n", f"\n{opened[1]}") if opened else ("", "")
    inner = lines[1:-1] if opened and FENCE.match(lines[-1]) else lines[1:] if opened else lines
    room = characters - len(head) - len(tail)
    piece = ""
    for line in (short for long in inner for short in _short(long, room)):
        joined = f"{piece}\n{line}" if piece else line
        if len(joined) > room:
            yield f"{head}{piece}{tail}"
            joined = line
        piece = joined
    yield f"{head}{piece}{tail}"


def _short(line: str, room: int) -> Iterator[str]:
    """A line cut at spaces, or anywhere where there is none."""
    while len(line) > room:
        at = line.rfind(" ", 1, room + 1)
        at = at if at > 0 else room
        yield line[:at]
        line = line[at:].lstrip(" ")
    yield line
