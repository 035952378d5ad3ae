"""The core: what each claimed message is, and what comes of it. Nothing here knows a platform."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from agent.agent import Agent, Choice, TurnRequest
from agent.outcomes import Answer, Event, Option, Status
from agent.understanding import understand_choice
from bot import commands, rendering
from bot.commands import Caller, Commands
from bot.messages import Attachment, FileLine, Incoming, Kind, Reply, ThreadRef
from bot.platform import FetchFailed, Platform, Turn
from bot.rows import Stores, asks, new_row, place_of, turn_of
from ingest.ingestor import Ingestor, Progress, Upload, Verdict
from storage.channels import Channel
from storage.clarifications import Card, Clarification
from storage.journal import Row
from storage.models import DocumentState, Scope, Version
from storage.transcript import Line

CITED_DAYS = 30.0  # how long a thread hears of new versions of what its answers cite


@dataclass(frozen=True, slots=True)
class Rules:
    """`clarification_hours`: how long a question back waits. `work`: the folder where files lie while they are read.
    `admins` manage every channel."""

    clarification_hours: float
    work: Path
    admins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row: a reply or none, the card of a clarification, and what `ask --trace` shows of the turn."""

    reply: Reply | None = None
    card: Card | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    revised: tuple[Line, ...] = ()  # answers that this one stands in for
    files: tuple[FileLine, ...] = ()  # what became of the files of the post
    agent_thread: str = ""  # in which the agent keeps how it came to this


class Conversation:
    def __init__(
        self, stores: Stores, agent: Agent, ingestor: Ingestor, platforms: Mapping[str, Platform], rules: Rules
    ) -> None:
        self._stores = stores
        self._agent = agent
        self._ingestor = ingestor
        self._platforms = platforms
        self._rules = rules
        self._commands = Commands(stores.documents, stores.channels)

    async def handle(self, row: Row) -> Outcome:
        """What comes of a claimed row. Called again after a crash, it goes on where it was."""
        if row.kind == Kind.FILE:
            return await self._learn(row)
        incoming = Incoming.model_validate(row.payload)
        if row.kind != Kind.DELETE:
            await self._platforms[row.platform].look(incoming.where, row.user)
        if row.kind == Kind.JOIN:
            return Outcome(rendering.introduction())
        if row.kind == Kind.NOTICE:
            return await self._notify(row, incoming)
        if row.kind == Kind.DELETE:
            return await self._delete(row)
        if row.kind == Kind.ACTION:
            return await self._ask(row, incoming)
        return await self._answer(row, incoming)

    async def _answer(self, row: Row, incoming: Incoming) -> Outcome:
        command = commands.parse(incoming.text) if incoming.addressed else None
        if command is not None and not incoming.attachments:
            return await self._obey(row, incoming, command)
        if await self._was_edited_again(row, incoming):
            return Outcome()
        verdicts = await self._verdicts(row, incoming)
        files = tuple(rendering.file_line(verdict) for verdict in verdicts)
        before = await self._before(row)
        if not asks(incoming):
            wanted = not before and await self._wants_report(incoming, verdicts)
            told = {"files": [verdict.model_dump(mode="json") for verdict in verdicts]}
            return Outcome(rendering.report(verdicts) if wanted else None, files=files, record=told)
        attached = tuple(each.document for each in verdicts if each.document and each.verdict != "refused")
        outcome = await self._ask(row, incoming, attached)
        if outcome.reply is None:
            return outcome
        is_reported = any(line.kind == "report" for line in before)
        reply = outcome.reply if is_reported else rendering.with_files(outcome.reply, verdicts)
        return replace(
            outcome, reply=reply, files=files, revised=tuple(line for line in before if line.kind != "report")
        )

    async def _was_edited_again(self, row: Row, incoming: Incoming) -> bool:
        if row.kind != Kind.EDIT:
            return False
        line = await self._stores.transcript.find(row.platform, row.workspace, row.message)
        return line is not None and line.text != incoming.text

    async def _verdicts(self, row: Row, incoming: Incoming) -> list[Verdict]:
        files = await self._stores.journal.files_of(row) if incoming.attachments else []
        verdicts = [Verdict.model_validate(file.outcome) for file in files if file.outcome is not None]
        return verdicts or _not_taken(incoming)

    async def _wants_report(self, incoming: Incoming, verdicts: Sequence[Verdict]) -> bool:
        """A quiet channel hears of its files only where one was not read."""
        quiet = (await self._channel(incoming)).quiet
        return bool(verdicts) and not (quiet and all(verdict.verdict != "refused" for verdict in verdicts))

    async def sources_stand(self, row: Row, parts: Sequence[Reply]) -> bool:
        """Whether every document that this reply cites or offers lives, and may be seen where it will stand."""
        sources = [Version(each.document, each.version) for part in parts for each in part.citations]
        sources += [Version(each.document, each.version) for part in parts for each in part.nearest]
        sources += [Version(o.document, o.version) for part in parts for o in part.options if o.document and o.version]
        if not sources:
            return True
        living = await self._stores.documents.living(row.workspace, sources)
        scope = await self._scope(row)
        return all(each in living and living[each].audience in scope.audiences for each in sources)

    async def discard(self, outcome: Outcome) -> None:
        """Forget how the agent came to this: it is on record, or it is made anew."""
        if outcome.agent_thread:
            await self._agent.forget(outcome.agent_thread)

    async def forget_ended(self) -> None:
        """What the agent keeps of turns that need it no more: withdrawn, expired, or broken off by a crash."""
        async with self._stores.database.write():  # nothing is claimed meanwhile
            needed = await self._stores.clarifications.agent_threads()
            for row in await self._stores.journal.alive():
                if row.kind != Kind.DELETE:
                    thread = _agent_thread(row)
                    needed |= {thread, _apart(thread, row)}
            await self._agent.forget_all_but(needed)

    async def ended(self, row: Row) -> None:
        """The row has its outcome on disk: what only it needed can go."""
        if row.kind == Kind.FILE:
            await self._platforms[row.platform].discard(Attachment.model_validate(row.payload["attachment"]))

    async def give_up(self, row: Row, text: str) -> Outcome:
        """The outcome of a row that can't be brought to any other."""
        if row.kind != Kind.FILE:
            return Outcome(rendering.error(text) if row.kind != Kind.DELETE else None)
        await self._ingestor.give_up(row.workspace, row.channel, row.message, row.revision, text)
        verdict = Verdict(name=str(row.payload["attachment"]["name"]), verdict="refused", reason=text)
        return Outcome(record=verdict.model_dump(mode="json"))

    @property
    def card_hours(self) -> float:
        return self._rules.clarification_hours

    async def _scope(self, row: Row) -> Scope:
        return await self._stores.channels.scope(row.platform, row.workspace, row.channel, row.user, row.thread)

    async def _before(self, row: Row) -> Sequence[Line]:
        """What the bot said to this message before it was edited."""
        return await self._stores.transcript.replies_to(place_of(row), row.message) if row.kind == Kind.EDIT else ()

    async def _ask(self, row: Row, incoming: Incoming, attached: tuple[str, ...] = ()) -> Outcome:
        card = await self._stores.clarifications.decided_by(row.id)
        waiting = await self._waiting(row) if card is None else []
        if card is None and (asker := _answered_for(row, incoming, waiting)):
            return Outcome(
                rendering.notice(f"That question is for {asker}, who asked. Ask me another one at any time.")
            )
        agent_thread = card.agent_thread if card is not None else _thread_beside(row, waiting)
        channel = await self._channel(incoming)
        scope = await self._stores.channels.scope_of(channel, row.user, row.thread)
        request = TurnRequest(
            turn=str(row.id),
            agent_thread=agent_thread,
            platform=row.platform,
            workspace=row.workspace,
            channel=row.channel,
            thread=row.thread,
            message=row.message,
            user=row.user,
            text=incoming.text or (str(card.choice["text"]) if card is not None and card.choice else ""),
            scope_audiences=tuple(sorted(scope.audiences)),
            model=incoming.model or channel.model,
            attached=attached,
            choice=Choice.model_validate(card.choice) if card is not None else None,
        )
        started = time.monotonic()
        outcome = await self._agent.run(request, self._teller(row))
        record = outcome.model_dump(mode="json", include={"usage", "trace"})
        record["seconds"] = round(time.monotonic() - started, 3)
        if isinstance(outcome, Answer):
            return Outcome(rendering.answer(outcome), record=record, agent_thread=agent_thread)
        new = Card(
            id=f"c{row.id}",
            agent_thread=agent_thread,
            turn=row.id,
            asker=row.user,
            question=request.text,
            text=outcome.text,
            options=[option.model_dump(mode="json") for option in outcome.options],
        )
        return Outcome(rendering.clarification(outcome, new.id), new, record, agent_thread=agent_thread)

    async def _waiting(self, row: Row) -> list[Clarification]:
        async with self._stores.database.read() as connection:
            return await self._stores.clarifications.open_in(connection, place_of(row))

    async def _delete(self, row: Row) -> Outcome:
        """Its documents answer no more since it was claimed."""
        await self._ingestor.clean(row.workspace)
        await self.forget_ended()
        for turn in await self._stores.journal.of_message(row.platform, row.workspace, row.message):
            for file in await self._stores.journal.files_of(turn):
                await self.ended(file)
        return Outcome()

    async def _obey(self, row: Row, incoming: Incoming, command: commands.Command) -> Outcome:
        caller = await self._caller(row, incoming)
        match command.name:
            case "help":
                return Outcome(await self._commands.help(caller))
            case "docs":
                return Outcome(await self._commands.docs(caller))
            case "forget":
                reply = await self._commands.forget(caller, command.rest)
                await self._ingestor.clean(row.workspace)
                return Outcome(reply)
            case "settings":
                return Outcome(await self._commands.settings(caller, command.rest))
            case "stop":
                return Outcome(rendering.notice("Stopped."))
            case "start over":
                await self._agent.forget(_thread_beside(row, await self._waiting(row)))
                return Outcome(rendering.notice("Done: I start over, and what was said here before is left aside."))
            case "try again":
                return await self._try_again(row, incoming)

    async def _try_again(self, row: Row, incoming: Incoming) -> Outcome:
        scope = await self._scope(row)
        said = await self._stores.transcript.recall(place_of(row), scope, before=row.message)
        asked = [
            each.text for each in said if each.author == "user" and commands.parse(each.text) is None and each.text
        ]
        if not asked:
            return Outcome(rendering.notice("There is no question here that I could try again."))
        return await self._ask(row, incoming.model_copy(update={"text": asked[-1]}))

    async def _caller(self, row: Row, incoming: Incoming) -> Caller:
        channel = await self._channel(incoming)
        scope = await self._stores.channels.scope_of(channel, row.user, row.thread)
        return Caller(row.user, channel, scope, self.manages(channel, row.user))

    def manages(self, channel: Channel, user: str) -> bool:
        """Whether this person may change the channel; on the page everyone who sees it may."""
        return channel.platform == "web" or user == channel.created_by or user in self._rules.admins

    async def _channel(self, incoming: Incoming) -> Channel:
        where = incoming.where
        return await self._stores.channels.ensure(where.platform, where.workspace, where.channel, incoming.user)

    # Files

    async def _learn(self, row: Row) -> Outcome:
        verdict = await self._ingest(row)
        if verdict.replaces_version is not None:
            await self._tell_who_cited(row, verdict)
        return Outcome(record=verdict.model_dump(mode="json"))

    async def _notify(self, row: Row, incoming: Incoming) -> Outcome:
        """Say that a source has changed, where the thread may still know of it."""
        document = await self._stores.documents.get(incoming.document)
        if document is None or document.state is not DocumentState.CURRENT:
            return Outcome()
        is_seen = document.audience in (await self._scope(row)).audiences
        return Outcome(rendering.changed_source(document) if is_seen else None)

    async def _tell_who_cited(self, row: Row, verdict: Verdict) -> None:
        """Each thread whose answers cite an older version hears of the change, once for each version that it cites."""
        new = Version(verdict.document, verdict.version)
        cited = await self._stores.transcript.citing(row.platform, row.workspace, new, CITED_DAYS)
        async with self._stores.database.write() as connection:
            for place, version in sorted(cited, key=str):
                incoming = Incoming(
                    kind=Kind.NOTICE,
                    where=ThreadRef(**asdict(place)),
                    message=f"{verdict.document}.{version}",
                    revision=place.thread,
                    user="",
                    document=verdict.document,
                    sent_at=row.sent_at,
                )
                await self._stores.journal.claim(connection, new_row(incoming))

    async def _ingest(self, row: Row) -> Verdict:
        attachment = Attachment.model_validate(row.payload["attachment"])
        platform = self._platforms[row.platform]
        async with AsyncExitStack() as stack:
            self._rules.work.mkdir(exist_ok=True)
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=self._rules.work))
            path = Path(folder) / "attachment"
            try:
                await platform.fetch(attachment, path)
            except FetchFailed as failure:
                return Verdict(name=attachment.name, verdict="refused", reason=str(failure))
            upload = Upload(
                workspace=row.workspace,
                channel=row.channel,
                audience=str(row.payload["audience"]),
                name=attachment.name,
                path=path,
                size=path.stat().st_size,
                posted_by=row.user,
                posted_at=row.sent_at,
                message=row.message,
                attachment=row.revision,
                link=attachment.link or str(row.payload["link"]),
                twin=bool(row.payload["twin"]),
            )
            return await self._ingestor.ingest(upload, self._progress_teller(row, attachment.name))

    def _teller(self, row: Row) -> Teller:
        return Teller(self._platforms[row.platform], turn_of(row))

    def _progress_teller(self, row: Row, name: str) -> ProgressTeller:
        return ProgressTeller(Teller(self._platforms[row.platform], turn_of(row)), name)


@dataclass(frozen=True, slots=True)
class Teller:
    """Shows on a turn's platform what the turn is doing."""

    platform: Platform
    turn: Turn

    async def __call__(self, event: Event) -> None:
        await self.platform.tell(self.turn, event)


@dataclass(frozen=True, slots=True)
class ProgressTeller:
    """Says how far a file is."""

    teller: Teller
    name: str

    async def __call__(self, progress: Progress) -> None:
        share = f" {progress.done:,} of {progress.total:,}" if progress.total else ""
        what = "reading" if progress.stage == "converting" else "learning"
        await self.teller(Status(text=f"{self.name}: {what}{share}"))


def _answered_for(row: Row, incoming: Incoming, waiting: Sequence[Clarification]) -> str:
    """Who was asked which one is meant, where somebody else types a choice; "" where nobody does."""
    for card in waiting:
        options = [Option.model_validate(option) for option in card.options]
        if card.asker == row.user or not options:
            continue
        if understand_choice(incoming.text, None, options, card.question).kind == "options":
            return card.asker
    return ""


def _thread_beside(row: Row, waiting: Sequence[Clarification]) -> str:
    """The thread's own id; while a clarification waits in it, one apart, so that the clarification stays whole."""
    thread = _agent_thread(row)
    return _apart(thread, row) if any(card.turn != row.id for card in waiting) else thread


def _agent_thread(row: Row) -> str:
    return f"{row.platform}:{row.workspace}:{row.channel}:{row.thread}"


def _apart(agent_thread: str, row: Row) -> str:
    return f"{agent_thread}:{row.message}"


def _not_taken(incoming: Incoming) -> list[Verdict]:
    reason = "this channel takes no files; `settings knowledge on` changes that"
    return [Verdict(name=each.name, verdict="refused", reason=reason) for each in incoming.attachments]
