"""Turns of one thread run one after the other, threads run side by side, and a turn that hangs holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.crashes.client import Post
from tests.crashes.conftest import Stage, staged
from tests.fake_openai import FakeOpenAI, Hang

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTICE = "The notice period for employees is three months to the end of a quarter. It must be given in writing."
QUESTION = "What is the notice period for employees?"
READ = {"kind": "questions", "questions": [QUESTION]}
STATED = "The notice period for employees is three months [1]."
TURN_SECONDS = 8.0
THREADS = 50


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bounded(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int], openai: FakeOpenAI
) -> AsyncIterator[Stage]:
    settings = {
        "OPENAI_BASE_URL": openai.url,
        "OPENAI_API_KEY": "secret",
        "TURN_SECONDS": str(TURN_SECONDS),
        "MODEL_SILENT_SECONDS": "600",
    }
    async with staged(tmp_path_factory.mktemp("bounded"), free_port(), settings) as stage:
        await stage.person.outcome(await stage.person.post("library", files={"handbook.md": NOTICE}))
        yield stage


async def test_a_turn_that_hangs_holds_up_no_other_thread_and_ends_at_its_bound(
    bounded: Stage, openai: FakeOpenAI
) -> None:
    person = bounded.person
    openai.enqueue(Hang())
    hanging = await person.post("general", QUESTION)
    waiting = await person.post("general", "thanks", thread=hanging.thread)
    while not openai.requests:
        await asyncio.sleep(0.02)
    openai.enqueue(READ, STATED)
    other = await person.post("general", QUESTION)
    soon = await person.outcome(other)
    assert "three months" in soon["text"]
    late, after = await person.outcome(hanging), await person.outcome(waiting)
    assert late["sent_at"] > soon["sent_at"]
    assert late["kind"] == "answer" and "three months" in late["text"], "what was found is quoted"
    assert after["kind"] == "chat"
    order = [each["message"] for each in await person.thread(hanging) if each["author"] == "bot"]
    assert order == [late["message"], after["message"]], "its own thread waits"


async def test_two_messages_at_once_in_one_thread_are_answered_in_their_order(stage: Stage) -> None:
    person = stage.person
    first = await person.post("general", "hello")
    posts = await asyncio.gather(*(person.post("general", text, thread=first.thread) for text in ("hello", "thanks")))
    await asyncio.gather(*map(person.outcome, posts))
    thread = await person.thread(first)
    said = [each["message"] for each in thread if each["author"] == "user"]
    assert [each["reply_to"] for each in thread if each["author"] == "bot"] == said


async def test_fifty_threads_at_once_are_each_answered_once(stage: Stage) -> None:
    person = stage.person
    await person.outcome(await person.post("library", files={"handbook.md": NOTICE}))

    async def ask(number: int) -> list[Post]:
        first = await person.post("general", QUESTION, user=f"user{number}")
        return [first, await person.post("general", "thanks", thread=first.thread, user=f"user{number}")]

    asked = await asyncio.gather(*map(ask, range(THREADS)))
    await stage.settles()
    for posts in asked:
        said = [each for each in await person.thread(posts[0]) if each["author"] == "bot"]
        assert [(each["reply_to"], each["kind"]) for each in said] == [
            (posts[0].message, "answer"),
            (posts[1].message, "chat"),
        ]
        assert "three months" in said[0]["text"]
    assert len({posts[0].thread for posts in asked}) == THREADS
