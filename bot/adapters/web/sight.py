"""What a person may see: asked anew for each request and each event."""

from __future__ import annotations

from bot.adapters.web import shapes
from bot.adapters.web.bodies import Caller
from bot.adapters.web.desk import PLATFORM, Desk
from bot.adapters.web.errors import WebError
from storage.channels import DIRECT, Channel, unborn
from storage.clarifications import Clarification
from storage.models import Document, channel_audience, thread_audience
from storage.transcript import Line

FIRST_CHANNEL = "general"
NOT_A_MEMBER = "You are not a member of this channel. Ask one of its members to add you."


class Sight:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def channel(self, who: Caller, channel: str) -> Channel:
        """The channel, or how it would begin. Raises WebError where this person doesn't see it."""
        found = await self._desk.channels.get(PLATFORM, who.workspace, channel) or unborn(
            PLATFORM, who.workspace, channel, who.user
        )
        if not found.sees(who.user):
            raise WebError(403, NOT_A_MEMBER)
        return found

    async def sees(self, who: Caller, channel: str) -> bool:
        found = await self._desk.channels.get(PLATFORM, who.workspace, channel)
        return found is not None and found.sees(who.user)

    async def channels(self, who: Caller) -> list[Channel]:
        """All that this person sees, the first channel and their own always among them."""
        found = await self._desk.channels.visible(PLATFORM, who.workspace, who.user)
        known = {channel.channel for channel in found}
        for name in (FIRST_CHANNEL, DIRECT + who.user):
            if name not in known and await self._desk.channels.get(PLATFORM, who.workspace, name) is None:
                found.append(unborn(PLATFORM, who.workspace, name, who.user))
        return sorted(found, key=lambda channel: (channel.visibility == "direct", channel.channel))

    async def document(self, who: Caller, document: str, version: int | None) -> Document:
        """A document of theirs to see. Raises WebError where there is none, or it is not for them."""
        found = await self._desk.documents.get(document, version)
        if found is None or found.workspace != who.workspace or not await self._reads(who, found):
            raise WebError(404, "There is no such document.")
        return found

    async def line(self, who: Caller, message: str) -> Line:
        """A message of theirs to see. What is none of theirs is told apart from what isn't there by nobody: ids of
        replies count up."""
        found = await self._desk.transcript.find(PLATFORM, who.workspace, message)
        if found is None or not await self.sees(who, found.channel):
            raise WebError(404, "There is no such message.")
        return found

    async def thread(self, who: Caller, thread: str) -> list[Line]:
        """What stands in a thread of theirs to see; never empty. Raises WebError."""
        lines = await self._desk.transcript.thread(PLATFORM, who.workspace, thread)
        for channel in dict.fromkeys(line.channel for line in lines):
            if await self.sees(who, channel):
                return [line for line in lines if line.channel == channel]
        raise WebError(404, "There is no such thread.")

    async def card(self, who: Caller, clarification: str) -> Clarification:
        """A question back of theirs to see. Raises WebError."""
        card = await self._desk.clarifications.find(clarification)
        if card is not None and (card.platform, card.workspace) == (PLATFORM, who.workspace):
            if await self.sees(who, card.channel):
                return card
        raise WebError(404, "There is no such question.")

    async def message(self, line: Line) -> shapes.Json:
        """As it is shown now: a card that waits offers its asker what can be answered from."""
        if line.clarification_state != "open" or line.deleted:
            return shapes.message(line, [])
        scope = await self._desk.channels.scope(PLATFORM, line.workspace, line.channel, line.asker, line.thread)
        return shapes.message(line, await self._desk.documents.offered(scope, line.options))

    async def audiences(self, who: Caller) -> set[str]:
        return {channel_audience(channel.channel) for channel in await self.channels(who)}

    async def _reads(self, who: Caller, document: Document) -> bool:
        here = document.audience == channel_audience(document.channel)
        in_thread = document.audience.startswith(thread_audience(document.channel, ""))
        return (here or in_thread) and await self.sees(who, document.channel)
