"""The bot is killed at a named step of a turn: the next one goes on from there, and says what there is to say once."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from bot.lanes import ANSWERED_ANEW, SOMETHING_WRONG
from tests.crashes import steps
from tests.crashes.client import Json, Post, outcomes_of
from tests.crashes.conftest import Stage
from tests.fake_openai import FakeOpenAI, Hang

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTICE = "The notice period for employees is three months to the end of a quarter. It must be given in writing."
LUNCH = "The canteen opens at 11:30. Lunch costs 6.50 euros."
QUESTION = "What is the notice period for employees?"
READ = {"kind": "questions", "questions": [QUESTION]}
STATED = "The notice period for employees is three months [1]."
COSTS = "How much does lunch cost?"
READ_COSTS = {"kind": "questions", "questions": [COSTS]}
STATED_COSTS = "Lunch costs 6.50 euros [1]."
UNCLEAR = "What is the notice period of the contract?"
READ_UNCLEAR = {"kind": "unclear", "questions": ["Is it the Zeta contract?"]}
STATED_CHOICE = "The notice period is four months to the month's end [1]."
CONTRACTS = {
    f"{name} contract.md": f"This contract is between us and {name}.\n\nThe notice period is {months} months."
    for name, months in (("Alpha", "two"), ("Beta", "four"))
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def papers(modelled: Stage) -> None:
    posts = [
        await modelled.person.post("library", files={"handbook.md": NOTICE, "canteen.md": LUNCH}),
        await modelled.person.post("archive", files=CONTRACTS),
    ]
    for post in posts:
        await modelled.person.outcome(post)


@pytest.fixture(autouse=True)
def model(openai: FakeOpenAI) -> FakeOpenAI:
    """What was said before is forgotten."""
    openai.requests.clear()
    return openai


async def assert_said_once(stage: Stage, post: Post, words: str) -> Json:
    await stage.settles()
    thread = await stage.person.thread(post)
    assert [each["text"] for each in outcomes_of(thread, post.message)] == [
        each["text"] for each in thread if each["author"] == "bot"
    ], "nothing else is said"
    (said,) = outcomes_of(thread, post.message)
    assert words in said["text"], said
    await stage.is_tidy()
    return said


ON_THE_WAY = {
    "claimed, not acknowledged": (steps.RECEIVE, "after"),
    "leased": (steps.LEASE, "after"),
    "before the first checkpoint": (steps.CHECKPOINT, "before"),
    "before the first work is stored": (steps.WRITES, "before"),
    "graph ended, not delivered": (steps.TURN, "after"),
    "not yet sending": (steps.BEGIN_TO_SEND, "before"),
    "sending, not forgotten by the agent": (steps.FORGET, "before"),
    "sending, nothing posted": (steps.BEGIN_TO_SEND, "after"),
    "posted, not recorded": (steps.SEND, "after"),
    "recorded, files not dropped": (steps.ENDED, "before"),
}


@pytest.mark.parametrize("step", ON_THE_WAY)
async def test_a_question_is_answered_once_and_no_call_of_its_is_made_again(
    modelled: Stage, model: FakeOpenAI, step: str
) -> None:
    channel = f"q{list(ON_THE_WAY).index(step)}"
    model.enqueue(READ, STATED)
    modelled.stop_at(*ON_THE_WAY[step], channel)
    asking = asyncio.create_task(modelled.person.post(channel, QUESTION))
    await modelled.recovers()
    said = await assert_said_once(modelled, await asking, "three months")
    assert said["kind"] == "answer" and said["citations"]
    assert (len(model.requests), model.left) == (2, 0)


@pytest.mark.parametrize("work", ["analyze", "distil", "answer"])
async def test_a_turn_that_a_checkpoint_holds_goes_on_from_it(modelled: Stage, model: FakeOpenAI, work: str) -> None:
    channel = f"w-{work}"
    model.enqueue(READ, STATED)
    modelled.stop_at(steps.CHECKPOINT, "after", channel, f"'node': '{work}'")
    asking = asyncio.create_task(modelled.person.post(channel, QUESTION))
    await modelled.recovers()
    await assert_said_once(modelled, await asking, "three months")
    assert (len(model.requests), model.left) == (2, 0)


async def test_the_call_that_was_running_is_made_again_and_no_other(modelled: Stage, model: FakeOpenAI) -> None:
    model.enqueue(READ, Hang())
    post = await modelled.person.post("hanging", QUESTION)
    while len(model.requests) < 2:
        await asyncio.sleep(0.02)
    await asyncio.to_thread(modelled.bot.kill)
    model.enqueue(STATED)
    await modelled.starts()
    await assert_said_once(modelled, post, "three months")
    assert len(model.requests) == 3 and model.prompt(1) == model.prompt(2) != model.prompt(0)


AT_A_CLARIFICATION = {
    "asked back, interrupt not stored": (steps.WRITES, "before", "__interrupt__"),
    "in the clarify node": (steps.WRITES, "after", "__interrupt__"),
    "asked back, not pruned": (steps.PRUNE, "before"),
    "asked back, not delivered": (steps.TURN, "after"),
    "asked back, sending": (steps.BEGIN_TO_SEND, "after"),
}


@pytest.mark.parametrize("step", AT_A_CLARIFICATION)
async def test_a_clarification_is_asked_once_and_its_choice_is_answered_once(
    modelled: Stage, model: FakeOpenAI, step: str
) -> None:
    channel = f"c{list(AT_A_CLARIFICATION).index(step)}"
    model.enqueue(READ_UNCLEAR)
    at, when, *words = AT_A_CLARIFICATION[step]
    modelled.stop_at(at, when, channel, *words)
    post = await modelled.person.post(channel, UNCLEAR)
    await modelled.recovers()
    card = await assert_asked_once(modelled, post)
    model.enqueue(STATED_CHOICE)
    await assert_chosen_once(modelled, post, await modelled.person.click(card, 1))
    assert (len(model.requests), model.left) == (2, 0)


async def assert_asked_once(stage: Stage, post: Post) -> Json:
    await stage.settles()
    (card,) = [each for each in await stage.person.thread(post) if each["author"] == "bot"]
    assert card["kind"] == "clarification" and card["clarification"]["state"] == "open"
    assert [option["label"] for option in card["options"]] == ["Alpha contract", "Beta contract"]
    return card


async def assert_chosen_once(stage: Stage, post: Post, choice: Post) -> None:
    await stage.settles()
    thread = await stage.person.thread(post)
    assert [(each["author"], each["kind"]) for each in thread[1:]] == [
        ("bot", "clarification"),
        ("user", thread[2]["kind"]),
        ("bot", "answer"),
    ]
    assert thread[3]["reply_to"] == choice.message and "four months" in thread[3]["text"]
    assert thread[1]["clarification"]["state"] == "decided"


AFTER_A_CHOICE = {
    "claimed, not acknowledged": (steps.RECEIVE, "after"),
    "leased, not resumed": (steps.LEASE, "after"),
    "resumed": (steps.CHECKPOINT, "before"),
    "graph ended, not delivered": (steps.TURN, "after"),
    "sending": (steps.BEGIN_TO_SEND, "after"),
}


@pytest.mark.parametrize(
    ("step", "by"),
    [*((step, "click") for step in AFTER_A_CHOICE), ("leased, not resumed", "words"), ("sending", "words")],
)
async def test_a_choice_is_kept_and_answered_once(modelled: Stage, model: FakeOpenAI, step: str, by: str) -> None:
    channel = f"{by}{list(AFTER_A_CHOICE).index(step)}"
    model.enqueue(READ_UNCLEAR)
    post = await modelled.person.post(channel, UNCLEAR)
    card = await assert_asked_once(modelled, post)
    model.enqueue(STATED_CHOICE)
    modelled.stop_at(*AFTER_A_CHOICE[step], channel)
    person = modelled.person
    answer = person.click(card, 1) if by == "click" else person.post(channel, "the second one", thread=post.thread)
    choosing = asyncio.create_task(answer)
    await modelled.recovers()
    await assert_chosen_once(modelled, post, await choosing)
    assert (len(model.requests), model.left) == (2, 0)


AFTER_AN_EDIT = {
    "claimed, not acknowledged": (steps.RECEIVE, "after"),
    "graph ended, not delivered": (steps.TURN, "after"),
    "sending": (steps.BEGIN_TO_SEND, "after"),
    "before the old answer is marked": (steps.REVISE, "before"),
    "when the old answer is marked": (steps.REVISE, "after"),
    "when the new answer stands": (steps.DELIVERED, "after"),
}


@pytest.mark.parametrize("step", AFTER_AN_EDIT)
async def test_an_edited_question_has_one_answer_that_counts(modelled: Stage, model: FakeOpenAI, step: str) -> None:
    channel = f"e{list(AFTER_AN_EDIT).index(step)}"
    model.enqueue(READ, STATED, READ_COSTS, STATED_COSTS)
    post = await modelled.person.post(channel, QUESTION)
    await modelled.person.outcome(post)
    await modelled.settles()
    at, when = AFTER_AN_EDIT[step]
    modelled.stop_at(at, when, *([] if at == steps.DELIVERED else [channel]))
    editing = asyncio.create_task(modelled.person.edit(post, COSTS))
    await modelled.recovers()
    await editing
    await modelled.settles()
    said = [each["text"] for each in await modelled.person.outcomes(post)]
    assert said == [ANSWERED_ANEW, said[1]] and "6.50" in said[1]
    assert (len(model.requests), model.left) == (4, 0)
    await modelled.is_tidy()


@pytest.mark.parametrize("step", ["leased", "graph ended, not delivered"])
async def test_a_question_that_is_edited_while_it_is_answered_is_answered_once(
    modelled: Stage, model: FakeOpenAI, step: str
) -> None:
    channel = f"d{list(ON_THE_WAY).index(step)}"
    model.enqueue(READ, Hang())
    post = await modelled.person.post(channel, QUESTION)
    while len(model.requests) < 2:
        await asyncio.sleep(0.02)
    model.enqueue(READ_COSTS, STATED_COSTS)
    modelled.stop_at(*ON_THE_WAY[step], channel)
    editing = asyncio.create_task(modelled.person.edit(post, COSTS))
    await modelled.recovers()
    await editing
    await assert_said_once(modelled, post, "6.50")
    assert (len(model.requests), model.left) == (4, 0)


async def test_a_question_that_is_deleted_while_it_is_answered_gets_no_answer(
    modelled: Stage, model: FakeOpenAI
) -> None:
    channel = "gone"
    model.enqueue(READ, Hang())
    post = await modelled.person.post(channel, QUESTION)
    while len(model.requests) < 2:
        await asyncio.sleep(0.02)
    modelled.stop_at(steps.LEASE, "after", "kind='delete'", channel)
    await modelled.person.delete(post)
    await modelled.recovers()
    await modelled.settles()
    (left,) = await modelled.person.thread(post)
    assert left["deleted"] and left["text"] == ""
    await modelled.is_tidy()
    assert len(model.requests) == 2


async def test_the_third_crash_on_a_message_ends_it_with_a_plain_error(modelled: Stage, model: FakeOpenAI) -> None:
    modelled.stop_at(steps.TURN, "before", "POISON", each_time=True)
    post = await modelled.person.post("poisoned", "What does POISON do?")
    await modelled.crashes_again()
    await modelled.crashes_again()
    await modelled.recovers()
    said = await assert_said_once(modelled, post, SOMETHING_WRONG)
    assert said["kind"] == "error" and model.requests == []
    model.enqueue(READ, STATED)
    after = await modelled.person.post("poisoned", QUESTION, thread=post.thread)
    assert "three months" in (await modelled.person.outcome(after))["text"], "the thread goes on"
    modelled.bot.stop_nowhere()


async def test_the_third_crash_on_a_message_ends_it_alone_and_not_what_ran_beside_it(
    modelled: Stage, model: FakeOpenAI
) -> None:
    model.by_model["gpt-4.1-mini"] = Hang()
    beside = [await modelled.person.post("beside", QUESTION) for _ in range(2)]
    while len(model.requests) < len(beside):
        await asyncio.sleep(0.02)
    modelled.stop_at(steps.TURN, "before", "VENOM", each_time=True)
    post = await modelled.person.post("venomous", "What does VENOM do?")
    await modelled.crashes_again()
    await asyncio.to_thread(modelled.bot.wait_for_the_crash)
    model.by_model.clear()
    model.enqueue(READ, STATED, READ, STATED)
    await asyncio.to_thread(modelled.bot.launch)
    await modelled.recovers()
    await assert_said_once(modelled, post, SOMETHING_WRONG)
    for each in beside:
        await assert_said_once(modelled, each, "three months")
    modelled.bot.stop_nowhere()
