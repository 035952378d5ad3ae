"""A reply as Slack shows it: its Markdown, the sources below it, buttons. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from agent.outcomes import Citation
from bot.adapters.slack.events import CHOOSE, COMMAND, RATE
from bot.messages import Reply

CHARACTERS = 11_000  # of a Markdown block, which holds 12,000: what escaping adds needs room
LONGEST_FALLBACK = 3_000  # characters of the text that notifications show
LONGEST_BUTTON = 75
LONGEST_SOURCE = 250
MOST_SOURCES = 20
_PING = re.compile(r"<(?=[@!#])|@(?=here\b|channel\b|everyone\b)")

Block = dict[str, Any]


def blocks_of(reply: Reply, mark: str) -> list[Block]:
    """`mark` is the id of the first block, by which the reply is found again."""
    blocks: list[Block] = [{"type": "markdown", "block_id": mark, "text": harmless(reply.text) or " "}]
    if reply.citations:
        blocks.append(_context(_sources(reply.citations)))
    elif reply.nearest:
        named = " · ".join(_linked(each.name, each.link) for each in reply.nearest)
        blocks.append(_context([f"Nearest: {named}"]))
    if reply.options:
        blocks.append(_choices(reply))
    if reply.shortcuts:
        blocks.append(_shortcuts(reply))
    if reply.feedback:
        blocks.append(_feedback())
    return blocks


def fallback(reply: Reply) -> str:
    """What a notification says, and a client that shows no blocks."""
    return escaped(reply.text)[:LONGEST_FALLBACK]


def harmless(text: str) -> str:
    """Markdown in which nothing that a file or a person wrote calls anybody."""
    return _PING.sub(lambda found: found[0] + "\u200b" if found[0] == "@" else "&lt;", text)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _context(texts: Sequence[str]) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True} for text in texts]}


def _sources(citations: Sequence[Citation]) -> list[str]:
    lines = [
        f"[{each.number}] {_linked(each.name, each.link)}{f', {escaped(each.place)}' if each.place else ''}"
        for each in citations
    ]
    shown = lines[:MOST_SOURCES]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    return ["\n".join(shown[start : start + 5]) for start in range(0, len(shown), 5)]


def _linked(name: str, link: str) -> str:
    shown = escaped(name[:LONGEST_SOURCE]).replace("|", "¦")
    return f"<{link}|{shown}>" if link.startswith("https://") else shown


def _shortcuts(reply: Reply) -> Block:
    return _actions(
        _button(f"{COMMAND}:{number}", shortcut.label, shortcut.command)
        for number, shortcut in enumerate(reply.shortcuts)
    )


def _choices(reply: Reply) -> Block:
    return _actions(
        _button(f"{CHOOSE}:{number}", option.label, f"{reply.clarification}:{number}")
        for number, option in enumerate(reply.options)
    )


def _feedback() -> Block:
    return _actions([_button(f"{RATE}:1", "👍", "1"), _button(f"{RATE}:-1", "👎", "-1")])


def _actions(buttons: Iterable[Block]) -> Block:
    return {"type": "actions", "elements": [*buttons]}


def _button(action: str, label: str, value: str) -> Block:
    text = {"type": "plain_text", "text": _short(label), "emoji": True}
    return {"type": "button", "action_id": action, "value": value, "text": text}


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_BUTTON else f"{label[: LONGEST_BUTTON - 1]}…"
