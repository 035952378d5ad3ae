from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, ConfigDict

from agent.budget import Account, Budget
from agent.limits import TurnLimits
from agent.models import ModelCalls, Models
from tests.fake_openai import Behaviour, Call, Cut, Endless, FakeOpenAI, Hang, Raw, Status, Text

LIMITS = TurnLimits(seconds=20, silent_seconds=0.4, model_calls=6)
ASK = [HumanMessage("what is asked?")]
GOOD = {"kind": "fruit", "names": ["pear"]}
BROKEN: list[Behaviour] = [
    Status(401),
    Status(403),
    Status(404),
    Status(422),
    Status(500),
    Status(503),
    Status(429),
    Raw(b""),
    Raw(b"not json at all"),
    Raw(b"{}"),
    Raw(b"[1, 2]"),
    Raw(b'{"choices": []}'),
    Raw(b"<html>login</html>", "text/html"),
    Raw(b"data: {broken\n\n", "text/event-stream"),
    Raw(b"data: [DONE]\n\n", "text/event-stream"),
    Raw(b'data: {"choices": null}\n\n', "text/event-stream"),
    Raw(b'data: {"error": {"message": "overloaded"}}\n\n', "text/event-stream"),
    Raw(b"\xff\xfe\x00", "text/event-stream"),
    Text(""),
    Cut(""),
    Hang(),
]


class Naming(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["fruit", "stone"]
    names: list[str]


class Paper:
    """Takes a model's words."""

    def __init__(self) -> None:
        self.text = ""
        self.begun = False

    async def feed(self, words: str) -> None:
        self.text += words
        self.begun = "." in self.text

    def restart(self) -> None:
        self.text = ""


@pytest.fixture
async def models(openai: FakeOpenAI) -> AsyncIterator[Models]:
    models = Models(["first", "second"], openai.url, "secret", LIMITS)
    yield models
    await models.close()


@pytest.fixture
def account() -> Account:
    return Budget(LIMITS).account()


@pytest.fixture
def calls(models: Models, account: Account) -> ModelCalls:
    return models.calls("", account.budget)


async def test_a_decision_asks_for_the_schema_and_counts_what_it_took(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    openai.enqueue(GOOD)
    assert await calls.decide(Naming, ASK, account) == Naming(kind="fruit", names=["pear"])
    asked = openai.requests[0]
    assert asked["model"] == "first" and asked["response_format"]["json_schema"]["name"] == "Naming"
    assert asked["response_format"]["json_schema"]["strict"] is True
    assert account.calls == 1 and account.tokens_out == 20 and account.tokens_in > 0 and account.degraded == []
    assert openai.headers[0]["Authorization"] == "Bearer secret"


async def test_a_server_without_schemas_is_asked_by_function_and_remembered(
    openai: FakeOpenAI, models: Models, calls: ModelCalls, account: Account
) -> None:
    openai.refuse_json_schema = True
    openai.enqueue(Call("Naming", GOOD), Call("Naming", GOOD))
    assert await calls.decide(Naming, ASK, account) is not None
    assert await models.calls("", account.budget).decide(Naming, ASK, account) is not None
    assert [("tools" in asked) for asked in openai.requests] == [False, True, True]


async def test_a_server_without_schemas_and_functions_is_asked_in_words(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    openai.refuse_json_schema = openai.refuse_tools = True
    openai.enqueue('Sure! Here it is:\n```json\n{"kind": "stone", "names": []}\n```\nAnything else?')
    assert await calls.decide(Naming, ASK, account) == Naming(kind="stone", names=[])


async def test_a_reply_in_another_form_is_asked_for_once_more_with_the_error(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    openai.enqueue({"kind": "vegetable", "names": []}, GOOD)
    assert await calls.decide(Naming, ASK, account) is not None
    assert "kind" in openai.prompt(1) and "vegetable" in openai.prompt(1) and "not in the form" in openai.prompt(1)
    assert account.calls == 2


async def test_two_replies_in_another_form_leave_the_choice_to_the_caller(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    openai.enqueue("I would rather talk.", "{" * 600, GOOD)
    assert await calls.decide(Naming, ASK, account) is None
    assert openai.left == 1 and account.degraded == []


@pytest.mark.parametrize("broken", BROKEN, ids=repr)
async def test_a_decision_goes_to_the_next_model_whatever_the_first_one_does(
    openai: FakeOpenAI, calls: ModelCalls, account: Account, broken: Behaviour
) -> None:
    openai.by_model = {"first": broken, "second": Text('{"kind": "fruit", "names": []}')}
    assert await calls.decide(Naming, ASK, account) == Naming(kind="fruit", names=[])
    assert account.degraded == ["the model first could not be reached"]


@pytest.mark.parametrize("broken", BROKEN, ids=repr)
async def test_writing_goes_to_the_next_model_whatever_the_first_one_does(
    openai: FakeOpenAI, calls: ModelCalls, account: Account, broken: Behaviour
) -> None:
    paper = Paper()
    openai.by_model = {"first": broken, "second": Text("A word.")}
    assert await calls.write(ASK, paper, account) == "second"
    assert paper.text == "A word."
    assert account.degraded == ["the model first could not be reached"]


async def test_a_model_that_failed_is_not_asked_again_in_the_turn(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    openai.by_model = {"first": Status(404), "second": Text('{"kind": "fruit", "names": []}')}
    await calls.decide(Naming, ASK, account)
    await calls.write(ASK, Paper(), account)
    assert [asked["model"] for asked in openai.requests] == ["first", "second", "second"]


async def test_no_model_at_all_is_no_exception(openai: FakeOpenAI, calls: ModelCalls, account: Account) -> None:
    openai.by_model = {"first": Status(500), "second": Status(401)}
    assert await calls.decide(Naming, ASK, account) is None
    assert not await calls.write(ASK, Paper(), account)
    assert len(account.degraded) == 2


async def test_an_endpoint_that_is_not_there_is_no_exception(account: Account) -> None:
    models = Models(["m"], "http://127.0.0.1:9/v1", None, LIMITS)
    assert await models.calls("", account.budget).decide(Naming, ASK, account) is None
    await models.close()


@pytest.mark.parametrize("half", [Cut("Half a"), Hang("Half a")], ids=repr)
async def test_what_was_fed_before_anything_was_shown_is_taken_back(
    openai: FakeOpenAI, calls: ModelCalls, account: Account, half: Behaviour
) -> None:
    paper = Paper()
    openai.by_model = {"first": half, "second": Text("Whole.")}
    assert await calls.write(ASK, paper, account)
    assert paper.text == "Whole."


async def test_what_was_shown_stays_when_a_model_breaks_off(
    openai: FakeOpenAI, calls: ModelCalls, account: Account
) -> None:
    paper = Paper()
    openai.by_model = {"first": Cut("One sentence. Half a"), "second": Text("Another.")}
    assert await calls.write(ASK, paper, account)
    assert paper.text == "One sentence. Half a" and account.degraded == ["the model first broke off"]


async def test_silence_is_measured_in_words(openai: FakeOpenAI, calls: ModelCalls, account: Account) -> None:
    openai.by_model = {"first": Endless(""), "second": Text("Here.")}
    paper, started = Paper(), time.monotonic()
    assert await calls.write(ASK, paper, account)
    assert paper.text == "Here." and time.monotonic() - started < 3


async def test_a_slow_but_speaking_model_is_waited_for(openai: FakeOpenAI, calls: ModelCalls, account: Account) -> None:
    openai.enqueue(Text("word " * 8, size=5, pause=0.15))
    assert await calls.write(ASK, Paper(), account)
    assert account.degraded == []


async def test_an_endless_reply_ends(openai: FakeOpenAI, calls: ModelCalls, account: Account) -> None:
    openai.by_model = {"first": Endless("blah blah blah blah. ")}
    paper = Paper()
    assert await calls.write(ASK, paper, account)
    assert 1000 < len(paper.text) < 20_000


async def test_calls_are_bounded(openai: FakeOpenAI, models: Models) -> None:
    account = Budget(replace(LIMITS, model_calls=2)).account()
    openai.enqueue("One.", "Two.", "Three.")
    calls = models.calls("", account.budget)
    written = [await calls.write(ASK, Paper(), account) for _ in range(3)]
    assert written == ["first", "first", None] and len(openai.requests) == 2 and account.degraded == []


async def test_tokens_are_bounded(openai: FakeOpenAI, models: Models) -> None:
    account = Budget(replace(LIMITS, tokens=60)).account()
    openai.enqueue("One.", "Two.", "Three.", "Four.")
    calls = models.calls("", account.budget)
    while await calls.write(ASK, Paper(), account):
        pass
    assert len(openai.requests) < 4
    assert all(asked["max_completion_tokens"] <= 60 for asked in openai.requests)


async def test_a_model_asked_for_by_name_comes_first(openai: FakeOpenAI, models: Models, account: Account) -> None:
    openai.by_model = {"third": Text("Mine.")}
    assert await models.calls("third", account.budget).write(ASK, Paper(), account) == "third"
