"""6. A file posted again under the same name."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.scenarios.papers import changed, note, paper
from tests.scenarios.stage import Channel, Player, Post, Seen, Stage

QUESTION = "How many days of annual leave do employees have?"


async def test_a_changed_file_is_version_2_and_replaces_version_1(ada: Player, team: Channel, handbook: Post) -> None:
    day = datetime.now().day, datetime.now(UTC).day
    report = await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"))
    assert [file.verdict for file in report.files] == ["superseded"]
    (line,) = [line for line in report.text.splitlines() if "handbook.md" in line]
    assert "version 2" in line
    assert "replaces version 1" in line
    assert any(str(each) in line for each in day), line


async def test_the_old_version_never_answers_beside_the_new(ada: Player, team: Channel, handbook: Post) -> None:
    assert "28 days" in (await ada.ask(team, QUESTION)).text
    await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"))
    answer = await ada.ask(team, QUESTION)
    assert "31 days" in answer.text
    assert "28 days" not in answer.text
    assert {source.version for source in answer.sources} == {2}


async def test_what_the_new_version_left_out_is_no_longer_known(ada: Player, team: Channel) -> None:
    await ada.share(team, note("pumps.txt", "Pump Zephyr is serviced by Halvorsen Hydraulics."))
    await ada.share(team, note("pumps.txt", "Pump Mistral runs day and night."))
    answer = await ada.ask(team, "Who services pump Zephyr?")
    assert answer.kind == "not_found", answer.text
    assert "Halvorsen" not in answer.text


async def test_an_unchanged_file_is_already_known(ada: Player, team: Channel, handbook: Post) -> None:
    report = await ada.share(team, paper("handbook.md"))
    assert [file.verdict for file in report.files] == ["unchanged"]
    assert "already known" in report.text


async def test_the_same_name_in_another_channel_is_another_document(
    stage: Stage, ada: Player, team: Channel, handbook: Post
) -> None:
    other = await stage.make_channel("other", by=ada, members=[ada])
    report = await ada.share(other, changed(paper("handbook.md"), "28 days", "31 days"))
    assert [file.verdict for file in report.files] == ["indexed"]
    assert "28 days" in (await ada.ask(team, QUESTION)).text
    assert "31 days" in (await ada.ask(other, QUESTION)).text


async def test_a_thread_that_cited_the_old_version_is_told_once(ada: Player, team: Channel, handbook: Post) -> None:
    question, _ = await ada.asks(team, QUESTION)

    def told(thread: list[Seen]) -> list[Seen] | None:
        return [seen for seen in thread if seen.by_bot and seen.kind == "notice"] or None

    await ada.share(team, changed(paper("handbook.md"), "28 days", "31 days"))
    (notice,) = await ada.wait_until(question, told)
    assert "handbook.md" in notice.text
    await ada.share(team, changed(paper("handbook.md"), "28 days", "32 days"))
    await ada.ask(team, QUESTION)
    assert await ada.wait_until(question, told) == [notice]
