"""26, 29 and 8: the bot is restarted or killed in between, and all of it still works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.papers import note, paper
from tests.scenarios.stage import Channel, Player, Post, Stage, TurnedAway
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
    asked, before = await ada.asks(team, LEAVE)
    for_a_click, first = await ada.asks(team, UNCLEAR)
    for_words, second = await ada.asks(team, UNCLEAR)
    decided, third = await ada.asks(team, UNCLEAR)
    await ada.clicks(third, option_for(third, "aldgate"))
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

    assert "three months" in (await ada.follow_up(for_words, "Corvane")).text
    assert answers(await ada.thread(for_words)) == 1

    with pytest.raises(TurnedAway) as told:
        await ada.click(third, option_for(third, "corvane"))
    assert told.value.why == "too late"
    assert answers(await ada.thread(decided)) == 1


async def test_a_choice_that_was_clicked_just_before_is_answered_once(
    ada: Player, team: Channel, contracts: Post, interrupt: Interrupt
) -> None:
    post, card = await ada.asks(team, UNCLEAR)
    click = await ada.click(card, option_for(card, "birchwood"))
    await interrupt()
    assert "six weeks" in (await ada.wait_for_reply(click)).text
    await ada.follow_up(post, "thanks")
    assert answers(await ada.thread(post)) == 1


async def test_questions_in_flight_are_each_answered_once(
    ada: Player, team: Channel, handbook: Post, interrupt: Interrupt
) -> None:
    posts = [await ada.post(team, LEAVE, to_bot=True) for _ in range(3)]
    posts.append(await ada.says(posts[0], "How long is the probation period?"))
    await interrupt()
    for post in posts:
        assert (await ada.wait_for_reply(post)).kind == "answer"
    assert (await ada.follow_up(posts[0], "thanks")).kind == "chat"
    assert [len(await ada.replies(post)) for post in posts] == [1, 1, 1, 1]


async def test_files_in_flight_are_each_learnt_once(ada: Player, team: Channel, interrupt: Interrupt) -> None:
    large = note(
        "log.txt", "\n\n".join(f"On day {day} pump {day * 7 % 31} ran for {day % 24} hours." for day in range(1500))
    )
    post = await ada.post(team, files=[paper("handbook.md"), large])
    await ada.sees_progress(post)
    await interrupt()
    report = await ada.wait_for_reply(post)
    assert [(file.name, file.verdict) for file in report.files] == [
        ("handbook.md", "indexed"),
        ("log.txt", "indexed"),
    ]
    assert "28 days" in (await ada.ask(team, LEAVE)).text
    assert await ada.replies(post) == [report]
    assert [file.verdict for file in (await ada.share(team, large)).files] == ["unchanged"]


async def test_what_was_deleted_stays_deleted(ada: Player, team: Channel, handbook: Post, interrupt: Interrupt) -> None:
    await ada.delete(handbook)
    await interrupt()
    assert (await ada.ask(team, LEAVE)).kind == "not_found"
    assert "handbook.md" not in (await ada.ask(team, "docs")).text
