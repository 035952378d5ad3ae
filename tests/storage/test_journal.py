"""The journal: claimed once, one at a time in a lane, leases that count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from storage import journal as journal_module
from storage.database import Database, open_database, sqlite_url
from storage.errors import LeaseLost
from storage.journal import ATTEMPTS, LEASES, Heartbeat, Journal, NewRow, Row
from storage.schema import clock
from storage.schema import journal as table

TURNS = ("message", "edit", "action", "delete")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        yield database


@pytest.fixture
def journal(database: Database) -> Journal:
    return Journal(database)


def message(
    name: str, thread: str = "t", sent_at: float = 1.0, kind: str = "message", revision: str = "", lane: str = ""
) -> NewRow:
    lane = lane or f"lane:{thread}"
    return NewRow("web", "local", "general", name, kind, thread, lane, "me", sent_at, {"text": name}, revision)


def file_of(new: NewRow, number: int) -> NewRow:
    return replace(new, kind="file", revision=str(number), lane=f"file:{number}", payload={"n": number})


async def claim(database: Database, journal: Journal, new: NewRow, files: int = 0) -> tuple[Row, bool]:
    async with database.write() as connection:
        return await journal.claim(connection, new, [file_of(new, number) for number in range(files)])


async def lease(journal: Journal, kinds: tuple[str, ...] = TURNS) -> Row:
    row = await journal.lease(kinds)
    assert row is not None
    return row


async def test_claims_a_message_once(database: Database, journal: Journal) -> None:
    first, new = await claim(database, journal, message("a"))
    again, repeated = await claim(database, journal, message("a"))
    assert (new, repeated) == (True, False)
    assert again.id == first.id


async def test_an_edit_is_another_claim_than_its_message(database: Database, journal: Journal) -> None:
    first, _ = await claim(database, journal, message("a"))
    edit, new = await claim(database, journal, message("a", kind="edit", revision="1"))
    assert new and edit.id != first.id


async def test_leases_a_lane_in_the_order_of_the_platforms_time(database: Database, journal: Journal) -> None:
    for name, sent_at in (("late", 3.0), ("early", 1.0), ("middle", 2.0)):
        await claim(database, journal, message(name, sent_at=sent_at))
    seen = []
    while row := await journal.lease(TURNS):
        seen.append(row.message)
        assert await journal.lease(TURNS) is None, "the lane is busy"
        await journal.end(row)
    assert seen == ["early", "middle", "late"]


async def test_threads_run_side_by_side(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a", thread="1"))
    await claim(database, journal, message("b", thread="2"))
    assert {(await lease(journal)).message, (await lease(journal)).message} == {"a", "b"}


async def test_workers_at_once_never_share_a_lane(database: Database, journal: Journal) -> None:
    for number in range(40):
        await claim(database, journal, message(f"m{number}", thread=str(number % 5), sent_at=number))
    running: dict[str, str] = {}
    done: dict[str, list[str]] = {}

    async def work() -> None:
        while row := await journal.lease(TURNS):
            assert row.lane not in running, f"{row.message} beside {running[row.lane]}"
            running[row.lane] = row.message
            await asyncio.sleep(0)
            del running[row.lane]
            done.setdefault(row.lane, []).append(row.message)
            await journal.end(row)

    await asyncio.gather(*(work() for _ in range(8)))
    assert {lane: len(names) for lane, names in done.items()} == {f"lane:{n}": 8 for n in range(5)}
    assert all(names == sorted(names, key=lambda name: int(name[1:])) for names in done.values())


async def test_the_database_itself_refuses_two_running_rows_of_a_lane(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    await claim(database, journal, message("b", sent_at=2))
    await lease(journal)
    with pytest.raises(Exception, match="UNIQUE"):
        async with database.write() as connection:
            await connection.execute(update(table).where(table.c.message == "b").values(state="running"))


async def test_a_message_waits_for_its_files(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("post"), files=2)
    assert await journal.lease(TURNS) is None
    for _ in range(2):
        await journal.end(await lease(journal, ("file",)), outcome={"verdict": "indexed"})
    post = await lease(journal)
    assert [file.outcome for file in await journal.files_of(post)] == [{"verdict": "indexed"}] * 2


async def test_a_stalled_worker_can_neither_check_nor_move_on(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    stalled = await lease(journal)
    await journal.release_all()
    taken = await lease(journal)
    assert (taken.id, taken.attempts) == (stalled.id, 2)
    with pytest.raises(LeaseLost):
        await journal.check(stalled)
    with pytest.raises(LeaseLost):
        await journal.end(stalled)
    await journal.check(taken)
    await journal.end(taken)


async def test_a_lease_that_ran_out_is_taken_over(
    database: Database, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "LEASE_SECONDS", 0.05)
    await claim(database, journal, message("a"))
    first = await lease(journal)
    assert await journal.lease(TURNS) is None
    await asyncio.sleep(0.1)
    assert (await lease(journal)).lease == first.lease + 1


async def test_the_heartbeat_renews_a_lease_from_its_own_thread(
    tmp_path: Path, database: Database, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "LEASE_SECONDS", 0.4)
    await claim(database, journal, message("a"))
    row = await lease(journal)
    with Heartbeat(sqlite_url(tmp_path / "threadlore.sqlite")) as heartbeat:
        heartbeat.hold(row)
        await asyncio.sleep(1)
    async with database.read() as connection:
        alive = await connection.scalar(select(table.c.leased_until > clock()).where(table.c.id == row.id))
    assert alive


async def test_what_is_released_does_not_count_as_an_attempt(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    for _ in range(ATTEMPTS + 2):
        row = await lease(journal)
        assert row.attempts == 1
        await journal.release(row)


async def test_a_row_that_sends_is_still_sending_when_it_is_taken_over(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    row = await lease(journal)
    async with database.write() as connection:
        await journal.step(connection, row, "sending", {"parts": ["x"]})
    await journal.release_all()
    found = await lease(journal)
    assert (found.state, found.outcome) == ("sending", {"parts": ["x"]})


async def test_withdrawing_ends_what_runs_and_what_waits_but_not_what_sends(
    database: Database, journal: Journal
) -> None:
    await claim(database, journal, message("a"), files=1)
    file = await lease(journal, ("file",))
    deletion, _ = await claim(database, journal, message("a", kind="delete", lane="delete:a"))
    async with database.write() as connection:
        taken = await journal.withdraw(connection, deletion, files=True)
    assert len(taken) == 2
    with pytest.raises(LeaseLost):
        await journal.check(file)
    assert (await lease(journal)).kind == "delete"

    await claim(database, journal, message("b"))
    sending = await lease(journal)
    async with database.write() as connection:
        await journal.step(connection, sending, "sending", {})
    edit, _ = await claim(database, journal, message("b", kind="edit", revision="1", sent_at=2))
    async with database.write() as connection:
        assert await journal.withdraw(connection, edit, files=False) == []
    await journal.end(sending)
    assert (await lease(journal)).id == edit.id


async def test_files_that_are_being_read_go_over_to_the_edit(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"), files=1)
    file = await lease(journal, ("file",))
    edit, _ = await claim(database, journal, message("a", kind="edit", revision="1", sent_at=2))
    async with database.write() as connection:
        await journal.withdraw(connection, edit, files=False)
    assert await journal.lease(TURNS) is None
    await journal.end(file, outcome={})
    assert (await lease(journal)).id == edit.id
    assert [each.id for each in await journal.files_of(edit)] == [file.id]


async def test_what_was_said_in_a_deleted_message_is_gone_from_the_journal(
    tmp_path: Path, database: Database, journal: Journal
) -> None:
    await claim(database, journal, replace(message("a"), payload={"text": "the vault code is 99-17-43"}))
    deletion, _ = await claim(database, journal, replace(message("a", kind="delete", lane="d"), payload={}))
    async with database.write() as connection:
        await journal.withdraw(connection, deletion, files=True)
    await database.close()
    assert b"99-17-43" not in (tmp_path / "threadlore.sqlite").read_bytes()


async def test_pruning_leaves_what_is_alive(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("old"))
    await journal.end(await lease(journal))
    await claim(database, journal, message("open", sent_at=2))
    await journal.prune(days=0)
    async with database.read() as connection:
        assert list(await connection.scalars(select(table.c.message))) == ["open"]


async def test_of_several_rows_that_a_crash_interrupted_none_is_charged(database: Database, journal: Journal) -> None:
    for name in ("a", "b"):
        await claim(database, journal, message(name, thread=name))
    for _ in range(ATTEMPTS + 2):
        rows = [await lease(journal), await lease(journal)]
        assert [row.attempts for row in rows] == [1, 1]
        await journal.release_all()


async def test_rows_that_two_crashes_interrupted_are_suspects_and_the_one_of_the_third_is_spent(
    database: Database, journal: Journal
) -> None:
    for name in ("a", "b"):
        await claim(database, journal, message(name, thread=name))
    first, second = await lease(journal), await lease(journal)
    assert await journal.release_all() == []
    assert await journal.release_all() == [], "an end without anything that ran counts for nothing"
    await lease(journal), await lease(journal)
    assert await journal.release_all() == [first.id, second.id]
    assert await journal.lease(TURNS, but=[first.id, second.id]) is None
    assert (await journal.lease(TURNS, only=second.id)) is not None
    await claim(database, journal, message("c", thread="c"))
    bystander = await journal.lease(TURNS, but=[first.id])
    assert bystander is not None and bystander.message == "c"
    assert await journal.release_all() == [first.id]
    spent = await journal.lease(TURNS, only=second.id)
    assert spent is not None and spent.is_spent
    for other in (first.id, bystander.id):
        row = await journal.lease(TURNS, only=other)
        assert row is not None and row.attempts == 1


async def test_a_row_that_was_given_back_unharmed_is_not_given_back_twice(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    await journal.release(await lease(journal))
    await journal.release_all()
    assert (await lease(journal)).attempts == 1


async def test_a_row_that_is_leased_again_and_again_is_spent_in_the_end(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    for number in range(1, LEASES + 2):
        row = await lease(journal)
        assert row.is_spent == (number > LEASES)
        await journal.release(row)


async def test_a_pause_that_is_not_charged_grows_and_does_not_count(database: Database, journal: Journal) -> None:
    await claim(database, journal, message("a"))
    await journal.retry(await lease(journal), charged=False)
    assert await journal.lease(TURNS) is None
    await journal.release_all()
    assert (await lease(journal)).attempts == 1


async def test_references_are_of_files_that_may_still_be_read(database: Database, journal: Journal) -> None:
    new = replace(message("post"), payload={"text": ""})
    files = [replace(file_of(new, n), payload={"attachment": {"reference": f"r{n}"}}) for n in range(2)]
    async with database.write() as connection:
        await journal.claim(connection, new, files)
    await journal.end(await lease(journal, ("file",)))
    assert await journal.references() == {"r1"}
