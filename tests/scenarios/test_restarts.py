"""26, 29 and 8: the bot is restarted or killed in between, and all of it still works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.papers import note
from tests.scenarios.stage import SECONDS_FOR_FILES, Channel, Player, Post, Stage, TurnedAway
from tests.scenarios.test_clarifying import UNCLEAR, answers, option_for

LEAVE = "How many days of annual leave do employees have?"
Interrupt = Callable[[], Awaitable[None]]


@pytest.fixture(params=["SIGTERM", "SIGKILL"])
def interrupt(request: pytest.FixtureRequest, stage: Stage) -> Interrupt:
    """End the bot, and start it again."""

    async def kill() -> None:
        await stage.kill()
        await stage.start()

    return stage.restart if request.param == "SIGTERM" else kill


async def test_everything_goes_on_after_a_restart(
    ada: Player, ben: Player, team: Channel, handbook: Post, contracts: Post, interrupt: Interrupt
) -> None:
    deleted = await ben.post(team, files=[note("rope.txt", "The rope of Quarrytown is 77 fathoms long.")])
    await ben.wait_for_reply(deleted)
    asked, before = await ada.asks(team, LEAVE)
    for_a_click, first = await ada.asks(team, UNCLEAR)
    for_words, second = await ada.asks(team, UNCLEAR)
    decided, third = await ada.asks(team, UNCLEAR)
    await ada.clicks(third, option_for(third, "aldgate"))
    await ben.delete(deleted)
    await interrupt()

    assert await ada.replies(asked) == [before], "nothing is answered twice"
    assert (await ada.opens(before.sources[0])).text
    assert "Contractors have no paid annual leave" in (await ada.follow_up(asked, "and for contractors?")).text

    with pytest.raises(TurnedAway) as told:
        await ben.click(first, first.options[0])
    assert told.value.why == "not allowed"
    assert "six weeks" in (await ada.clicks(first, option_for(first, "birchwood"))).text
    with pytest.raises(TurnedAway) as told:
        await ada.click(first, option_for(first, "birchwood"))
    assert told.value.why == "too late"
    assert answers(await ada.thread(for_a_click)) == 1

    assert option_for(second, "corvane")
    assert "three months" in (await ada.follow_up(for_words, "Corvane")).text
    assert answers(await ada.thread(for_words)) == 1

    with pytest.raises(TurnedAway) as told:
        await ada.click(third, option_for(third, "corvane"))
    assert told.value.why == "too late"
    assert answers(await ada.thread(decided)) == 1

    assert "77 fathoms" not in (await ben.ask(team, "How long is the rope of Quarrytown?")).text
    assert "rope.txt" not in (await ben.ask(team, "docs")).text


async def test_what_was_in_flight_is_finished_once(
    ada: Player, ben: Player, team: Channel, handbook: Post, contracts: Post, interrupt: Interrupt
) -> None:
    log = "\n\n".join(f"On day {day} pump {day * 7 % 31} ran for {day % 24} hours." for day in range(1500))
    files = await ben.post(team, files=[note("log.txt", log), note("rope.txt", "The rope is 77 fathoms long.")])
    await ben.sees_progress(files)
    unclear, card = await ada.asks(team, UNCLEAR)
    questions = [await ada.post(team, LEAVE, to_bot=True) for _ in range(3)]
    questions.append(await ada.says(questions[0], "and for contractors?"))
    click = await ada.click(card, option_for(card, "birchwood"))
    await interrupt()

    assert "six weeks" in (await ada.wait_for_reply(click)).text
    for question in questions:
        reply = await ada.wait_for_reply(question)
        assert reply.kind == "answer", (question, reply)
    report = await ben.wait_for_reply(files, seconds=SECONDS_FOR_FILES)
    assert [(file.name, file.verdict) for file in report.files] == [("log.txt", "indexed"), ("rope.txt", "indexed")]
    assert "77 fathoms" in (await ben.ask(team, "How long is the rope?")).text

    assert (await ada.follow_up(questions[0], "thanks")).kind == "chat", "the thread is through"
    assert [len(await ada.replies(question)) for question in questions] == [1, 1, 1, 1]
    assert (await ada.follow_up(unclear, "thanks")).kind == "chat"
    assert answers(await ada.thread(unclear)) == 1
    assert await ben.replies(files) == [report]
    assert [file.verdict for file in (await ben.share(team, note("log.txt", log))).files] == ["unchanged"]
