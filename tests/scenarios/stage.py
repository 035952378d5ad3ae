"""What a person does on a platform, and what a person sees there. Each platform has a driver of its own; the scenarios
know this file alone."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from tests.running import RunningBot

T = TypeVar("T")

SECONDS = 30.0  # that a person waits at most: the tests run on busy machines
SECONDS_FOR_FILES = 110.0
OUTCOMES = ("answer", "clarification", "not_found", "chat", "help", "error", "report", "notice")


class TurnedAway(Exception):
    """The platform told this person alone that it didn't take what they did, and what to do instead."""

    def __init__(self, why: Literal["not allowed", "too late", "not taken"], text: str) -> None:
        super().__init__(text)
        self.why = why
        self.text = text


class NothingHappened(AssertionError):
    """What a person waited for did not come."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Channel:
    id: str


@dataclass(frozen=True, slots=True)
class Post:
    """What somebody posted: a message, or the click on a button."""

    channel: Channel
    thread: str
    message: str


@dataclass(frozen=True, slots=True)
class Source:
    """A citation below an answer. `handle` is what the platform's driver needs to open it."""

    number: int
    name: str
    version: int
    page: int | None
    place: str
    quote: str
    link: str
    handle: str


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as it stands in a thread."""

    message: str
    by_bot: bool
    kind: str
    text: str
    reply_to: str
    sources: tuple[Source, ...]
    options: tuple[str, ...]  # the buttons that can be clicked now
    files: tuple[Verdict, ...]
    edited: bool
    deleted: bool
    card: str  # what the platform's driver needs to click
    chosen: str  # what the card says it was answered with

    @property
    def cited(self) -> set[str]:
        return {source.name for source in self.sources}


@dataclass(frozen=True, slots=True)
class Opened:
    """What a citation opens."""

    text: str | None  # None where it is the file itself, as it was posted
    deleted: bool


class Player(ABC):
    """One person. What they do as a whole sentence is written here, in terms of what a platform's driver can do."""

    name: str
    direct: Channel  # where this person and the bot are alone

    @abstractmethod
    async def post(
        self,
        channel: Channel,
        text: str = "",
        files: Sequence[File] = (),
        *,
        thread: Post | None = None,
        to_bot: bool = False,
    ) -> Post:
        """Post to a channel or into a thread; `to_bot` mentions the bot where a platform needs it."""

    @abstractmethod
    async def click(self, card: Seen, option: str) -> Post: ...

    @abstractmethod
    async def edit(self, post: Post, text: str) -> None: ...

    @abstractmethod
    async def delete(self, post: Post) -> None: ...

    @abstractmethod
    async def thread(self, of: Post) -> list[Seen]:
        """Everything that stands in the thread, the oldest first."""

    @abstractmethod
    async def wait_until(self, of: Post, condition: Callable[[list[Seen]], T | None], seconds: float = SECONDS) -> T:
        """Wait for what this makes of the thread. Raises NothingHappened."""

    @abstractmethod
    async def sees_progress(self, of: Post) -> str:
        """The first sign that the bot is at work on it."""

    @abstractmethod
    async def saw_streamed(self, of: Post) -> list[str]:
        """The pieces of the answer that were shown while it was written."""

    @abstractmethod
    async def opens(self, source: Source) -> Opened: ...

    @abstractmethod
    async def follows(self, link: str) -> Seen:
        """The post that the link of a citation leads to."""

    @abstractmethod
    def mention(self) -> str:
        """How others write this person's name so that it reaches them."""

    @abstractmethod
    def calling(self, text: str) -> str:
        """The same words, with a mention of the bot."""

    async def replies(self, to: Post) -> list[Seen]:
        return replies(to, await self.thread(to))

    async def wait_for_reply(self, to: Post, *, other_than: Seen | None = None, seconds: float = SECONDS) -> Seen:
        """The outcome of a post; progress and notices are none."""

        def outcome(thread: list[Seen]) -> Seen | None:
            known = other_than.message if other_than else ""
            return next((seen for seen in replies(to, thread) if seen.message != known), None)

        return await self.wait_until(to, outcome, seconds)

    async def ask(self, channel: Channel, text: str, files: Sequence[File] = ()) -> Seen:
        return (await self.asks(channel, text, files))[1]

    async def asks(self, channel: Channel, text: str, files: Sequence[File] = ()) -> tuple[Post, Seen]:
        post = await self.post(channel, text, files, to_bot=True)
        return post, await self.wait_for_reply(post)

    async def says(self, within: Post, text: str, files: Sequence[File] = ()) -> Post:
        """Go on in a thread, without a mention."""
        return await self.post(within.channel, text, files, thread=within)

    async def is_told(self, channel: Channel, text: str) -> str:
        """What this person reads when the bot does not take what they say."""
        try:
            refusal = await self.ask(channel, text)
        except TurnedAway as told:
            return told.text
        if refusal.kind != "error":
            raise NothingHappened(f"it was taken: {refusal.kind} {refusal.text}")
        return refusal.text

    async def follow_up(self, within: Post, text: str) -> Seen:
        return await self.wait_for_reply(await self.says(within, text))

    async def share(self, channel: Channel, *files: File) -> Seen:
        return (await self.shares(channel, *files))[1]

    async def shares(self, channel: Channel, *files: File) -> tuple[Post, Seen]:
        post = await self.post(channel, files=files)
        return post, await self.wait_for_reply(post, seconds=SECONDS_FOR_FILES)

    async def clicks(self, card: Seen, option: str) -> Seen:
        return await self.wait_for_reply(await self.click(card, option))


class Stage(ABC):
    """One platform with a running bot. People and channels of one test meet nothing of another's."""

    def __init__(self, bot: RunningBot, tag: str) -> None:
        self._bot = bot
        self._tag = tag

    @abstractmethod
    async def __aenter__(self) -> Stage: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    async def person(self, name: str, *, known: bool = False) -> Player:
        """Somebody new to the bot; `known`: the same person in every test."""

    @abstractmethod
    async def make_channel(
        self, name: str, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> Channel:
        """A channel that these members alone can read, or everyone where they are None."""

    @abstractmethod
    async def change_channel(
        self, channel: Channel, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> None: ...

    async def restart(self) -> None:
        """End the bot with SIGTERM, which must succeed, and start it again."""
        status = await asyncio.to_thread(self._bot.stop)
        assert status == 0, f"SIGTERM ended the bot with {status}:\n{self._bot.log()[-4000:]}"
        await self.start()

    async def kill(self) -> None:
        """SIGKILL."""
        await asyncio.to_thread(self._bot.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self._bot.start)


def replies(to: Post, thread: list[Seen]) -> list[Seen]:
    return [seen for seen in thread if seen.by_bot and seen.reply_to == to.message and seen.kind in OUTCOMES]
