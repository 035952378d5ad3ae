"""The core: what each incoming message is, and what comes of it. Nothing here knows a platform.

`receive` claims: it returns when the message is in the journal, with all that follows from it at once (a turn that is
withdrawn, a clarification that is decided). `handle` is called by a lane, later, for each row that was claimed.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.agent import Agent, Choice, TurnRequest
from agent.outcomes import Answer, Event, Status
from bot import commands, rendering
from bot.commands import Caller, Commands
from bot.messages import Attachment, FileLine, Incoming, Kind, Reply, ThreadRef
from bot.platform import Claim, FetchFailed, Platform, Refused, Turn, Why
from ingest.ingestor import Ingestor, Progress, Upload, Verdict
from storage.channels import Channel, Channels
from storage.clarifications import Card, Clarification, Clarifications
from storage.database import Database
from storage.documents import Documents
from storage.journal import Journal, NewRow, Row
from storage.models import Scope, Version, channel_audience, thread_audience
from storage.transcript import START_OVER, Line, Place, Said, Transcript

QUESTION = re.compile(
    r"[?？]|^(?:what|when|where|which|who|whom|whose|why|how|is|are|was|were|do|does|did|can|could|may|must|should|will|"
    r"would|summari[sz]e|explain|list|show|tell|find|compare|give|wer|was|wann|wo|wie|warum|welche[rs]?)\b",
    re.IGNORECASE,
)
MINUTE = 60.0
CITED_DAYS = 30.0  # how long a thread hears of new versions of what its answers cite


@dataclass(frozen=True, slots=True)
class Stores:
    """Where everything is kept."""

    database: Database
    journal: Journal
    transcript: Transcript
    channels: Channels
    clarifications: Clarifications
    documents: Documents


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person may do."""

    question_characters: int
    questions_per_minute: int
    clarification_hours: float
    admins: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row: a reply or none, the card of a clarification, and what `ask --trace` shows of the turn."""

    reply: Reply | None = None
    card: Card | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    revised: tuple[Line, ...] = ()  # answers that this one stands in for
    files: tuple[FileLine, ...] = ()  # what became of the files of the post


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

    # Claiming

    async def receive(self, incoming: Incoming) -> Received:
        """Claim a message. Raises Refused, with nothing claimed, where it can't be taken."""
        channel = await self._channel(incoming)
        if not channel.sees(incoming.user):
            raise Refused(
                Why.NOT_MEMBER, f"You are not a member of {channel.channel}. Ask one of its members to add you."
            )
        new = _new_row(incoming)
        known = await self._stores.journal.known(new)
        if known is not None:
            return Received(known, new=False)
        self._check_length(incoming)
        async with self._stores.database.write() as connection:
            received = await self._claim(connection, incoming, channel, new)
        await self._stores.transcript.announce()
        return received

    async def _claim(self, connection: AsyncConnection, incoming: Incoming, channel: Channel, new: NewRow) -> Received:
        match incoming.kind:
            case Kind.EDIT:
                return await self._claim_edit(connection, incoming, new)
            case Kind.DELETE:
                return await self._claim_deletion(connection, incoming, new)
            case Kind.ACTION:
                return await self._claim_click(connection, incoming, new)
            case _:
                return await self._claim_message(connection, incoming, channel, new)

    async def _claim_message(
        self, connection: AsyncConnection, incoming: Incoming, channel: Channel, new: NewRow
    ) -> Received:
        await self._check_pace(connection, new)
        row, is_new = await self._stores.journal.claim(connection, new, _file_rows(incoming, channel, new))
        if not is_new:
            return Received(row, new=False)
        await self._write_down(connection, incoming, incoming.text)
        command = commands.parse(incoming.text)
        if command is not None and command.name == "stop":
            return Received(row, withdrawn=tuple(await self._stores.journal.withdraw_lane(connection, row)))
        if command is None and incoming.text and not incoming.attachments and not _is_among_people(incoming):
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
        said = _chosen_text(card, incoming)
        row, is_new = await self._stores.journal.claim(connection, new)
        if is_new:
            choice = {"text": said, "option": incoming.option}
            if not await self._stores.clarifications.decide(connection, card.id, choice, row.id):
                raise Refused(Why.DECIDED, _why_closed(card))
            await self._write_down(connection, incoming, said)
            await self._stores.transcript.touch_clarification(connection, card.id)
        return Received(row, is_new, cards=(card.id,) if is_new else ())

    async def _claim_edit(self, connection: AsyncConnection, incoming: Incoming, new: NewRow) -> Received:
        line = await self._own_line(incoming)
        await self._check_pace(connection, new)
        row, is_new = await self._stores.journal.claim(connection, new)
        if not is_new:
            return Received(row, new=False)
        if line.text == incoming.text:
            await self._stores.journal.step(connection, row, "done", {})
            return Received(row)
        received = await self._withdraw(connection, row, files=False)
        await self._stores.transcript.edit_question(connection, place_of(row), row.message, incoming.text)
        return received

    async def _claim_deletion(self, connection: AsyncConnection, incoming: Incoming, new: NewRow) -> Received:
        await self._own_line(incoming)
        row, _ = await self._stores.journal.claim(connection, new)
        received = await self._withdraw(connection, row, files=True)
        await self._stores.transcript.delete_question(connection, place_of(row), row.message)
        return received

    async def _withdraw(self, connection: AsyncConnection, row: Row, files: bool) -> Received:
        turns = await self._stores.journal.turns_of(connection, row)
        withdrawn = await self._stores.journal.withdraw(connection, row, files=files)
        cards = await self._stores.clarifications.withdraw(connection, turns)
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
        command = commands.parse(text)
        kind = START_OVER if command is not None and command.name == "start over" else "message"
        said = Said("user", incoming.user, text, kind, incoming.message)
        files = [{"name": each.name, "verdict": "", "reason": ""} for each in incoming.attachments]
        place = Place(**incoming.where.model_dump())
        await self._stores.transcript.add_question(connection, place, said, incoming.sent_at, files)

    def _check_length(self, incoming: Incoming) -> None:
        if len(incoming.text) > self._rules.question_characters:
            raise Refused(
                Why.TOO_LONG,
                f"That message has {len(incoming.text):,} characters; a question may have "
                f"{self._rules.question_characters:,}. Shorten it, or post the long part as a file and ask about it.",
            )

    async def _check_pace(self, connection: AsyncConnection, new: NewRow) -> None:
        if not new.payload.get("text"):
            return
        asked = await self._stores.journal.asked_lately(connection, new, MINUTE)
        if asked >= self._rules.questions_per_minute:
            raise Refused(Why.TOO_MANY, "That were many questions at once: one minute, please, then ask again.")

    # Handling

    async def handle(self, row: Row) -> Outcome:
        """What comes of a claimed row. Called again after a crash, it goes on where it was."""
        if row.kind == Kind.FILE:
            return await self._learn(row)
        incoming = Incoming.model_validate(row.payload)
        if row.kind == Kind.NOTICE:
            return Outcome(rendering.notice(incoming.text))
        if row.kind == Kind.DELETE:
            return await self._delete(row, incoming)
        if row.kind == Kind.ACTION:
            return await self._ask(row, incoming)
        return await self._answer(row, incoming)

    async def _answer(self, row: Row, incoming: Incoming) -> Outcome:
        command = commands.parse(incoming.text)
        if command is not None and not incoming.attachments:
            return await self._obey(row, incoming, command)
        line = await self._stores.transcript.find(row.platform, row.workspace, row.message)
        files = await self._stores.journal.files_of(row)
        verdicts = [Verdict.model_validate(file.outcome) for file in files if file.outcome is not None]
        verdicts += _not_taken(incoming, verdicts)
        files_read = tuple(rendering.file_line(verdict) for verdict in verdicts)
        before = await self._before(row)
        if not _asks(incoming):
            report = rendering.report(verdicts) if await self._wants_report(incoming, verdicts) and not before else None
            return Outcome(report, files=files_read)
        if row.kind == Kind.EDIT and line is not None and line.text != incoming.text:
            return Outcome()  # edited once more since
        attached = tuple(each.document for each in verdicts if each.document and each.verdict != "refused")
        outcome = await self._ask(row, incoming, attached)
        if outcome.reply is None or row.kind == Kind.EDIT:
            return replace(outcome, revised=tuple(before))
        return replace(outcome, reply=rendering.with_files(outcome.reply, verdicts), files=files_read)

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

    async def discard(self, row: Row) -> None:
        """Forget what the agent made of this row, so that it is made anew."""
        card = await self._stores.clarifications.decided_by(row.id)
        await self._agent.forget(card.agent_thread if card is not None else await self._agent_thread(row))

    async def ended(self, row: Row) -> None:
        """The row has its outcome on disk: what only it needed can go."""
        if row.kind == Kind.FILE:
            await self._platforms[row.platform].discard(Attachment.model_validate(row.payload["attachment"]))

    def failed(self, row: Row, text: str) -> Outcome:
        """The outcome of a row that can't be brought to any other."""
        if row.kind != Kind.FILE:
            return Outcome(rendering.error(text) if row.kind != Kind.DELETE else None)
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
        agent_thread = card.agent_thread if card is not None else await self._agent_thread(row)
        channel = await self._channel(incoming)
        scope = await self._scope(row)
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
        record = {**outcome.model_dump(mode="json"), "seconds": round(time.monotonic() - started, 3)}
        if isinstance(outcome, Answer):
            return Outcome(rendering.answer(outcome), record=record)
        new = Card(
            id=f"c{row.id}",
            agent_thread=agent_thread,
            turn=row.id,
            asker=row.user,
            question=incoming.text,
            text=outcome.text,
            options=[option.model_dump(mode="json") for option in outcome.options],
        )
        return Outcome(rendering.clarification(outcome, new.id), new, record)

    async def _agent_thread(self, row: Row) -> str:
        """The thread's own id; while a clarification waits in it, one apart, so that the clarification stays whole."""
        async with self._stores.database.read() as connection:
            waiting = await self._stores.clarifications.open_in(connection, place_of(row))
        thread = f"{row.platform}:{row.workspace}:{row.channel}:{row.thread}"
        return f"{thread}:{row.message}" if any(card.turn != row.id for card in waiting) else thread

    async def _delete(self, row: Row, incoming: Incoming) -> Outcome:
        await self._stores.documents.delete_post(row.workspace, row.channel, row.message, incoming.attachment)
        await self._ingestor.clean(row.workspace)
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
                await self._agent.forget(await self._agent_thread(row))
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
        scope = await self._scope(row)
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

    async def _tell_who_cited(self, row: Row, verdict: Verdict) -> None:
        """Each thread whose answers cite an older version hears of the new one, once."""
        places = await self._stores.transcript.citing(
            row.platform, row.workspace, Version(verdict.document, verdict.version), CITED_DAYS
        )
        for place in places:
            incoming = Incoming(
                kind=Kind.NOTICE,
                where=ThreadRef(
                    platform=place.platform, workspace=place.workspace, channel=place.channel, thread=place.thread
                ),
                message=f"{verdict.document}.{verdict.version}",
                revision=place.thread,
                user="",
                text=rendering.changed_source(verdict),
                sent_at=row.sent_at,
            )
            async with self._stores.database.write() as connection:
                await self._stores.journal.claim(connection, _new_row(incoming))

    async def _ingest(self, row: Row) -> Verdict:
        attachment = Attachment.model_validate(row.payload["attachment"])
        platform = self._platforms[row.platform]
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="threadlore-"))
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


def turn_of(row: Row) -> Turn:
    incoming = Incoming.model_validate(row.payload["message"] if row.kind == Kind.FILE else row.payload)
    return Turn(row.parent or row.id, incoming.where, row.message, row.user)


def place_of(row: Row) -> Place:
    return Place(row.platform, row.workspace, row.channel, row.thread)


def _new_row(incoming: Incoming) -> NewRow:
    where = incoming.where
    thread_lane = str(where)
    return NewRow(
        platform=where.platform,
        workspace=where.workspace,
        channel=where.channel,
        message=incoming.message,
        kind=incoming.kind,
        revision=incoming.revision or incoming.attachment,
        thread=where.thread,
        lane=f"delete:{thread_lane}:{incoming.message}" if incoming.kind == Kind.DELETE else thread_lane,
        user=incoming.user,
        sent_at=incoming.sent_at,
        payload=incoming.model_dump(mode="json", exclude_defaults=True),
    )


def _file_rows(incoming: Incoming, channel: Channel, new: NewRow) -> list[NewRow]:
    """A row for each file that is to be read: for the channel, or for this thread alone where a question came too."""
    if channel.knowledge:
        audience = channel_audience(new.channel)
    elif _asks(incoming):
        audience = thread_audience(new.channel, new.thread)
    else:
        return []
    names = [attachment.name for attachment in incoming.attachments]
    return [
        NewRow(
            platform=new.platform,
            workspace=new.workspace,
            channel=new.channel,
            message=new.message,
            kind=Kind.FILE,
            revision=str(number),
            thread=new.thread,
            lane=f"file:{new.platform}:{new.workspace}:{audience}:{attachment.name}",
            user=new.user,
            sent_at=new.sent_at,
            payload={
                "attachment": attachment.model_dump(mode="json"),
                "audience": audience,
                "link": incoming.link,
                "twin": names.count(attachment.name) > 1,
                "message": {**new.payload, "attachments": [], "text": ""},
            },
        )
        for number, attachment in enumerate(incoming.attachments)
    ]


def _asks(incoming: Incoming) -> bool:
    """A post of files alone is never a question; with words it is one where they ask."""
    if _is_among_people(incoming):
        return False
    if not incoming.attachments:
        return bool(incoming.text.strip())
    return bool(QUESTION.search(incoming.text.strip()))


def _is_among_people(incoming: Incoming) -> bool:
    """Said to another person, not to the bot, which stays out."""
    return incoming.mentions_others and not incoming.mentions_bot


def _not_taken(incoming: Incoming, verdicts: Sequence[Verdict]) -> list[Verdict]:
    if verdicts or not incoming.attachments:
        return []
    reason = "this channel takes no files; `settings knowledge on` changes that"
    return [Verdict(name=each.name, verdict="refused", reason=reason) for each in incoming.attachments]


def _chosen_text(card: Clarification, incoming: Incoming) -> str:
    if incoming.option is None:
        return incoming.text
    if not 0 <= incoming.option < len(card.options):
        raise Refused(Why.INVALID, f"There is no option {incoming.option}; there are {len(card.options)}, from 0.")
    return str(card.options[incoming.option]["label"])


def _why_closed(card: Clarification) -> str:
    if card.state == "decided":
        return "This was answered already."
    if card.state == "withdrawn":
        return "The question behind this was changed or deleted."
    return "This question has expired. Ask again."
