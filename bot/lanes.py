"""Lanes: takes claimed messages from the journal, one at a time in each lane, and sees each to its outcome.

A row runs (its reply is made), then it sends (the reply is on its way), then it is done. The step from running to
sending is one transaction that checks the lease and the reply's sources against the catalog and the audience of now,
and writes the reply down. A row that is found sending after a crash posts only what doesn't stand in the thread yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.outcomes import Status
from bot import rendering
from bot.claiming import Claiming, Received
from bot.conversation import Conversation, Outcome
from bot.messages import Incoming, Kind, Reply, ThreadRef
from bot.platform import Claim, Platform, PlatformDown, Undeliverable
from bot.rows import Stores, place_of, turn_of
from storage.checkpoints import fence
from storage.errors import LeaseLost, StorageError
from storage.journal import ATTEMPTS, Heartbeat, Row
from storage.transcript import Part

TURNS = (Kind.MESSAGE, Kind.EDIT, Kind.DELETE, Kind.ACTION, Kind.COMMAND, Kind.JOIN, Kind.NOTICE)
FILES = (Kind.FILE,)
POLL_SECONDS = 2.0  # between looks at the journal where nothing was claimed
REMAKES = 3  # times that a reply is made, where its sources go away meanwhile

WAITING = "waiting for the message before this one"
SOMETHING_WRONG = "Something went wrong here and I could not finish this. Ask again; if it stays, tell who runs me."
FILE_NOT_READ = "something went wrong here again and again; post it again later"
SOURCES_GONE = "The documents behind this answer changed while I was writing it. Ask again, please."
ANSWERED_ANEW = "_The question was edited: the new answer stands below._"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Widths:
    """How many rows run side by side."""

    turns: int
    files: int


@dataclass(frozen=True, slots=True)
class Core:
    """What a message is when it comes, and what comes of it."""

    claiming: Claiming
    conversation: Conversation


class Lanes:
    def __init__(
        self,
        stores: Stores,
        core: Core,
        platforms: Mapping[str, Platform],
        heartbeat: Heartbeat,
        widths: Widths,
    ) -> None:
        self._stores = stores
        self._claiming = core.claiming
        self._conversation = core.conversation
        self._platforms = platforms
        self._heartbeat = heartbeat
        self._widths = widths
        self._running: dict[int, asyncio.Task[None]] = {}
        self._apart: set[int] = set()  # rows that are run one at a time
        self._tidying: set[asyncio.Task[None]] = set()
        self._showing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wake = {TURNS: asyncio.Event(), FILES: asyncio.Event()}

    async def receive(self, incoming: Incoming) -> Claim:
        """Claim a message: what adapters are handed as `on_message`."""
        received = await self._claiming.receive(incoming)
        if received.withdrawn:
            self._break_off(received.withdrawn)
        self._wake_for(FILES if incoming.attachments else TURNS)
        try:
            await self._show_what_follows(received)
        except SQLAlchemyError:
            log.exception("row %s is claimed; what follows from it was not shown", received.row.id)
        return received.claim

    def _break_off(self, withdrawn: Sequence[int]) -> None:
        running = [task for id in withdrawn if (task := self._running.get(id)) is not None]
        for task in running:
            task.cancel()
        self._begin_tidying(self._tidy_after(running))

    def _begin_tidying(self, work: Coroutine[None, None, None]) -> None:
        tidying = asyncio.create_task(work, name="tidying")
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)

    async def _tidy_after(self, running: Sequence[asyncio.Task[None]]) -> None:
        """What withdrawn turns left is forgotten, once they write no more."""
        if running:
            await asyncio.wait(running)
        try:
            await self._conversation.forget_ended()
        except SQLAlchemyError:
            log.exception("what withdrawn turns left is forgotten later")

    async def _show_what_follows(self, received: Received) -> None:
        for card in received.cards:  # a platform that is slow keeps nobody from being acknowledged
            self._begin_tidying(self.show(card))
        if received.new and await self._stores.journal.waits(received.row):
            await self._platforms[received.row.platform].tell(turn_of(received.row), Status(text=WAITING))

    async def show(self, card: str) -> None:
        """Bring a clarification's card on its platform up to date with the catalog."""
        one_at_a_time = self._showing.setdefault(card, asyncio.Lock())  # or what was read first could stand last
        async with one_at_a_time:
            try:
                await self._show(card)
            except (SQLAlchemyError, PlatformDown):
                log.exception("the card %s stays as it was", card)

    async def _show(self, card: str) -> None:
        for line in await self._stores.transcript.cards(card):
            where = ThreadRef(
                platform=line.platform, workspace=line.workspace, channel=line.channel, thread=line.thread
            )
            reply = rendering.closed_card(line.text, line.clarification_state, line.choice)
            await self._platforms[line.platform].revise(where, line.message, reply)

    async def forget_ended(self) -> None:
        await self._conversation.forget_ended()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work through the journal until the block ends; what runs then is given back for the next start."""
        suspects = await self._stores.journal.release_all()
        self._apart = set(suspects)
        await self._conversation.forget_ended()
        workers = [
            asyncio.create_task(self._work_off(suspects), name="suspects"),
            asyncio.create_task(self._work(TURNS, self._widths.turns), name="turns"),
            asyncio.create_task(self._work(FILES, self._widths.files), name="files"),
        ]
        try:
            yield
        finally:
            await _cancelled(workers)
            await _cancelled([*self._running.values(), *self._tidying])

    def _wake_for(self, kinds: tuple[Kind, ...]) -> None:
        """A file's post can run once its files are done; nothing else moves files on."""
        self._wake[TURNS].set()
        if kinds is FILES:
            self._wake[FILES].set()

    async def _work(self, kinds: tuple[Kind, ...], width: int) -> None:
        free = asyncio.Semaphore(width)
        wake = self._wake[kinds]
        while True:
            await free.acquire()
            wake.clear()
            row = await self._lease(kinds)
            if row is not None:
                self._begin(row, free)
                continue
            free.release()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await wake.wait()

    async def _work_off(self, suspects: Sequence[int]) -> None:
        """One at a time: at the next crash it is known which of them was running."""
        for id in suspects:
            row = await self._lease((*TURNS, *FILES), only=id)
            if row is not None:
                await asyncio.wait([self._begin(row, asyncio.Semaphore(0))])
            self._apart.discard(id)

    def _begin(self, row: Row, free: asyncio.Semaphore) -> asyncio.Task[None]:
        task = asyncio.create_task(self._run(row), name=f"row {row.id}")
        self._running[row.id] = task
        task.add_done_callback(self._finisher(row, free))
        return task

    async def _lease(self, kinds: tuple[Kind, ...], only: int | None = None) -> Row | None:
        try:
            return await self._stores.journal.lease(kinds, but=self._apart, only=only)
        except SQLAlchemyError:
            log.exception("the journal could not be read; trying again in %s s", POLL_SECONDS)
            return None

    def _finisher(self, row: Row, free: asyncio.Semaphore) -> Callable[[asyncio.Task[None]], None]:
        def finish(task: asyncio.Task[None]) -> None:
            self._running.pop(row.id, None)
            free.release()
            self._wake_for(FILES if row.kind in FILES else TURNS)
            if not task.cancelled() and (failure := task.exception()) is not None:
                log.error("row %s is left for another attempt", row.id, exc_info=failure)

        return finish

    async def _run(self, row: Row) -> None:
        self._heartbeat.hold(row)
        fence.set(self._stores.journal.fence(row))
        try:
            await self._see_to(row)
        except LeaseLost:
            log.info("row %s was withdrawn or taken over", row.id)
        except asyncio.CancelledError:
            await asyncio.shield(self._stores.journal.release(row))
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except StorageError as down:
            log.warning("row %s waits: %s", row.id, down)
            await self._stores.journal.retry(row, charged=row.kind != Kind.FILE)  # a person waits, a file can
        except PlatformDown as down:
            log.warning("row %s waits for %s: %s", row.id, row.platform, down)
            await self._stores.journal.retry(row, charged=False)  # nobody could be told anything
        except BaseException:  # the one boundary, for panics of native code too: every message gets an outcome
            log.exception("row %s failed, attempt %s of %s", row.id, row.attempts, ATTEMPTS)
            await self._stores.journal.retry(row)
        finally:
            self._heartbeat.drop(row)

    async def _see_to(self, row: Row) -> None:
        if row.state == "sending":
            await self._go_on_sending(row, row.outcome or {})
        elif row.is_spent:
            text = FILE_NOT_READ if row.kind == Kind.FILE else SOMETHING_WRONG
            await self._finish(row, await self._conversation.give_up(row, text))
        else:
            await self._bring_about(row)

    async def _bring_about(self, row: Row) -> None:
        for _ in range(REMAKES):
            outcome = await self._conversation.handle(row)
            if await self._finish(row, outcome):
                return
            await self._conversation.discard(outcome)
        await self._finish(row, Outcome(rendering.error(SOURCES_GONE)))

    async def _finish(self, row: Row, outcome: Outcome) -> bool:
        """Send what came of a row. False, with nothing sent, where a source of the reply is gone."""
        if outcome.reply is None:
            async with self._stores.database.write() as connection:
                await self._stores.journal.step(connection, row, "done", outcome.record)
                await self._write_files(connection, row, outcome)
            await self._stores.transcript.announce()
            await self._conversation.ended(row)
            return True
        parts = rendering.split(outcome.reply, self._platforms[row.platform].characters)
        if not await self._begin_to_send(row, outcome, parts):
            return False
        if outcome.card is None:
            await self._conversation.discard(outcome)
        await self._point_to_new(row, [line.message for line in outcome.revised])
        await self._deliver(row, parts, {})
        return True

    async def _go_on_sending(self, row: Row, outcome: Mapping[str, Any]) -> None:
        standing = {each.part: each.message for each in await self._platforms[row.platform].find(turn_of(row))}
        await self._point_to_new(row, outcome.get("revised", ()))
        await self._deliver(row, [Reply.model_validate(part) for part in outcome["parts"]], standing)
        await self._conversation.forget_ended()

    async def _begin_to_send(self, row: Row, outcome: Outcome, parts: Sequence[Reply]) -> bool:
        record = {**outcome.record, "parts": [part.model_dump(mode="json", exclude_defaults=True) for part in parts]}
        if outcome.revised:
            record["revised"] = [line.message for line in outcome.revised]
        place = place_of(row)
        async with self._stores.database.write() as connection:
            if not await self._conversation.sources_stand(row, parts):
                return False
            await self._stores.journal.step(connection, row, "sending", record)
            reply_to = "" if row.kind in (Kind.NOTICE, Kind.JOIN) else row.message
            await self._stores.transcript.add_reply(connection, place, row.id, reply_to, [*map(_as_part, parts)])
            if outcome.card is not None:
                await self._stores.clarifications.ask(connection, place, outcome.card, self._conversation.card_hours)
            await self._write_files(connection, row, outcome)
        return True

    async def _write_files(self, connection: AsyncConnection, row: Row, outcome: Outcome) -> None:
        if outcome.files:
            files = [file.model_dump(mode="json") for file in outcome.files]
            await self._stores.transcript.set_files(connection, place_of(row), row.message, files)

    async def _deliver(self, row: Row, parts: Sequence[Reply], standing: Mapping[int, str]) -> None:
        """Post the parts that don't stand in the thread yet, each on record before the next.

        With each the lease is checked: who stalled over a post makes no other.
        """
        for number, part in enumerate(parts):
            message = standing.get(number) or await self._post(row, number, part)
            if not message:
                await self._stores.journal.end(row)
                break
            async with self._stores.database.write() as connection:
                state = "done" if number == len(parts) - 1 else "sending"
                await self._stores.journal.step(connection, row, state, None)
                await self._stores.transcript.delivered(connection, row.id, number, message)
            await self._stores.transcript.announce()
            if part.clarification:
                await self._show_if_closed(part.clarification)
        await self._conversation.ended(row)

    async def _show_if_closed(self, id: str) -> None:
        """Somebody was quicker than the record that the card stands there."""
        card = await self._stores.clarifications.find(id)
        if card is not None and card.state != "open":
            await self.show(id)

    async def _post(self, row: Row, number: int, part: Reply) -> str:
        """The posted message's id; "" where nothing can be posted there."""
        try:
            return await self._platforms[row.platform].send(turn_of(row), number, part)
        except Undeliverable as gone:
            log.warning("the reply of row %s can't be posted: %s", row.id, gone)
            return ""

    async def _point_to_new(self, row: Row, old: Sequence[str]) -> None:
        """Say at each answer that this one stands in for that it does. Doing it again changes nothing."""
        for message in old:
            async with self._stores.database.write() as connection:
                await self._stores.transcript.revise(connection, place_of(row), message, ANSWERED_ANEW)
            await self._stores.transcript.announce()
            await self._platforms[row.platform].revise(turn_of(row).where, message, rendering.notice(ANSWERED_ANEW))


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _as_part(reply: Reply) -> Part:
    return Part(
        text=reply.text,
        kind=reply.kind,
        citations=[each.model_dump(mode="json") for each in reply.citations],
        options=[each.model_dump(mode="json") for each in reply.options],
        clarification=reply.clarification,
        files=[each.model_dump(mode="json") for each in reply.files],
    )
