"""Slack: a person is one of a workspace on the project's own Slack server, to which the bot is connected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.running import RunningBot
from tests.scenarios.stage import (
    SECONDS,
    Channel,
    File,
    NothingHappened,
    Opened,
    Player,
    Post,
    Seen,
    Source,
    Stage,
    TurnedAway,
    Verdict,
)
from tests.slack import workspace
from tests.slack.errors import SlackError
from tests.slack.people import NotThere, Person
from tests.slack.seeing import Shown
from tests.slack.server import SlackServer
from tests.slack.shapes import unescaped
from tests.slack.uploads import Upload
from tests.slack.workspace import Installation, Message

T = TypeVar("T")
ANSWERED = 5.0  # seconds for what one person alone is told
ESCAPED = re.compile(r"\\([\\`*_\[\]<>])")


@dataclass(frozen=True)
class Workspace:
    """A team of its own for each bot, with the app that it runs."""

    server: SlackServer
    installation: Installation
    owner: Person

    @classmethod
    def founded(cls, server: SlackServer, name: str) -> Workspace:
        team = server.team(name)
        owner = server.person(team, "owner", is_owner=True, is_admin=True)
        app = server.app(f"Threadlore of {name}", commands=("/threadlore",), shortcuts=("ask",))
        return cls(server, server.install(app, owner), owner)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.installation.token,
            "SLACK_APP_TOKEN": self.installation.app.app_token,
            "SLACK_API_URL": self.server.api_url,
        }


class SlackStage(Stage):
    def __init__(self, bot: RunningBot, tag: str, here: Workspace) -> None:
        super().__init__(bot, tag)
        self._here = here

    async def __aenter__(self) -> SlackStage:
        if not self._bot.is_running:
            await self.start()
        await self._here.server.until_connected(self._here.installation.app, seconds=SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def person(self, name: str, *, known: bool = False) -> SlackPlayer:
        full_name = name if known else f"{name}-{self._tag}"
        team = self._here.installation.team
        found = next((user for user in self._here.server.slack.users.values() if user.name == full_name), None)
        if found is None:
            return SlackPlayer(self._here, self._here.server.person(team, full_name))
        return SlackPlayer(self._here, Person(self._here.server.slack, self._here.server.deliveries, found))

    async def make_channel(
        self, name: str, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> Channel:
        assert isinstance(by, SlackPlayer)
        people = [member.person for member in members or () if isinstance(member, SlackPlayer)]
        made = self._here.server.channel(
            f"{name}-{self._tag}",
            by=by.person,
            members=people,
            private=members is not None,
        )
        await by.person.invites(made, self._here.installation)
        await by.answers_introduction(made, knowledge)
        return Channel(made.id)

    async def change_channel(
        self, channel: Channel, *, by: Player, members: Sequence[Player] | None = None, knowledge: bool = True
    ) -> None:
        assert isinstance(by, SlackPlayer)
        here = self._here.server.slack.channels[channel.id]
        if members is not None:
            wanted = [member.person for member in members if isinstance(member, SlackPlayer)]
            if not here.is_private:
                await by.person.converts(here, "private")
            for user in [*here.members]:
                if not user.is_bot and user not in [person.user for person in wanted]:
                    await by.person.removes(here, Person(self._here.server.slack, self._here.server.deliveries, user))
            await by.person.invites(here, *(person for person in wanted if person.user not in here.members))
        elif here.is_private:
            await by.person.converts(here, "public")
        await self._here.server.until_settled(self._here.installation.app)
        await by.answers_introduction(here, knowledge)

    async def start(self) -> None:
        await super().start()
        await self._here.server.until_connected(self._here.installation.app, seconds=SECONDS)


class SlackPlayer(Player):
    def __init__(self, here: Workspace, person: Person) -> None:
        self._here = here
        self.person = person
        self.name = person.name
        self.direct = Channel(person.direct(here.installation).id)

    async def post(
        self,
        channel: Channel,
        text: str = "",
        files: Sequence[File] = (),
        *,
        thread: Post | None = None,
        to_bot: bool = False,
    ) -> Post:
        here = self._channel(channel)
        if to_bot and here.type != "im":
            text = self.calling(text)
        if self.person.user not in here.members and not here.is_private:
            await self.person.joins(here)
        try:
            message = await self.person.posts(
                here,
                text,
                files=[Upload(file.name, file.content) for file in files],
                thread=thread.thread if thread else "",
            )
        except (SlackError, NotThere) as refused:
            raise TurnedAway("not allowed", str(refused)) from None
        return Post(channel, message.root_ts, message.ts)

    async def answers_introduction(self, channel: workspace.Channel, learn: bool) -> None:
        """Clicks whether the bot is to learn here, and waits until it has heard."""

        def introduction() -> Shown | None:
            return next((shown for shown in self.person.channel(channel) if shown.by_app and shown.buttons), None)

        shown = await self.person.waits_for(introduction, SECONDS)
        before = len(self.person.thread(shown.message))
        await self.person.clicks(shown, "Yes, learn them" if learn else "No")
        await self.person.waits_for(lambda: len(self.person.thread(shown.message)) > before or None, SECONDS)

    async def click(self, card: Seen, option: str) -> Post:
        channel, _, ts = card.card.partition("\n")
        message = self._channel(Channel(channel)).messages[ts]
        before = len(self._whispers(message))
        try:
            delivery = await self.person.clicks(self.person.sees(message), option)
        except NotThere as gone:
            raise TurnedAway("too late", str(gone)) from None
        action = delivery.payload["actions"][0]
        post = Post(Channel(channel), message.root_ts, f"{self.person.id}.{action['action_ts']}")
        await asyncio.sleep(0)
        told = self._whispers(message)[before:]
        if told and self._seen(Channel(channel), self.person.sees(message)).chosen != option:
            raise TurnedAway("not allowed" if "who asked" in told[-1] else "too late", told[-1])
        return post

    async def edit(self, post: Post, text: str) -> None:
        message = self._message(post)
        mention = self._here.installation.bot.mention
        try:
            await self.person.edits(message, f"{mention} {text}" if mention in message.text else text)
        except (SlackError, NotThere) as refused:
            raise TurnedAway("not allowed", str(refused)) from None

    async def delete(self, post: Post) -> None:
        try:
            await self.person.deletes(self._message(post))
        except (SlackError, NotThere) as refused:
            raise TurnedAway("not allowed", str(refused)) from None
        await self._here.server.until_settled(self._here.installation.app)

    async def thread(self, of: Post) -> list[Seen]:
        try:
            shown = self.person.thread(self._root(of))
        except NotThere as refused:
            raise TurnedAway("not allowed", str(refused)) from None
        return [self._seen(of.channel, each) for each in shown if not each.only_for_me]

    async def wait_until(self, of: Post, condition: Callable[[list[Seen]], T | None], seconds: float = SECONDS) -> T:
        def find() -> T | None:
            shown = self.person.thread(self._root(of))
            return condition([self._seen(of.channel, each) for each in shown if not each.only_for_me])

        try:
            return await self.person.waits_for(find, seconds)
        except TimeoutError:
            shown = "\n".join(each.text for each in self.person.thread(self._root(of)))
            raise NothingHappened(f"{self.name} waited {seconds} s at {of} and saw:\n{shown}") from None

    async def is_told(self, channel: Channel, text: str) -> str:
        post = await self.post(channel, text, to_bot=True)
        message = self._message(post)

        def told() -> str | None:
            whispered = self._whispers(message)
            replied = [each.text for each in self.person.thread(message) if each.by_app]
            return next(iter([*whispered, *replied]), None)

        return await self.person.waits_for(told, ANSWERED)

    async def sees_progress(self, of: Post) -> str:
        message = self._message(of)

        def sign() -> str | None:
            status = self.person.status(message)
            return status or next(iter(message.reactions), None)

        return await self.person.waits_for(sign, SECONDS)

    async def saw_streamed(self, of: Post) -> list[str]:
        return [_words(each) for each in self.person.thread(self._root(of)) if each.by_app]

    async def opens(self, source: Source) -> Opened:
        found = await self._followed(source.link)
        if found.deleted or not found.files:
            return Opened("", deleted=True)
        file = next(each for each in found.files if each.name == source.name)
        is_plain = file.name.endswith((".md", ".txt")) and file.content.isascii()
        return Opened(file.content.decode() if is_plain else None, deleted=False)

    async def follows(self, link: str) -> Seen:
        shown = await self._followed(link)
        return self._seen(Channel(shown.message.channel.id), shown)

    def mention(self) -> str:
        return self.person.mention

    def calling(self, text: str) -> str:
        return f"{self._here.installation.bot.mention} {text}"

    async def _followed(self, link: str) -> Shown:
        found = re.search(r"/archives/(\w+)/p(\d+)(\d{6})", link)
        assert found, link
        channel = self._here.server.slack.channels[found[1]]
        message = channel.messages.get(f"{found[2]}.{found[3]}")
        if self.person.user not in channel.members and channel.is_private:
            raise TurnedAway("not allowed", "You can't see that channel.")
        if message is None:
            raise TurnedAway("not taken", "This message was deleted.")
        return self.person.sees(message)

    def _channel(self, channel: Channel) -> workspace.Channel:
        return self._here.server.slack.channels[channel.id]

    def _message(self, post: Post) -> Message:
        return self._channel(post.channel).messages[post.message]

    def _root(self, post: Post) -> Message:
        return self._channel(post.channel).messages[post.thread]

    def _whispers(self, message: Message) -> list[str]:
        return [each.text for each in message.channel.ephemerals if each.only_for is self.person.user]

    def _seen(self, channel: Channel, shown: Shown) -> Seen:
        payload = (shown.message.metadata or {}).get("event_payload", {})
        text = ESCAPED.sub(r"\1", _words(shown))
        if not shown.by_app:
            text = text.removeprefix(f"@{self._here.installation.bot.name}").strip()
        return Seen(
            message=shown.ts,
            by_bot=shown.by_app,
            kind=str(payload.get("kind", "" if shown.by_app else "message")),
            text=text,
            reply_to=str(payload.get("reply_to", "")),
            sources=tuple(_sources(shown, payload)),
            options=tuple(button.text for button in shown.buttons if button.action_id.startswith("choose")),
            files=tuple(_verdicts(text) if shown.by_app else (Verdict(each.name, "", "") for each in shown.files)),
            edited=shown.edited,
            deleted=shown.deleted,
            card=f"{channel.id}\n{shown.ts}",
            chosen=text.partition("✓ ")[2],
        )


_SOURCE = re.compile(
    r"\[(?P<number>\d+)\] (?:<(?P<link>[^|>]+)\|(?P<linked>[^>]*)>|(?P<plain>[^,\n]*))(?:, (?P<place>[^\n]*))?"
)


def _words(shown: Shown) -> str:
    """What the bot says, without what stands below it."""
    blocks = shown.message.blocks
    return str(blocks[0]["text"]) if blocks and blocks[0]["type"] == "markdown" else shown.text


def _sources(shown: Shown, payload: workspace.Json) -> list[Source]:
    below = "\n".join(
        element["text"] for block in shown.message.blocks if block["type"] == "context" for element in block["elements"]
    )
    cited = {each["number"]: each for each in payload.get("citations", [])}
    found = []
    for line in _SOURCE.finditer(below):
        number, place = int(line["number"]), unescaped(line["place"] or "")
        found.append(
            Source(
                number=number,
                name=unescaped(line["linked"] or line["plain"] or ""),
                version=int(cited.get(number, {}).get("version", 0)),
                page=cited.get(number, {}).get("page"),
                place=place,
                quote=_quoted(_words(shown), number),
                link=unescaped(line["link"] or ""),
                handle="",
            )
        )
    return found


def _quoted(text: str, number: int) -> str:
    """What stands as a quotation before this number."""
    paragraphs = re.split(r"\n\s*\n", text)
    for before, paragraph in zip(["", *paragraphs], paragraphs, strict=False):
        if before and re.fullmatch(rf"\s*(?:\[\d+\]\s*)*\[{number}\]\s*(?:\[\d+\]\s*)*", paragraph):
            return before.strip()  # a table's stand below it
        if re.search(rf"\[{number}\]\s*(?:\[\d+\]\s*)*$", paragraph) and paragraph.lstrip().startswith(">"):
            lines = [line.removeprefix(">").strip() for line in paragraph.splitlines()]
            return ESCAPED.sub(r"\1", re.sub(r"\s*(?:\[\d+\]\s*)+$", "", "\n".join(lines)))
    return ""


def _verdicts(text: str) -> list[Verdict]:
    found = []
    for line in text.splitlines():
        named = re.match(r"- \*(?P<name>.+?)\*: (?P<fate>.*)", line)
        if named is None:
            continue
        fate = named["fate"]
        verdict = "superseded" if "replaces version" in fate else "indexed"
        verdict = next((kind for words, kind in _FATES.items() if words in fate), verdict)
        reason = fate.partition("not read: ")[2]
        found.append(Verdict(named["name"], verdict, reason))
    return found


_FATES = {"already known": "unchanged", "not read: ": "refused"}
