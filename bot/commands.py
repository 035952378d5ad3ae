"""Words that are commands to the bot: help, docs, forget, settings, stop, try again, start over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.understanding import without_mentions
from bot.messages import Reply
from bot.rendering import counted, day
from storage.channels import Channel, Channels
from storage.documents import Documents
from storage.models import Document, Scope

Name = Literal["help", "docs", "forget", "settings", "stop", "try again", "start over"]

WORDS: dict[Name, str] = {
    "help": r"/?help|what can you do|how do you work|hilfe|帮助|你能做什么",
    "docs": r"/?docs|/?documents|list (?:the )?(?:docs|documents|files)|what do you know(?: here)?|文档",
    "forget": r"/?forget(?: (?P<forget>(?!me$|about me$).+))?",
    "settings": r"/?settings(?: (?P<settings>.+))?",
    "stop": r"/?stop|cancel",
    "try again": r"/?try again|/?retry",
    "start over": r"/?start over|/?reset",
}
COMMAND = re.compile("|".join(f"(?P<c{number}>{words})" for number, words in enumerate(WORDS.values())), re.IGNORECASE)

LISTED = 50  # documents in one reply


@dataclass(frozen=True, slots=True)
class Command:
    name: Name
    rest: str = ""


def parse(text: str) -> Command | None:
    """The command that a message is, if it is one."""
    found = COMMAND.fullmatch(without_mentions(text).rstrip("?!.。？！ "))
    if found is None:
        return None
    name = next(name for number, name in enumerate(WORDS) if found[f"c{number}"] is not None)
    return Command(name, (found["forget"] or found["settings"] or "").strip())


@dataclass(frozen=True, slots=True)
class Caller:
    """Who gives a command, where, and what a reply there may draw on."""

    user: str
    channel: Channel
    scope: Scope
    manages: bool


class Commands:
    def __init__(self, documents: Documents, channels: Channels) -> None:
        self._documents = documents
        self._channels = channels

    async def help(self, caller: Caller) -> Reply:
        documents = await self._documents.visible(caller.scope)
        examples = [await self._example(document) for document in documents[:3]]
        tried = "\n".join(f"- *{example}*" for example in examples) or "- *What is the notice period?*"
        knows = (
            f"I know {len(documents):,} document{'s' if len(documents) != 1 else ''} here."
            if documents
            else ("I know nothing here yet: drop a file into this channel and I learn it.")
        )
        text = (
            "I answer questions from your team's own files, with a link to the place for every statement. "
            f"{knows}\n\n**Ask**, for example:\n{tried}\n\n"
            "**Post a file** and I learn it; post it again under the same name and the new version replaces the old.\n"
            "If a question is unclear, I ask back: click, or just type.\n\n"
            "**Words I know**: `docs` (what I know here), `forget NAME`, `settings`, `stop`, `try again`, `start over`."
        )
        return Reply(kind="help", text=text)

    async def _example(self, document: Document) -> str:
        """A question that this document answers: about a heading of its first sections, below the title."""
        for section in await self._documents.sections(document.key, range(1, 6)):
            path = section.headings_at(len(section.text))
            if len(path) > 1:
                return f"What does {document.name} say about {path[-1]}?"
        return f"What is in {document.name}?"

    async def docs(self, caller: Caller) -> Reply:
        documents = await self._documents.visible(caller.scope)
        if not documents:
            return Reply(
                kind="help", text="I know no documents here yet. Drop a file into this channel and I learn it."
            )
        lines = [_listed(document) for document in documents[:LISTED]]
        more = len(documents) - len(lines)
        if more:
            lines.append(f"- … and {more:,} more")
        return Reply(kind="help", text="\n".join(["What I know here:", "", *lines]))

    async def forget(self, caller: Caller, name: str) -> Reply:
        if not name:
            return Reply(kind="error", text="Which document? Say `forget NAME`; `docs` lists what I know.")
        found = _named(await self._documents.visible(caller.scope), name)
        if not found:
            return Reply(kind="error", text=f"I know no document called “{name}” here. `docs` lists what I know.")
        allowed = [each for each in found if await self._may_forget(caller, each)]
        if not allowed:
            return Reply(
                kind="error",
                text=f"“{found[0].name}” can be forgotten by {found[0].posted_by}, who posted it, "
                "or by who manages its channel.",
            )
        for document in allowed:
            await self._documents.forget(document.document)
        return Reply(kind="notice", text="\n".join(f"Forgotten: *{document.name}*." for document in allowed))

    async def _may_forget(self, caller: Caller, document: Document) -> bool:
        if document.posted_by == caller.user:
            return True
        return caller.manages and document.channel == caller.channel.channel

    async def settings(self, caller: Caller, change: str) -> Reply:
        if not change:
            return Reply(kind="help", text=_settings(caller.channel))
        if not caller.manages:
            return Reply(kind="error", text="The settings are changed by who manages this channel.")
        if _changed(caller.channel, change) is None:
            return Reply(kind="error", text=f"I don't know that setting.\n\n{_settings(caller.channel)}")
        channel = caller.channel
        changed = await self._channels.change(
            channel.platform, channel.workspace, channel.channel, caller.user, lambda now: _changed(now, change) or now
        )
        return Reply(kind="notice", text=f"Done.\n\n{_settings(changed)}")


def _listed(document: Document) -> str:
    size = f"{counted(document.pages, 'page')}, " if document.pages else ""
    return (
        f"- **{document.name}**, version {document.version} of {day(document.posted_at)}: "
        f"{size}{counted(document.passages, 'passage')}, {_bytes(document.size)}, posted by {document.posted_by}"
        + (f" in {document.channel}" if document.channel else "")
    )


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:,.0f} KB" if size < 1024**2 else f"{size / 1024**2:,.1f} MB"


def _named(documents: Sequence[Document], name: str) -> list[Document]:
    """The documents of this name or id; else those whose name without extension it is."""
    wanted = name.strip("\"'“”*` ").casefold()
    exact = [each for each in documents if wanted in (each.name.casefold(), each.document)]
    return exact or [each for each in documents if each.name.casefold().rpartition(".")[0] == wanted]


def _settings(channel: Channel) -> str:
    return (
        f"Settings of {channel.channel}:\n\n"
        f"- `settings knowledge on|off`: files posted here are learnt: **{_on(channel.knowledge)}**\n"
        f"- `settings answer mention|threads|always`: when I answer: **{channel.answer}**; "
        "where I don't always, mention me: on the page as `@bot`\n"
        f"- `settings quiet on|off`: a reaction instead of a report: **{_on(channel.quiet)}**\n"
        f"- `settings model NAME|default`: who writes the answers: **{channel.model or 'default'}**"
    )


def _on(value: bool) -> str:
    return "on" if value else "off"


def _changed(channel: Channel, change: str) -> Channel | None:
    key, _, value = change.lower().partition(" ")
    value = value.strip()
    if key in ("knowledge", "quiet") and value in ("on", "off", "yes", "no"):
        on = value in ("on", "yes")
        return replace(channel, knowledge=on) if key == "knowledge" else replace(channel, quiet=on)
    if key == "answer" and value in ("mention", "threads", "always"):
        return replace(channel, answer=value)
    if key == "model" and value:
        return replace(channel, model="" if value == "default" else change.partition(" ")[2].strip())
    return None
