from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.clarifications import Card, Clarifications
from storage.database import Database, open_database, sqlite_url
from storage.transcript import Place

PLACE = Place("web", "local", "general", "t")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        yield database


@pytest.fixture
def clarifications(database: Database) -> Clarifications:
    return Clarifications(database)


async def ask(
    database: Database, clarifications: Clarifications, id: str = "c1", turn: int = 1, hours: float = 24
) -> None:
    card = Card(id, "web:local:general:t", turn, "me", "what?", "Which one?", [{"label": "a"}, {"label": "b"}])
    async with database.write() as connection:
        await clarifications.ask(connection, PLACE, card, hours)


async def decide(database: Database, clarifications: Clarifications, row: int, id: str = "c1") -> bool:
    async with database.write() as connection:
        return await clarifications.decide(connection, id, {"text": "a", "option": 0}, row)


async def test_one_choice_is_taken_however_many_come_at_once(
    database: Database, clarifications: Clarifications
) -> None:
    await ask(database, clarifications)
    taken = await asyncio.gather(*(decide(database, clarifications, row) for row in range(10, 20)))
    assert sum(taken) == 1
    card = await clarifications.find("c1")
    assert card is not None and card.state == "decided"
    assert card.decided_by == 10 + taken.index(True)
    assert await clarifications.decided_by(10 + taken.index(True)) == card


async def test_what_was_chosen_outlives_the_words_that_chose_it(
    database: Database, clarifications: Clarifications
) -> None:
    await ask(database, clarifications)
    await decide(database, clarifications, 10)
    async with database.write() as connection:
        assert await clarifications.unsay(connection, [9, 11]) == []
        assert await clarifications.unsay(connection, [10]) == ["c1"]
        assert await clarifications.unsay(connection, [10]) == []
    card = await clarifications.find("c1")
    assert card is not None and (card.state, card.choice) == ("decided", {"text": "", "option": 0})


async def test_an_expired_one_takes_no_choice_and_is_handed_out_once(
    database: Database, clarifications: Clarifications
) -> None:
    await ask(database, clarifications, hours=0)
    assert not await decide(database, clarifications, 10)
    async with database.write() as connection:
        assert await clarifications.open_in(connection, PLACE) == []
        assert [card.id for card in await clarifications.expire(connection)] == ["c1"]
        assert await clarifications.expire(connection) == []


async def test_asking_again_for_the_same_turn_changes_nothing(
    database: Database, clarifications: Clarifications
) -> None:
    await ask(database, clarifications)
    assert await decide(database, clarifications, 10)
    await ask(database, clarifications)
    card = await clarifications.find("c1")
    assert card is not None and card.state == "decided"


async def test_a_new_one_of_the_same_agent_thread_replaces_the_old(
    database: Database, clarifications: Clarifications
) -> None:
    await ask(database, clarifications, "c1", 1)
    await ask(database, clarifications, "c2", 2)
    async with database.read() as connection:
        assert [card.id for card in await clarifications.open_in(connection, PLACE)] == ["c2"]
    assert not await decide(database, clarifications, 10, "c1")


async def test_one_whose_turn_is_taken_back_is_off(database: Database, clarifications: Clarifications) -> None:
    await ask(database, clarifications)
    async with database.write() as connection:
        assert await clarifications.withdraw(connection, [1]) == ["c1"]
    assert not await decide(database, clarifications, 10)
