"""Each bound is a setting, and is reached here by its setting, through a whole bot."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import time
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bot import upkeep
from bot.settings import Settings
from tests.bot.whole import opened
from tests.fake_cohere import HANG, fake_cohere
from tests.fake_openai import Endless, FakeOpenAI, Hang, fake_openai

HANDBOOK = "# Handbook\n\nEmployees have 28 days of annual leave.\n\nThe gate closes at nine.\n"
QUESTION = "How many days of annual leave do employees have?"
READ = {"kind": "questions", "questions": [QUESTION]}
ANSWER = "Employees have 28 days of annual leave [1]."
QUOTED = "> Employees have 28 days"
NO_BOUNDS = {"port", "weaviate_grpc_port", "dense_weight", "not_found_threshold"}

Test = TypeVar("Test", bound=Callable[..., object])
reached: set[str] = set()


def reaches(*settings: str) -> Callable[[Test], Test]:
    """Marks the test that reaches the bounds that these settings set."""

    def mark(test: Test) -> Test:
        reached.update(settings)
        return test

    return mark


def test_every_number_among_the_settings_is_reached() -> None:
    kinds = (int, float, int | None, float | None)
    numbers = {name for name, field in Settings.model_fields.items() if field.annotation in kinds}
    assert numbers - NO_BOUNDS == reached


@pytest.fixture
async def openai() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai() as fake:
        yield fake


def model(openai: FakeOpenAI) -> dict[str, object]:
    return {"openai_base_url": openai.url, "openai_model": "first"}


# A turn


@reaches("turn_seconds")
async def test_a_turn_that_hangs_ends_in_its_seconds_and_holds_nobody_up(tmp_path: Path, openai: FakeOpenAI) -> None:
    async with opened(tmp_path, turn_seconds=4, **model(openai)) as page:
        await page.shares(HANDBOOK)
        openai.by_model = {"first": Hang()}
        began = time.monotonic()
        hanging = await page.posts(QUESTION)
        assert (await page.asks("thanks!"))["kind"] == "chat"
        assert QUOTED in (await page.outcome(hanging))["text"]
        assert time.monotonic() - began < 25, "a model may be silent for 30 s"


@reaches("model_silent_seconds")
async def test_a_silent_model_is_left_after_its_seconds(tmp_path: Path, openai: FakeOpenAI) -> None:
    async with opened(tmp_path, model_silent_seconds=0.5, **model(openai)) as page:
        await page.shares(HANDBOOK)
        openai.by_model = {"first": Hang()}
        turn = await page.asks(QUESTION)
        assert QUOTED in turn["text"]
        assert "the model first could not be reached" in turn["usage"]["degraded"]


@reaches("turn_model_calls")
async def test_a_turn_takes_no_more_calls_than_it_may(tmp_path: Path, openai: FakeOpenAI) -> None:
    async with opened(tmp_path, turn_model_calls=1, **model(openai)) as page:
        await page.shares(HANDBOOK)
        openai.enqueue(READ, ANSWER)
        turn = await page.asks(QUESTION)
        assert turn["usage"]["model_calls"] == len(openai.requests) == 1
        assert QUOTED in turn["text"]


@reaches("turn_searches")
async def test_a_turn_searches_no_more_often_than_it_may(tmp_path: Path) -> None:
    async with opened(tmp_path, turn_searches=1) as page:
        await page.shares("# Rules\n\nThe gate closes at nine. The library opens at eleven.")
        turn = await page.asks("When does the gate close? When does the library open?")
        assert "nine" in turn["text"]
        assert "used up" in turn["text"]


@reaches("turn_tokens")
async def test_a_turn_takes_no_more_tokens_than_it_may(tmp_path: Path, openai: FakeOpenAI) -> None:
    async with opened(tmp_path, turn_tokens=1500, **model(openai)) as page:
        await page.shares(HANDBOOK)
        openai.by_model = {"first": Endless("a word and another one ")}
        turn = await page.asks(QUESTION)
        assert turn["usage"]["tokens_in"] + turn["usage"]["tokens_out"] < 2000
        assert QUOTED in turn["text"]


@reaches("rerank_seconds")
async def test_a_reranker_that_hangs_is_left_after_its_seconds(tmp_path: Path) -> None:
    async with fake_cohere() as cohere:
        settings = {"cohere_api_key": "k", "cohere_base_url": cohere.url, "rerank_seconds": 0.5}
        async with opened(tmp_path, **settings) as page:
            await page.shares(HANDBOOK)
            await page.shares("The canteen opens at noon.", "canteen.md")
            cohere.enqueue(HANG)
            turn = await page.asks(QUESTION)
            assert "28 days" in turn["text"]
            assert turn["usage"]["degraded"] == ["the reranker could not be reached"]


# A person


@reaches("questions_per_minute", "question_characters")
async def test_a_person_asks_so_much_and_no_more(tmp_path: Path) -> None:
    async with opened(tmp_path, questions_per_minute=2, question_characters=100) as page:
        too_long = await page.posts("x" * 101)
        assert too_long.status_code == 400
        assert "100" in too_long.json()["error"]
        assert [(await page.posts("hello")).status_code for _ in range(3)] == [202, 202, 429]
        assert (await page.posts("hello", user="ben")).status_code == 202


# A file


def zipped(*entries: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in entries:
            package.writestr(name, content)
    return target.getvalue()


@reaches("file_megabytes", "file_unpacked_megabytes", "file_entries", "file_passages")
async def test_a_file_that_is_too_large_in_any_way_is_refused(tmp_path: Path) -> None:
    limits = {"file_megabytes": 0.1, "file_unpacked_megabytes": 1, "file_entries": 5, "file_passages": 3}
    async with opened(tmp_path, **limits) as page:
        refused = {
            "too large: ": await page.shares("x" * 110_000, "large.md"),
            "unpacks to more than 1 MB": await page.shares(zipped(("a", bytes(2_000_000))), "bomb.docx"),
            "entries inside, more than 5": await page.shares(zipped(*((str(n), b"") for n in range(9))), "many.docx"),
            "more than 3: split it": await page.shares("One more sentence of the rules. " * 180, "long.md"),
        }
        assert {name: each["verdict"] for name, each in refused.items()} == dict.fromkeys(refused, "refused")
        assert [name for name, each in refused.items() if name not in each["reason"]] == []
        assert (await page.shares(HANDBOOK))["verdict"] == "indexed"


@reaches("file_seconds")
async def test_a_file_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, file_seconds=0.05) as page:
        table = "\n".join(f"{n},{n * n},word {n}" for n in range(100_000))
        verdict = await page.shares(table, "long.csv")
        assert "took longer than 0.05 seconds" in verdict["reason"]


@reaches("file_memory_megabytes")
async def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, file_memory_megabytes=50) as page:
        verdict = await page.shares("a,b\n" * 200_000, "long.csv")
        assert verdict["verdict"] == "refused"
        assert "memory" in verdict["reason"]


# Running


@reaches("turns_at_once")
async def test_no_more_turns_run_at_once_than_may(tmp_path: Path, openai: FakeOpenAI) -> None:
    openai.by_model = {"first": Hang()}
    settings = {"turns_at_once": 2, "turn_seconds": 6, "questions_per_minute": 100, **model(openai)}
    async with opened(tmp_path, **settings) as page:
        await page.shares(HANDBOOK)
        posted = [await page.posts(QUESTION) for _ in range(4)]
        while len(openai.requests) < 2:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert len(openai.requests) == 2
        for each in posted:
            assert QUOTED in (await page.outcome(each))["text"]


@reaches("files_at_once")
async def test_no_more_files_are_read_at_once_than_may(tmp_path: Path) -> None:
    async with opened(tmp_path, files_at_once=1) as page:
        large = await page.posts(file="\n".join(f"{n},{n * n},word {n}" for n in range(1_500)), name="large.csv")
        small = await page.posts(file=HANDBOOK)
        await page.outcome(small)
        assert (await page.outcome(large, 1))["files"][0]["verdict"] == "indexed", "it was read before the other"


@reaches("clarification_hours")
async def test_a_clarification_waits_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "CARDS_SECONDS", 0.1)
    async with opened(tmp_path, clarification_hours=1 / 3600) as page:
        for name, months in (("alpha", "two"), ("beta", "four"), ("gamma", "six")):
            text = f"This is the contract with {name}.\n\nThe notice period is {months} months to the month's end."
            await page.shares(text, f"{name} contract.md")
        posted = await page.posts("What is the notice period?")
        assert (await page.outcome(posted))["kind"] == "clarification"
        async with asyncio.timeout(30):
            while (await page.replies(posted))[0]["clarification"]["state"] != "expired":
                await asyncio.sleep(0.1)


@reaches("retention_days")
async def test_finished_rows_are_kept_so_long(tmp_path: Path) -> None:
    async with opened(tmp_path) as page:
        await page.asks("hello")
    path = tmp_path / "data" / "threadlore.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET ended_at = ended_at - 3 * 86400")
    connection.close()
    for days, left in ((4, 1), (2, 0)):
        async with opened(tmp_path, retention_days=days):
            await asyncio.sleep(1)  # it is tidied at the start
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM journal").fetchone() == (left,)
        connection.close()
