"""A turn that was cut short goes on from its last checkpoint, and one that ended isn't made again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.agent import TurnRequest
from agent.models import Models
from agent.outcomes import Answer, Clarification, Event, Step
from storage.checkpoints import fence
from storage.errors import LeaseLost
from tests.agent.library import Asking, Library, asked, chosen, open_agent
from tests.agent.test_agent import LIMITS, NOTICE, QUESTION, READ
from tests.fake_openai import FakeOpenAI, Text

STATED = "The notice period for employees is three months [1]."


@pytest.fixture
async def handbook(library: Library) -> None:
    await library.add("handbook.pdf", [NOTICE])


@pytest.fixture
async def contracts(library: Library) -> None:
    for name, months in (("Alpha", "two"), ("Beta", "four")):
        await library.add(f"{name} contract.pdf", [f"The notice period is {months} months to the month's end."])


@pytest.fixture
async def models(openai: FakeOpenAI) -> AsyncIterator[Models]:
    models = Models(["first"], openai.url, "secret", LIMITS)
    yield models
    await models.close()


async def run_until(step: str, opened: Asking, request: TurnRequest) -> None:
    """Run the turn and cut it short as soon as this step has ended."""
    ended = asyncio.Event()

    async def listen(event: Event) -> None:
        if isinstance(event, Step) and event.name == step:
            ended.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(opened.agent.run(request, listen))
    await asyncio.wait_for(ended.wait(), 20)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("step", ["recall", "analyze", "distil", "answer"])
async def test_completed_calls_are_not_paid_for_again(
    library: Library, handbook: None, models: Models, openai: FakeOpenAI, tmp_path: Path, step: str
) -> None:
    openai.enqueue(READ, STATED)
    async with open_agent(library, tmp_path, models=models) as opened:
        await run_until(step, opened, asked(QUESTION))
    async with open_agent(library, tmp_path, models=models) as opened:
        answer = await opened.answer(asked(QUESTION))
    assert "three months" in answer.text and answer.usage.degraded == ()
    assert len(openai.requests) == 2 and answer.usage.model_calls == 2


async def test_a_turn_that_ended_is_delivered_from_its_state(
    library: Library, handbook: None, models: Models, openai: FakeOpenAI, tmp_path: Path
) -> None:
    openai.enqueue(READ, STATED)
    async with open_agent(library, tmp_path, models=models) as opened:
        first = await opened.answer(asked(QUESTION))
    async with open_agent(library, tmp_path, models=models) as opened:
        assert await opened.answer(asked(QUESTION)) == first
    assert len(openai.requests) == 2


async def test_the_next_turn_of_the_thread_begins_anew(library: Library, handbook: None, tmp_path: Path) -> None:
    async with open_agent(library, tmp_path) as opened:
        await run_until("analyze", opened, asked("Who is the king of France?"))
        answer = await opened.answer(asked(QUESTION, "2"))
        assert "three months" in answer.text and "king" not in answer.text
        assert [entry["node"] for entry in answer.trace].count("recall") == 1


async def test_a_clarification_waits_over_a_restart(library: Library, contracts: None, tmp_path: Path) -> None:
    async with open_agent(library, tmp_path) as opened:
        first = await opened.clarification("What is the notice period?")
    async with open_agent(library, tmp_path) as opened:
        assert await opened.run("What is the notice period?") == first
    async with open_agent(library, tmp_path) as opened:
        answer = await opened.answer(chosen("2", option=1))
    assert "four months" in answer.text and "two months" not in answer.text


@pytest.mark.parametrize("step", ["clarify", "analyze", "distil", "answer"])
async def test_a_choice_survives_a_kill(library: Library, contracts: None, tmp_path: Path, step: str) -> None:
    async with open_agent(library, tmp_path) as opened:
        await opened.clarification("What is the notice period?")
        if step != "clarify":
            await run_until(step, opened, chosen("2", option=1))
        else:
            await cut_at_write(1, opened, chosen("2", option=1))
    async with open_agent(library, tmp_path) as opened:
        answer = await opened.answer(chosen("2", option=1))
    assert "four months" in answer.text and "two months" not in answer.text


@pytest.mark.parametrize("write", range(9))
async def test_a_choice_survives_a_lost_lease_at_any_write(
    library: Library, contracts: None, tmp_path: Path, write: int
) -> None:
    async with open_agent(library, tmp_path) as opened:
        await opened.clarification("What is the notice period?")
        await cut_at_write(write, opened, chosen("2", option=1))
        answer = await opened.answer(chosen("2", option=1))
    assert "four months" in answer.text and "two months" not in answer.text


@pytest.mark.parametrize("write", range(12))
async def test_a_lost_lease_at_any_write_ends_the_run_and_another_worker_finishes_it(
    library: Library, handbook: None, tmp_path: Path, write: int
) -> None:
    async with open_agent(library, tmp_path) as opened:
        await cut_at_write(write, opened, asked(QUESTION))
        assert "three months" in (await opened.answer(asked(QUESTION))).text


@pytest.mark.parametrize("write", range(6))
async def test_a_clarification_survives_a_lost_lease_at_any_write(
    library: Library, contracts: None, tmp_path: Path, write: int
) -> None:
    async with open_agent(library, tmp_path) as opened:
        await cut_at_write(write, opened, asked("What is the notice period?"))
        await opened.clarification("What is the notice period?")
        assert "four months" in (await opened.answer(chosen("2", option=1))).text


async def cut_at_write(number: int, opened: Asking, request: TurnRequest) -> None:
    passed = 0

    async def check() -> None:
        nonlocal passed
        passed += 1
        if passed > number:
            raise LeaseLost

    token = fence.set(check)
    try:
        with pytest.raises(LeaseLost):
            await opened.run(request)
    finally:
        fence.reset(token)


async def test_a_second_resume_gives_the_same_answer_once(library: Library, contracts: None, tmp_path: Path) -> None:
    async with open_agent(library, tmp_path) as opened:
        await opened.clarification("What is the notice period?")
        first = await opened.answer(chosen("2", option=1))
        assert await opened.answer(chosen("2", option=1)) == first
        assert opened.heard.text == ""


async def test_a_new_question_in_place_of_a_pending_one_is_answered(
    library: Library, contracts: None, tmp_path: Path
) -> None:
    await library.add("handbook.pdf", ["Overtime is paid at 150 percent."])
    async with open_agent(library, tmp_path) as opened:
        await opened.clarification("What is the notice period?")
        assert "150" in (await opened.answer(asked("How is overtime paid?", "2"))).text


async def test_a_choice_whose_checkpoint_is_lost_is_completed_from_the_thread(
    library: Library, contracts: None, tmp_path: Path
) -> None:
    async with open_agent(library, tmp_path) as opened:
        card = await opened.clarification("What is the notice period?")
        await library.say("user", "What is the notice period?")
        options = tuple(option.model_dump() for option in card.options)
        await library.say("bot", card.text, "clarification", options=options)
        await opened.agent.forget("web:acme:general:t")
        answer = await opened.answer(chosen("2", "the second one"))
    assert "four months" in answer.text and "two months" not in answer.text


async def test_what_no_version_can_read_is_begun_anew(library: Library, handbook: None, tmp_path: Path) -> None:
    async with open_agent(library, tmp_path) as opened:
        await run_until("analyze", opened, asked(QUESTION))
        connection = opened.checkpoints.saver.conn  # type: ignore[attr-defined]
        await connection.execute("UPDATE checkpoints SET checkpoint = x'c1c1c1'")
        await connection.commit()
        assert "three months" in (await opened.answer(asked(QUESTION))).text


async def test_a_process_that_was_killed_while_it_wrote_leaves_a_turn_to_finish(
    library: Library, handbook: None, models: Models, openai: FakeOpenAI, tmp_path: Path
) -> None:
    openai.enqueue(READ, Text(STATED, size=2, pause=3600))
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.worker", str(tmp_path), openai.url, cwd=Path(__file__).parents[2]
    )
    while len(openai.requests) < 2:
        assert worker.returncode is None
        await asyncio.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    openai.enqueue(STATED)
    async with open_agent(library, tmp_path, models=models) as opened:
        answer = await opened.run(asked(QUESTION))
    assert isinstance(answer, Answer) and not isinstance(answer, Clarification)
    assert "three months" in answer.text and len(openai.requests) == 3  # analyze once, the broken answer twice
