from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from storage.database import Database, open_database, sqlite_url
from storage.models import Scope, channel_audience
from storage.schema import documents, feedback
from storage.transcript import RECALLED, START_OVER, Part, Place, Said, Transcript

PLACE = Place("web", "local", "general", "t")
SCOPE = Scope("local", frozenset({channel_audience("general")}))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        yield database


@pytest.fixture
def transcript(database: Database) -> Transcript:
    return Transcript(database)


async def say(database: Database, transcript: Transcript, text: str, name: str, kind: str = "message") -> None:
    async with database.write() as connection:
        await transcript.add_question(connection, PLACE, Said("user", "me", text, kind, name), 1.0, [])
    await transcript.announce()


async def answer(
    database: Database, transcript: Transcript, turn: int, to: str, text: str, document: str = "", version: int = 1
) -> None:
    citations = [{"document": document, "version": version}] if document else []
    async with database.write() as connection:
        await transcript.add_reply(connection, PLACE, turn, to, [Part(text, "answer", citations)])
        await transcript.delivered(connection, turn, 0, f"r{turn}")
    await transcript.announce()


async def document(database: Database, name: str, state: str = "current", channel: str = "general") -> None:
    values = {
        "document": name,
        "version": 1,
        "workspace": "local",
        "channel": channel,
        "audience": channel_audience(channel),
        "name": name,
        "state": state,
        "content_hash": "",
        "size": 1,
        "posted_by": "me",
        "posted_at": 1.0,
        "message": "m",
        "attachment": "0",
        "link": "",
    }
    async with database.write() as connection:
        await connection.execute(insert(documents).values(values))


async def recalled(transcript: Transcript, before: str = "") -> list[str]:
    return [each.text for each in await transcript.recall(PLACE, SCOPE, before)]


async def test_a_reply_is_invisible_until_it_is_delivered(database: Database, transcript: Transcript) -> None:
    async with database.write() as connection:
        await transcript.add_reply(connection, PLACE, 7, "m1", [Part("text", "answer")])
    assert await transcript.thread("web", "local", "t") == []
    async with database.write() as connection:
        await transcript.delivered(connection, 7, 0, "r7.0")
    (line,) = await transcript.thread("web", "local", "t")
    assert (line.message, line.reply_to, line.author) == ("r7.0", "m1", "bot")
    assert [part.message for part in await transcript.parts_of(7)] == ["r7.0"]


async def test_a_reply_that_is_made_anew_replaces_the_one_that_was_never_delivered(
    database: Database, transcript: Transcript
) -> None:
    for text in ("first", "second"):
        async with database.write() as connection:
            await transcript.add_reply(connection, PLACE, 7, "m1", [Part(text, "answer")])
    async with database.write() as connection:
        await transcript.delivered(connection, 7, 0, "r7.0")
    assert [line.text for line in await transcript.thread("web", "local", "t")] == ["second"]


async def test_readers_get_what_changed_since_and_each_line_once(database: Database, transcript: Transcript) -> None:
    await say(database, transcript, "one", "m1")
    seen = await transcript.newest_change()
    await say(database, transcript, "two", "m2")
    async with database.write() as connection:
        await transcript.edit_question(connection, PLACE, "m2", "two, edited")
    changes = await transcript.changes("web", seen)
    assert [(line.text, line.edited) for _, line in changes] == [("two, edited", True)]
    assert await transcript.changes("web", changes[-1][0]) == []
    assert await transcript.changes("slack", 0) == []


async def test_a_waiting_reader_wakes_at_once(database: Database, transcript: Transcript) -> None:
    newest = await transcript.newest_change()
    waiting = asyncio.create_task(transcript.wait(newest, 30))
    await asyncio.sleep(0.05)
    await say(database, transcript, "one", "m1")
    await asyncio.wait_for(waiting, 5)


async def test_what_was_deleted_is_neither_recalled_nor_kept(
    tmp_path: Path, database: Database, transcript: Transcript
) -> None:
    await say(database, transcript, "my pin is 4711-0815", "m1")
    async with database.write() as connection:
        await transcript.delete_question(connection, PLACE, "m1")
    assert await recalled(transcript) == []
    (line,) = await transcript.thread("web", "local", "t")
    assert line.deleted and line.text == ""
    await database.close()
    assert b"4711-0815" not in (tmp_path / "threadlore.sqlite").read_bytes()


async def test_what_cites_a_dead_document_or_one_of_another_audience_is_not_recalled(
    database: Database, transcript: Transcript
) -> None:
    await document(database, "alive")
    await document(database, "dead", "deleted")
    await document(database, "hidden", channel="hr")
    for turn, name in enumerate(("alive", "dead", "hidden"), 1):
        await answer(database, transcript, turn, "m", f"from {name}", name)
    await answer(database, transcript, 9, "m", "an older version", "alive", version=2)
    assert await recalled(transcript) == ["from alive"]


async def test_recall_ends_before_the_message_that_asks(database: Database, transcript: Transcript) -> None:
    for name in ("one", "two", "three"):
        await say(database, transcript, name, name)
    assert await recalled(transcript, before="three") == ["one", "two"]


async def test_starting_over_drops_what_stands_before(database: Database, transcript: Transcript) -> None:
    await say(database, transcript, "old", "m1")
    await say(database, transcript, "start over", "m2", START_OVER)
    await say(database, transcript, "new", "m3")
    assert await recalled(transcript) == ["new"]


async def test_recall_is_bounded(database: Database, transcript: Transcript) -> None:
    for number in range(RECALLED + 5):
        await say(database, transcript, str(number), f"m{number}")
    assert await recalled(transcript) == [str(number) for number in range(5, RECALLED + 5)]


async def test_threads_are_listed_by_their_last_message(database: Database, transcript: Transcript) -> None:
    await say(database, transcript, "a question", "m1")
    await answer(database, transcript, 1, "m1", "an answer")
    (line,) = await transcript.threads("web", "local", "general")
    assert (line.thread, line.text, line.messages) == ("t", "a question", 2)


async def test_the_last_rating_of_a_person_counts(database: Database, transcript: Transcript) -> None:

    for value in (1, -1):
        await transcript.rate("local", "general", "r1", "me", value)
    async with database.read() as connection:
        assert list(await connection.scalars(select(feedback.c.value))) == [-1]
