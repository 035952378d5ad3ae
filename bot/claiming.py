"""Claiming: an incoming message is in the journal, with all that follows from it at once, or it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from bot import commands
from bot.messages import Attachment, Incoming, Kind
from bot.platform import Claim, Refused, Why
from bot.rows import QUESTION, Stores, file_rows, new_row, place_of
from storage.channels import PAGE, Channel
from storage.clarifications import Clarification
from storage.documents import NOT_OFFERED
from storage.journal import NewRow, Row
from storage.transcript import ASIDE, START_OVER, Line, Place, Said

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What one person may ask, and how long a question may be."""

    question_characters: int
    questions_per_minute: int


@dataclass(frozen=True, slots=True)
class Received:
    """A claim, the rows that it withdrew (who runs them must stop), and the clarifications whose card has changed."""

    row: Row
    new: bool = True
    withdrawn: tuple[int, ...] = ()
    cards: tuple[str, ...] = ()

    @property
    def claim(self) -> Claim:
        return Claim(self.row.id, self.new, Incoming.model_validate(self.row.payload))


class Claiming:
    """A turn that a claim withdraws, a clarification that it decides: all of it is one transaction."""

    def __init__(self, stores: Stores, pace: Pace) -> None:
        self._stores = stores
        self._pace = pace

    async def receive(self, incoming: Incoming) -> Received:
        """Claim a message. Raises Refused, with nothing claimed, where it can't be taken."""
        channel = await self._stores.channels.ensure(
            incoming.where.platform, incoming.where.workspace, incoming.where.channel, incoming.user
        )
        if incoming.where.platform == PAGE and not channel.sees(incoming.user):  # elsewhere who writes is a member
            raise Refused(
                Why.NOT_MEMBER, f"You are not a member of {channel.channel}. Ask one of its members to add you."
            )
        new = new_row(incoming)
        known = await self._stores.journal.known(new)
        if known is not None:
            return Received(known, new=False)
        async with self._stores.database.write() as connection:
            if incoming.kind in (Kind.MESSAGE, Kind.EDIT) and not await self._is_addressed(
                connection, incoming, channel
            ):
                _check_wanted(incoming, channel)
                incoming = incoming.model_copy(update={"addressed": False})
                new = new_row(incoming)
            self._check_length(incoming)
            received = await self._claim(connection, incoming, channel, new)
        await self._stores.transcript.announce()
        return received

    async def _claim(self, connection: AsyncConnection, incoming: Incoming, channel: Channel, new: NewRow) -> Received:
        match incoming.kind:
            case Kind.EDIT:
                return await self._claim_edit(connection, incoming, new)
            case Kind.DELETE:
                return await self._claim_deletion(connection, incoming, new)
            case Kind.JOIN:
                return Received(*await self._stores.journal.claim(connection, new))
            case Kind.ACTION:
                return await self._claim_click(connection, incoming, new)
            case _:
                return await self._claim_message(connection, incoming, channel, new)

    async def _is_addressed(self, connection: AsyncConnection, incoming: Incoming, channel: Channel) -> bool:
        """Whether this is said to the bot, and not among people."""
        if incoming.direct or incoming.mentions_bot:
            return True
        if incoming.mentions_others:
            return False
        place = Place(**incoming.where.model_dump())
        waiting = await self._stores.clarifications.open_in(connection, place)
        if any(card.asker == incoming.user for card in waiting):
            return True
        if channel.answer == "always":  # who types a choice that isn't theirs is told so
            return bool(waiting) or await self._is_no_aside(connection, incoming, place)
        return channel.answer == "threads" and await self._stores.transcript.has_asked(connection, place, incoming.user)

    async def _is_no_aside(self, connection: AsyncConnection, incoming: Incoming, place: Place) -> bool:
        """What somebody else says in the asker's thread is for the asker, unless it asks something."""
        said = incoming.text.strip()
        if not said or incoming.attachments or QUESTION.search(said) or commands.parse(said) is not None:
            return True
        if not await self._stores.transcript.has_asked(connection, place, incoming.user, others=True):
            return True
        return await self._stores.transcript.has_asked(connection, place, incoming.user)

    async def _claim_message(
        self, connection: AsyncConnection, incoming: Incoming, channel: Channel, new: NewRow
    ) -> Received:
        await self._check_pace(connection, new)
        row, is_new = await self._stores.journal.claim(connection, new, file_rows(incoming, channel, new))
        if not is_new:
            return Received(row, new=False)
        await self._write_down(connection, incoming, incoming.text)
        if not incoming.addressed:
            return Received(row)
        command = commands.parse(incoming.text)
        if command is not None and command.name == "stop":
            return Received(row, withdrawn=tuple(await self._stores.journal.withdraw_lane(connection, row)))
        if command is None and incoming.text and not incoming.attachments:
            return Received(row, cards=await self._bind(connection, incoming, row))
        return Received(row)

    async def _bind(self, connection: AsyncConnection, incoming: Incoming, row: Row) -> tuple[str, ...]:
        """A typed reply of the asker answers the clarification that waits in its thread; its id."""
        for waiting in await self._stores.clarifications.open_in(connection, place_of(row)):
            if waiting.asker != incoming.user:
                continue
            choice = {"text": incoming.text, "option": None}
            if await self._stores.clarifications.decide(connection, waiting.id, choice, row.id):
                await self._stores.transcript.touch_clarification(connection, waiting.id)
                return (waiting.id,)
        return ()

    async def _claim_click(self, connection: AsyncConnection, incoming: Incoming, new: NewRow) -> Received:
        card = await self._stores.clarifications.get(connection, incoming.clarification)
        if card is None or card.platform != new.platform or card.workspace != new.workspace:
            raise Refused(Why.UNKNOWN, "There is no such clarification.")
        if card.asker != incoming.user:
            raise Refused(Why.NOT_ASKER, f"This question is for {card.asker}, who asked.")
        said = await self._chosen_text(card, incoming)
        row, is_new = await self._stores.journal.claim(connection, new)
        if is_new:
            choice = {"text": said, "option": incoming.option}
            if not await self._stores.clarifications.decide(connection, card.id, choice, row.id):
                raise Refused(Why.DECIDED, _why_closed(card))
            await self._write_down(connection, incoming, said)
            await self._stores.transcript.touch_clarification(connection, card.id)
        return Received(row, is_new, cards=(card.id,) if is_new else ())

    async def _chosen_text(self, card: Clarification, incoming: Incoming) -> str:
        if incoming.option is None:
            return incoming.text
        if not 0 <= incoming.option < len(card.options):
            raise Refused(Why.INVALID, f"There is no option {incoming.option}; there are {len(card.options)}, from 0.")
        scope = await self._stores.channels.scope(card.platform, card.workspace, card.channel, card.asker, card.thread)
        option = (await self._stores.documents.offered(scope, card.options))[incoming.option]
        if option == NOT_OFFERED:
            raise Refused(
                Why.DECIDED, "That document is no longer available here. Choose another, or type what you mean."
            )
        return str(option["label"])

    async def _claim_edit(self, connection: AsyncConnection, incoming: Incoming, new: NewRow) -> Received:
        line = await self._own_line(incoming)
        await self._check_pace(connection, new)
        new = new_row(incoming.model_copy(update={"attachments": await self._posted_with(incoming)}))
        row, is_new = await self._stores.journal.claim(connection, new)
        if not is_new:
            return Received(row, new=False)
        if line.text == incoming.text:
            await self._stores.journal.step(connection, row, "done", {})
            return Received(row)
        received = await self._withdraw(connection, row, files=False)
        await self._stores.transcript.edit_question(connection, place_of(row), row.message, incoming.text)
        return received

    async def _posted_with(self, incoming: Incoming) -> tuple[Attachment, ...]:
        """The files of the message that is edited: they are its files still."""
        where = incoming.where
        rows = await self._stores.journal.of_message(where.platform, where.workspace, incoming.message)
        first = next((row for row in rows if row.kind == Kind.MESSAGE), None)
        return Incoming.model_validate(first.payload).attachments if first is not None else ()

    async def _claim_deletion(self, connection: AsyncConnection, incoming: Incoming, new: NewRow) -> Received:
        await self._own_line(incoming)
        row, _ = await self._stores.journal.claim(connection, new)
        received = await self._withdraw(connection, row, files=True)
        await self._stores.documents.bury_post(connection, row.workspace, row.channel, row.message, incoming.attachment)
        await self._stores.transcript.delete_question(connection, place_of(row), row.message)
        return received

    async def _withdraw(self, connection: AsyncConnection, row: Row, files: bool) -> Received:
        turns = await self._stores.journal.turns_of(connection, row)
        withdrawn = await self._stores.journal.withdraw(connection, row, files=files)
        cards = await self._stores.clarifications.withdraw(connection, turns)
        cards += await self._stores.clarifications.unsay(connection, turns)
        for card in cards:
            await self._stores.transcript.touch_clarification(connection, card)
        return Received(row, withdrawn=tuple(withdrawn), cards=tuple(cards))

    async def _own_line(self, incoming: Incoming) -> Line:
        line = await self._stores.transcript.find(incoming.where.platform, incoming.where.workspace, incoming.message)
        if line is None or line.author != "user":
            raise Refused(Why.UNKNOWN, "There is no such message.")
        if line.user != incoming.user:
            raise Refused(Why.NOT_AUTHOR, f"Only {line.user}, who wrote this message, can change it.")
        if line.deleted:
            raise Refused(Why.CONFLICT, "This message was deleted.")
        return line

    async def _write_down(self, connection: AsyncConnection, incoming: Incoming, text: str) -> None:
        command = commands.parse(text) if incoming.addressed else None
        kind = START_OVER if command is not None and command.name == "start over" else "message"
        kind = kind if incoming.addressed else ASIDE
        said = Said("user", incoming.user, text, kind, incoming.message)
        files = [{"name": each.name, "verdict": "", "reason": ""} for each in incoming.attachments]
        place = Place(**incoming.where.model_dump())
        await self._stores.transcript.add_question(connection, place, said, incoming.sent_at, files)

    def _check_length(self, incoming: Incoming) -> None:
        if incoming.addressed and len(incoming.text) > self._pace.question_characters:
            raise Refused(
                Why.TOO_LONG,
                f"That message has {len(incoming.text):,} characters; a question may have "
                f"{self._pace.question_characters:,}. Shorten it, or post the long part as a file and ask about it.",
            )

    async def _check_pace(self, connection: AsyncConnection, new: NewRow) -> None:
        text = str(new.payload.get("text") or "")
        command = commands.parse(text)
        is_cheap = command is not None and command.name != "try again"
        if not text or is_cheap or new.payload.get("addressed") is False:
            return
        asked = await self._stores.journal.asked_lately(connection, new, MINUTE)
        if asked >= self._pace.questions_per_minute:
            raise Refused(Why.TOO_MANY, "That were many questions at once: one minute, please, then ask again.")


def _check_wanted(incoming: Incoming, channel: Channel) -> None:
    """What people say to each other is none of ours, but for the files of a knowledge channel. The page keeps it all:
    nobody else does."""
    learns = channel.knowledge and incoming.attachments
    if incoming.where.platform != PAGE and not learns:
        raise Refused(Why.NOT_ADDRESSED, "This wasn't said to the bot.")


def _why_closed(card: Clarification) -> str:
    if card.state == "decided":
        return "This was answered already."
    if card.state == "withdrawn":
        return "The question behind this was changed or deleted."
    return "This question has expired. Ask again."
