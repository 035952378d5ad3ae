"""A page that serves on a real socket, over real stores, with a core that claims and says what it is told to say."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import select

from bot.adapters.web import Desk, Web, WebOptions
from bot.messages import Incoming, Kind
from bot.platform import Claim, Refused, Turn
from storage.channels import Channel, Channels
from storage.clarifications import Card, Clarifications
from storage.database import Database, open_database, sqlite_url
from storage.documents import Documents
from storage.embeddings import BundledEmbedder
from storage.journal import Journal, NewRow
from storage.lance import LanceStore
from storage.models import Document
from storage.retrieval import Retriever
from storage.schema import journal
from storage.transcript import Part, Place, Said, Transcript

Json = dict[str, Any]


@dataclass
class Core:
    """Claims in a real journal and writes down what was said. `refusal` is raised instead, where there is one,
    and `late_failure` when the claim is on the disk."""

    database: Database
    transcript: Transcript
    journal: Journal
    channels: Channels
    clarifications: Clarifications
    claimed: list[Incoming] = field(default_factory=list)
    refusal: Refused | OSError | None = None
    late_failure: OSError | None = None
    ended: set[str] = field(default_factory=set)
    backups: list[Path] = field(default_factory=list)

    async def on_message(self, incoming: Incoming) -> Claim:
        if self.refusal is not None:
            raise self.refusal
        where = incoming.where
        await self.channels.ensure("web", where.workspace, where.channel, incoming.user)
        payload = incoming.model_dump(mode="json")
        new = NewRow(
            where.platform,
            where.workspace,
            where.channel,
            incoming.message,
            incoming.kind,
            where.thread,
            str(where),
            incoming.user,
            incoming.sent_at,
            payload,
            incoming.revision,
        )
        async with self.database.write() as connection:
            row, is_new = await self.journal.claim(connection, new)
            if is_new:
                self.claimed.append(incoming)
                await self._write_down(connection, incoming)
        if self.late_failure is not None:
            raise self.late_failure
        await self.transcript.announce()
        return Claim(row.id, is_new, Incoming.model_validate(row.payload))

    async def _write_down(self, connection: Any, incoming: Incoming) -> None:
        place = Place(**incoming.where.model_dump())
        match incoming.kind:
            case Kind.EDIT:
                await self.transcript.edit_question(connection, place, incoming.message, incoming.text)
            case Kind.DELETE:
                await self.transcript.delete_question(connection, place, incoming.message)
            case _:
                said = Said("user", incoming.user, incoming.text, "message", incoming.message)
                files = [{"name": each.name, "verdict": "", "reason": ""} for each in incoming.attachments]
                await self.transcript.add_question(connection, place, said, incoming.sent_at, files)

    async def say(self, turn: Turn, part: Part, web: Web) -> str:
        """Reply as a lane does."""
        place = Place(**turn.where.model_dump())
        async with self.database.write() as connection:
            await self.transcript.add_reply(connection, place, turn.row, turn.message, [part])
            message = f"r{turn.row}.0"
            await self.transcript.delivered(connection, turn.row, 0, message)
        self.ended.add(turn.message)
        await self.transcript.announce()
        return message

    async def ask_back(self, turn: Turn, web: Web, options: Sequence[str]) -> str:
        """Reply with a clarification of these options; its id."""
        place = Place(**turn.where.model_dump())
        shown = [{"label": each, "document": None, "version": None} for each in options]
        id = f"c{turn.row}"
        async with self.database.write() as connection:
            card = Card(id, "agent", turn.row, turn.user, "which?", "Which one?", shown)
            await self.clarifications.ask(connection, place, card, 24)
        await self.say(turn, Part("Which one?", "clarification", options=shown, clarification=id), web)
        return id

    async def living(self) -> set[str]:
        """In this core every message that was claimed still waits for its files."""
        async with self.database.read() as connection:
            payloads = await connection.scalars(select(journal.c.payload))
            return {each["reference"] for payload in payloads for each in payload["attachments"]}

    # what the command line asks of it

    async def turn(self, platform: str, workspace: str, message: str) -> Json | None:
        rows = await self.journal.of_message(platform, workspace, message)
        if not rows:
            return None
        return {"state": "done" if message in self.ended else "open", "kind": "answer", "text": "", "files": []}

    async def forget(self, workspace: str, document: str, user: str) -> Document | None:
        return None

    async def reembed(self, report: Callable[[int, int], Awaitable[None]]) -> int:
        await report(1, 2)
        return 2

    async def backup(self, target: Path) -> None:
        target.mkdir(parents=True)
        self.backups.append(target)


@dataclass
class Served:
    web: Web
    core: Core
    channels: Channels
    documents: Documents
    http: aiohttp.ClientSession
    uploads: Path
    readiness: dict[str, str]

    async def call(self, method: str, path: str, **request: Any) -> tuple[int, Json]:
        """Every error of the interface is {"error": words} and nothing else."""
        async with self.http.request(method, path, **request) as response:
            body = json.loads(await response.text() or "{}")
            if response.status >= 400:
                assert set(body) == {"error"}, body
                assert len(body["error"].split()) > 2
                assert "Traceback" not in body["error"]
            return response.status, body

    async def post(self, text: str = "hello", channel: str = "general", user: str = "ada", **more: str) -> Turn:
        """Post, and the turn that a lane would make of it."""
        body = {"channel": channel, "user": user, "text": text, **more}
        status, answer = await self.call("POST", "/api/messages", json=body)
        assert status == 202, answer
        incoming = self.core.claimed[-1]
        (row,) = await self.core.journal.of_message("web", incoming.where.workspace, answer["message"])
        return Turn(row.id, incoming.where, answer["message"], user)

    async def make_private(self, channel: str, *members: str) -> None:
        await self.channels.put(
            Channel("web", "local", channel, visibility="private", created_by=members[0], members=frozenset(members))
        )

    @contextlib.asynccontextmanager
    async def listening(
        self, user: str = "ada", last: str = "", path: str = "/api/events"
    ) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
        headers = {"Last-Event-ID": last} if last else {}
        async with self.http.get(path, params={"user": user}, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield server_sent(response)


async def server_sent(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    """Events as their fields; one of nothing but a comment is {"": comment}."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        elif fields:
            yield fields
            fields = {}


async def next_named(events: AsyncIterator[dict[str, str]], name: str) -> tuple[str, Json]:
    """The id and content of the next event of this name."""
    async with asyncio.timeout(5):
        async for event in events:
            if event.get("event") == name:
                return event.get("id", ""), json.loads(event["data"])
    raise AssertionError(f"the stream ended without {name}")


@contextlib.asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[Served]:
    """A page on a free port. What was there in this folder is there again."""
    folder.mkdir(exist_ok=True)
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(sqlite_url(folder / "threadlore.sqlite")))
        store = await LanceStore.open(folder / "passages", "passages")
        stack.push_async_callback(store.close)
        embedder = BundledEmbedder()
        stack.push_async_callback(embedder.close)
        documents = Documents(database)
        channels = Channels(database)
        core = Core(database, Transcript(database), Journal(database), channels, Clarifications(database))
        readiness = {"database": "ok"}

        async def ready(*, thoroughly: bool) -> dict[str, str]:
            return readiness

        desk = Desk(
            transcript=core.transcript,
            channels=channels,
            clarifications=core.clarifications,
            documents=documents,
            retriever=Retriever(store, embedder, documents),
            operations=core,
            living=core.living,
            readiness=ready,
        )
        given = {"host": "127.0.0.1", "port": 0, "token": None, "largest_upload": 1024 * 1024, **options}
        web = Web(WebOptions(uploads=folder / "uploads", **given), desk)
        stack.push_async_callback(web.close)
        await web.start(core.on_message)
        http = await stack.enter_async_context(aiohttp.ClientSession(web.url))
        yield Served(web, core, channels, documents, http, folder / "uploads", readiness)
