"""How things look in the page's JSON."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from storage.channels import Channel
from storage.models import Anchor, Document, DocumentState, Hit, Passage, Section
from storage.transcript import Line, ThreadLine

Json = dict[str, Any]


def message(line: Line, options: list[Json]) -> Json:
    """`options` are the buttons that can be clicked now."""
    return {
        "message": line.message,
        "thread": line.thread,
        "channel": line.channel,
        "author": line.author,
        "user": line.user,
        "text": "" if line.deleted else line.text,
        "reply_to": line.reply_to,
        "kind": line.kind,
        "citations": [] if line.deleted else line.citations,
        "options": options,
        "clarification": clarification(line),
        "files": [] if line.deleted else line.files,
        "sent_at": line.sent_at,
        "edited": line.edited,
        "deleted": line.deleted,
    }


def clarification(line: Line) -> Json | None:
    if not line.clarification:
        return None
    return {
        "id": line.clarification,
        "state": line.clarification_state,
        "asker": line.asker,
        "choice": line.choice,
    }


def thread(line: ThreadLine) -> Json:
    return {
        "thread": line.thread,
        "channel": line.channel,
        "text": line.text,
        "user": line.user,
        "messages": line.messages,
        "last": line.last,
    }


def channel(found: Channel) -> Json:
    """Whoever sees a channel of the page manages it."""
    return {
        "channel": found.channel,
        "visibility": found.visibility,
        "members": sorted(found.members),
        "knowledge": found.knowledge,
        "quiet": found.quiet,
        "manages": True,
    }


def document(found: Document) -> Json:
    return {
        "document": found.document,
        "version": found.version,
        "name": found.name,
        "channel": found.channel,
        "verdict": "indexed" if found.verdict == "superseded" else found.verdict,  # said of the upload: it replaced one
        "reason": found.reason,
        "pages": found.pages,
        "passages": found.passages,
        "size": found.size,
        "posted_by": found.posted_by,
        "posted_at": found.posted_at,
        "link": found.link,
        "thread": _thread_of(found.link) or found.message,
    }


def section(found: Document, number: int, of: Section | None) -> Json:
    """What a citation opens. Of a deleted document nothing is told but its name."""
    return {
        "document": found.document,
        "version": found.version,
        "name": found.name,
        "channel": found.channel,
        "section": number,
        "headings": list(of.headings) if of else [],
        "place": of.place_at(0) if of else "",
        "text": of.text if of else "",
        "state": found.state.value,
        "deleted": found.state is DocumentState.DELETED,
        "link": found.link,
    }


def hit(found: Hit) -> Json:
    passage_ = found.passage
    return {
        "document": passage_.document,
        "name": passage_.name,
        "passage": passage_.id,
        "page": passage_.page,
        "place": passage_.place,
        "score": round(found.score, 6),
        "text": passage_.text,
    }


def passage(found: Passage) -> Json:
    return {
        "document": found.document,
        "version": found.version,
        "passage": found.id,
        "section": found.section,
        "page": found.page,
        "place": found.place,
        "text": found.text,
    }


def whole_text(sections: list[Section]) -> str:
    """The document as it was read, with a comment before each place."""
    pieces: list[str] = []
    last = ""
    for each in sections:
        start = 0
        for anchor in each.anchors:
            pieces.append(each.text[start : anchor.offset])
            start = anchor.offset
            if anchor.place and anchor.place != last:
                pieces.append(_comment(anchor, pieces))
                last = anchor.place
        pieces.append(each.text[start:])
    return "".join(pieces)


def _comment(anchor: Anchor, before: list[str]) -> str:
    """On a line of its own, wherever it stands."""
    text = next((piece for piece in reversed(before) if piece), "\n")
    return ("" if text.endswith("\n") else "\n") + f"<!-- {anchor.place.replace('--', '- -')} -->\n"


def _thread_of(link: str) -> str:
    """The thread in a post's link."""
    parts = link.partition("/#/")[2].split("/")
    return unquote(parts[1]) if len(parts) > 1 else ""
