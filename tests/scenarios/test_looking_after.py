"""32, 33: docs, forget and settings, as words to the bot."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.scenarios.papers import changed, note, paper
from tests.scenarios.stage import Channel, Player, Post, Stage

LEAVE = "How many days of annual leave do employees have?"


async def test_docs_lists_what_the_bot_knows_here(ada: Player, team: Channel, handbook: Post) -> None:
    await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"), note("rules.txt", "Rule 1: no smoking."))
    known = await ada.ask(team, "docs")
    (line,) = [line for line in known.text.splitlines() if "handbook.md" in line]
    assert "version 2" in line or "v2" in line
    assert ada.name in line or ada.mention() in line
    assert any(str(day) in line for day in (datetime.now().day, datetime.now(UTC).day))
    assert "rules.txt" in known.text


async def test_docs_of_an_empty_channel_says_how_to_begin(ada: Player, team: Channel) -> None:
    known = await ada.ask(team, "docs")
    assert "file" in known.text.casefold()
    assert not known.sources


async def test_docs_does_not_list_what_others_keep_private(
    stage: Stage, ada: Player, ben: Player, team: Channel
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, paper("board_minutes.md"))
    for channel, person in ((team, ada), (team, ben), (ben.direct, ben)):
        assert "board_minutes" not in (await person.ask(channel, "docs")).text
    assert "board_minutes.md" in (await ada.ask(alone, "docs")).text


async def test_who_posted_a_document_may_have_it_forgotten(
    ada: Player, ben: Player, team: Channel, handbook: Post
) -> None:
    seen = await ada.ask(team, "forget handbook.md")
    assert "handbook.md" in seen.text
    assert seen.kind != "error"
    assert (await ben.ask(team, LEAVE)).kind == "not_found"
    assert "handbook.md" not in (await ben.ask(team, "docs")).text


async def test_forgetting_takes_every_version(ada: Player, team: Channel, handbook: Post) -> None:
    await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"))
    await ada.ask(team, "forget handbook.md")
    assert (await ada.ask(team, LEAVE)).kind == "not_found"


async def test_forgetting_what_is_not_there_is_said(ada: Player, team: Channel, handbook: Post) -> None:
    seen = await ada.ask(team, "forget timetable.xlsx")
    assert seen.kind == "error"
    assert "timetable.xlsx" in seen.text
    assert "28 days" in (await ada.ask(team, LEAVE)).text


async def test_nobody_has_a_document_forgotten_that_they_cannot_see(
    stage: Stage, ada: Player, ben: Player, team: Channel
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, paper("board_minutes.md"))
    refused = await ben.ask(team, "forget board_minutes.md")
    never_there = await ben.ask(team, "forget board_minutez.md")
    assert refused.text == never_there.text.replace("minutez", "minutes"), "that it exists is no business of Ben's"
    assert "Heron" in (await ada.ask(alone, "What is the code name of the purchase?")).text


async def test_settings_are_shown_and_changed_by_words(ada: Player, team: Channel, handbook: Post) -> None:
    shown = await ada.ask(team, "settings")
    assert "knowledge" in shown.text.casefold()
    changed_to = await ada.ask(team, "settings knowledge off")
    assert "off" in changed_to.text
    await ada.post(team, files=[note("late.txt", "The sluice of Ertholm was built in 1911.")])
    assert (await ada.ask(team, "When was the sluice of Ertholm built?")).kind == "not_found"
    assert "28 days" in (await ada.ask(team, LEAVE)).text, "what is known stays"
    await ada.ask(team, "settings knowledge on")
    await ada.share(team, note("later.txt", "The sluice of Ertholm was built in 1911."))
    assert "1911" in (await ada.ask(team, "When was the sluice of Ertholm built?")).text


async def test_a_setting_that_is_not_known_is_explained(ada: Player, team: Channel) -> None:
    seen = await ada.ask(team, "settings colour blue")
    assert seen.kind in ("error", "help")
    assert "knowledge" in seen.text


async def test_where_it_is_to_answer_on_mention_it_says_nothing_else(
    ada: Player, team: Channel, handbook: Post
) -> None:
    await ada.ask(team, ada.calling("settings answer mention"))
    unheard = await ada.post(team, LEAVE)
    asked, answer = await ada.asks(team, ada.calling(LEAVE))
    assert "28 days" in answer.text
    aside = await ada.says(asked, "and for contractors?")
    assert (await ada.follow_up(asked, ada.calling("how long is the probation period?"))).kind == "answer"
    for post in (unheard, aside):
        assert await ada.replies(post) == []


async def test_where_it_is_to_answer_in_threads_the_asker_needs_no_mention_to_go_on(
    ada: Player, ben: Player, team: Channel, handbook: Post
) -> None:
    await ada.ask(team, ada.calling("settings answer threads"))
    unheard = await ada.post(team, LEAVE)
    asked, _ = await ada.asks(team, ada.calling(LEAVE))
    others = await ben.says(asked, "is that so for contractors, too?")
    assert "six months" in (await ada.follow_up(asked, "and how long is the probation period?")).text
    assert "28 days" in (await ben.follow_up(asked, ben.calling(LEAVE))).text
    for post in (unheard, others):
        assert await ada.replies(post) == []


async def test_a_file_without_a_mention_is_learnt_and_its_words_are_not_answered(
    ada: Player, team: Channel, handbook: Post
) -> None:
    await ada.ask(team, ada.calling("settings answer mention"))
    post = await ada.post(team, "who has read this?", files=[note("late.txt", "The sluice of Ertholm is of 1911.")])
    assert (await ada.wait_for_reply(post)).kind == "report"
    assert "1911" in (await ada.ask(team, ada.calling("Of when is the sluice of Ertholm?"))).text
