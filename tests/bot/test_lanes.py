"""Every claim comes to one outcome, in its lane's order, whatever fails on the way."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bot import lanes as lanes_module
from bot.lanes import ANSWERED_ANEW, SOMETHING_WRONG
from bot.messages import Kind
from bot.platform import Refused, Why
from storage.embeddings import BundledEmbedder
from storage.models import Version
from tests.agent.library import Library, asked, open_agent, open_library
from tests.bot.core import Core, MemoryPlatform, open_core

HOLIDAYS = "Employees have 28 days of paid holiday a year."
QUESTION = "How many days of paid holiday do employees have?"


@pytest.fixture
async def library(tmp_path: Path, empty_database: Path, embedder: BundledEmbedder) -> AsyncIterator[Library]:
    shutil.copy(empty_database, tmp_path / "app.sqlite")
    async with open_library(tmp_path, embedder) as library:
        await library.add("handbook.md", {"Holidays": HOLIDAYS})
        yield library


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform()


@pytest.fixture
async def core(
    tmp_path: Path, library: Library, embedder: BundledEmbedder, platform: MemoryPlatform
) -> AsyncIterator[Core]:
    async with open_core(library, tmp_path, embedder, platform) as core:
        yield core


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


async def test_a_question_gets_one_answer_however_often_it_is_delivered(core: Core, platform: MemoryPlatform) -> None:
    first = await core.say(QUESTION, "m1")
    again = await core.say(QUESTION, "m1")
    await core.settled("m1")
    assert (first.new, again.new, again.row) == (True, False, first.row)
    (reply,) = platform.replies_to("m1")
    assert reply.kind == "answer" and "28 days" in reply.text and reply.citations[0].quote == HOLIDAYS


async def test_questions_of_one_thread_are_answered_in_order(core: Core, platform: MemoryPlatform) -> None:
    names = [f"m{number}" for number in range(6)]
    for name in names:
        await core.say(QUESTION, name)
    await core.settled(*names)
    assert [to for to, _ in platform.sent] == names


async def test_threads_are_answered_side_by_side(core: Core, platform: MemoryPlatform) -> None:
    names = [f"m{number}" for number in range(20)]
    await asyncio.gather(*(core.say(QUESTION, name, thread=name) for name in names))
    await core.settled(*names)
    assert sorted(to for to, _ in platform.sent) == sorted(names)


async def test_a_send_that_fails_is_made_again(core: Core, platform: MemoryPlatform) -> None:
    platform.failing = 1
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    assert len(platform.replies_to("m1")) == 1


async def test_a_post_whose_answer_was_lost_is_found_and_not_made_again(core: Core, platform: MemoryPlatform) -> None:
    platform.failing_after_posting = 1
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    assert len(platform.replies_to("m1")) == 1
    lines = await core.stores.transcript.thread("web", "acme", "t")
    assert [(line.author, line.reply_to) for line in lines] == [("user", ""), ("bot", "m1")]


async def test_what_runs_when_the_bot_ends_is_finished_by_the_next_one(
    tmp_path: Path, library: Library, embedder: BundledEmbedder, platform: MemoryPlatform
) -> None:
    platform.hold = asyncio.Event()
    async with open_core(library, tmp_path, embedder, platform) as core:
        await core.say(QUESTION, "m1")
        await asyncio.wait_for(platform.held.wait(), 20)
    assert platform.sent == []
    platform.hold = None
    async with open_core(library, tmp_path, embedder, platform) as core:
        await core.settled("m1")
    assert len(platform.replies_to("m1")) == 1


async def test_a_message_that_fails_again_and_again_ends_with_a_plain_error(
    tmp_path: Path, core: Core, platform: MemoryPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_module, "POLL_SECONDS", 0.1)
    shutil.rmtree(tmp_path / "lance")
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert (reply.kind, reply.text) == ("error", SOMETHING_WRONG)


async def test_a_deleted_question_is_not_answered(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say(QUESTION, "m1")
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("", "m1", kind=Kind.DELETE)
    platform.hold.set()
    await core.settled("m1")
    assert platform.sent == []
    assert await core.states("m1") == ["withdrawn", "done"]
    assert not (await core.say(QUESTION, "m1")).new, "a late repeat of what was deleted is known"


async def test_an_edit_stops_the_running_answer_and_is_answered_in_its_place(
    core: Core, platform: MemoryPlatform, library: Library
) -> None:
    await library.add("notice.md", {"Notice": "The notice period for contractors is 14 days."})
    platform.hold = asyncio.Event()
    await core.say(QUESTION, "m1")
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("What is the notice period for contractors?", "m1", kind=Kind.EDIT, revision="1")
    platform.hold.set()
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert "14 days" in reply.text and "28 days" not in reply.text


async def test_an_edit_after_the_answer_is_answered_anew_and_the_old_answer_points_there(
    core: Core, platform: MemoryPlatform, library: Library
) -> None:
    await library.add("notice.md", {"Notice": "The notice period for contractors is 14 days."})
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    await core.say("What is the notice period for contractors?", "m1", kind=Kind.EDIT, revision="1")
    await core.settled("m1")
    first, second = platform.replies_to("m1")
    assert "28 days" in first.text and "14 days" in second.text
    await eventually(lambda: [reply.text for _, reply in platform.revised] == [ANSWERED_ANEW])


async def test_an_edit_that_changes_nothing_is_not_answered(core: Core, platform: MemoryPlatform) -> None:
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    await core.say(QUESTION, "m1", kind=Kind.EDIT, revision="1")
    await core.settled("m1")
    assert len(platform.replies_to("m1")) == 1


async def test_only_its_author_changes_a_message(core: Core) -> None:
    await core.say(QUESTION, "m1")
    for kind in (Kind.EDIT, Kind.DELETE):
        with pytest.raises(Refused) as refused:
            await core.say("other", "m1", kind=kind, user="mallory", revision="1")
        assert refused.value.why is Why.NOT_AUTHOR


async def test_stop_ends_what_runs_in_its_thread(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say(QUESTION, "m1")
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("stop", "m2")
    platform.hold.set()
    await core.settled("m1", "m2")
    assert [(to, reply.kind) for to, reply in platform.sent] == [("m2", "notice")]


async def test_a_document_that_is_forgotten_while_an_answer_is_written_is_not_cited(
    core: Core, platform: MemoryPlatform, library: Library
) -> None:
    other = await library.add(
        "old.md", {"Holidays": "Employees of the old company had 20 days of paid holiday a year."}
    )
    version = Version(other.document, other.version)
    await core.say(QUESTION, "m1")
    await library.documents.forget(version.document)
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert all(citation.document != version.document for citation in reply.citations)


async def test_no_answer_mixes_versions_that_take_each_others_place(
    core: Core, platform: MemoryPlatform, library: Library
) -> None:
    """Each version names itself in two sections, and both are asked for while the versions change."""
    asked = "How long is the lease of the depot? How high is the rent of the depot?"
    versions: dict[int, int] = {}

    async def post(number: int) -> None:
        lease = f"The lease of the depot is {number + 100} weeks long."
        rent = f"The rent of the depot is {number + 100} euros high."
        versions[(await library.add("depot.md", {"Lease": lease, "Rent": rent})).version] = number + 100

    await post(0)
    names = [f"m{number}" for number in range(24)]
    for number, name in enumerate(names, start=1):
        await core.say(asked, name, thread=name)
        if number % 2 == 0:
            await post(number)
    await core.settled(*names)
    replies = [platform.replies_to(name) for name in names]
    for (reply,) in replies:
        cited = {citation.version for citation in reply.citations if citation.name == "depot.md"}
        named = {int(number) for number in re.findall(r"is (\d{3}) (?:weeks|euros)", reply.text)}
        assert reply.kind == "error" or named == {versions[each] for each in cited}, reply.text
        assert len(named) <= 1, reply.text
    assert sum(reply.kind == "answer" for (reply,) in replies) > len(names) / 2


async def test_a_stalled_worker_posts_nothing_once_its_lease_is_taken(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say(QUESTION, "m1")
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.stores.journal.release_all()
    taken = await core.stores.journal.lease((Kind.MESSAGE,))
    assert taken is not None
    platform.hold.set()
    await asyncio.sleep(0.5)
    assert platform.sent == []
    await core.stores.journal.check(taken)


async def test_a_post_with_files_and_a_question_gets_one_reply_with_both(core: Core, platform: MemoryPlatform) -> None:
    text = b"# Travel\n\nThe daily allowance for trips abroad is 48 euros."
    await core.say("What is the daily allowance for trips abroad?", "m1", files={"travel.md": text})
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert reply.files[0].verdict == "indexed" and "48 euros" in reply.text and reply.citations
    assert platform.files == {}, "the bytes are not kept when they were read"


async def test_a_post_that_is_deleted_while_it_is_read_leaves_nothing(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say("", "m1", files={"travel.md": b"The daily allowance is 48 euros."})
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("", "m1", kind=Kind.DELETE)
    platform.hold.set()
    await core.settled("m1")
    assert platform.sent == [] and platform.files == {}
    scope = await core.stores.channels.scope("web", "acme", "general", "ann")
    assert [each.name for each in await core.stores.documents.visible(scope)] == ["handbook.md"]


async def test_threads_that_cite_a_file_hear_of_its_new_version_once(core: Core, platform: MemoryPlatform) -> None:
    await core.say("", "p1", thread="p1", files={"travel.md": b"The daily allowance for trips is 48 euros."})
    await core.settled("p1")
    for name in ("q1", "q2"):
        await core.say("What is the daily allowance for trips?", name, thread="t1")
        await core.settled(name)
    await core.say("", "p2", thread="p2", files={"travel.md": b"The daily allowance for trips is 52 euros."})
    await core.settled("p2")
    await eventually(lambda: any(reply.kind == "notice" for _, reply in platform.sent))
    await asyncio.sleep(0.3)
    (notice,) = [reply.text for _, reply in platform.sent if reply.kind == "notice"]
    assert "version 2" in notice


async def test_too_many_questions_of_one_person_are_refused_and_nothing_is_claimed(
    tmp_path: Path, library: Library, embedder: BundledEmbedder, platform: MemoryPlatform
) -> None:
    async with open_core(library, tmp_path, embedder, platform, pace=2) as core:
        await core.say("", "p1", files={"a.md": b"Some words."})
        await core.say(QUESTION, "m1")
        await core.say(QUESTION, "m2")
        with pytest.raises(Refused) as refused:
            await core.say(QUESTION, "m3")
        assert refused.value.why is Why.TOO_MANY
        assert not (await core.say(QUESTION, "m2")).new, "a repeat is no further question"
        await core.say(QUESTION, "m4", user="bo")
        await core.settled("m1", "m2", "m4")
    assert await core.states("m3") == []


async def test_what_people_say_to_each_other_is_not_answered(core: Core, platform: MemoryPlatform) -> None:
    await core.say("@bo do you know this?", "m1", mentions_others=True)
    await core.say("@bo @bot do you know this?", "m2", mentions_others=True, mentions_bot=True)
    await core.settled("m1", "m2")
    assert [to for to, _ in platform.sent] == ["m2"]


TRAVEL = {"travel.md": b"# Travel\n\nThe daily allowance for trips abroad is 48 euros."}


async def test_a_caption_that_is_edited_while_the_file_is_read_leaves_the_report(
    core: Core, platform: MemoryPlatform
) -> None:
    platform.hold = asyncio.Event()
    await core.say("Here is the travel policy", "m1", files=TRAVEL)
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("Here is the new travel policy", "m1", kind=Kind.EDIT, revision="1")
    platform.hold.set()
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert reply.kind == "report" and reply.files[0].verdict == "indexed"
    line = await core.stores.transcript.find("web", "acme", "m1")
    assert line is not None and [file["verdict"] for file in line.files] == ["indexed"]


async def test_a_caption_that_is_edited_after_the_report_changes_nothing_else(
    core: Core, platform: MemoryPlatform
) -> None:
    await core.say("Here is the travel policy", "m1", files=TRAVEL)
    await core.settled("m1")
    await core.say("Here is the new travel policy", "m1", kind=Kind.EDIT, revision="1")
    await core.settled("m1")
    assert [reply.kind for reply in platform.replies_to("m1")] == ["report"]
    assert platform.revised == []


async def test_a_caption_that_becomes_a_question_is_answered_beside_the_report(
    core: Core, platform: MemoryPlatform
) -> None:
    await core.say("Here is the travel policy", "m1", files=TRAVEL)
    await core.settled("m1")
    await core.say("What is the daily allowance for trips abroad?", "m1", kind=Kind.EDIT, revision="1")
    await core.settled("m1")
    report, answer = platform.replies_to("m1")
    assert (report.kind, answer.kind) == ("report", "answer")
    assert "48 euros" in answer.text and not answer.files
    assert platform.revised == []


async def test_stop_does_not_take_the_verdict_of_a_file(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say("", "m1", files=TRAVEL)
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("stop", "m2")
    platform.hold.set()
    await core.settled("m1", "m2")
    assert [reply.kind for reply in platform.replies_to("m1")] == ["report"]


async def test_stop_leaves_the_questions_of_others_alone(core: Core, platform: MemoryPlatform) -> None:
    platform.hold = asyncio.Event()
    await core.say(QUESTION, "m1")
    await asyncio.wait_for(platform.held.wait(), 20)
    await core.say("stop", "m2", user="bo")
    platform.hold.set()
    await core.settled("m1", "m2")
    assert [reply.kind for reply in platform.replies_to("m1")] == ["answer"]


async def test_a_thread_hears_nothing_of_a_document_that_it_may_not_see_any_more(
    core: Core, platform: MemoryPlatform
) -> None:
    await core.say("", "p1", thread="p1", channel="hr", files=TRAVEL)
    await core.settled("p1")
    await core.say("What is the daily allowance for trips abroad?", "q1", thread="t1")
    await core.settled("q1")
    assert platform.replies_to("q1")[0].citations
    members = frozenset({"ann"})
    await core.stores.channels.change(
        "web", "acme", "hr", "ann", lambda hr: replace(hr, visibility="private", members=members)
    )
    changed = {"travel.md": b"The daily allowance for trips is 52 euros."}
    await core.say("", "p2", thread="p2", channel="hr", files=changed)
    await core.settled("p2")
    await asyncio.sleep(0.5)
    assert [reply.kind for _, reply in platform.sent if reply.kind == "notice"] == []


async def test_a_channel_that_takes_no_files_says_so_for_each(core: Core, platform: MemoryPlatform) -> None:
    await core.say("settings knowledge off", "m0", thread="m0")
    await core.settled("m0")
    await core.say("", "m1", files=TRAVEL)
    await core.settled("m1")
    (reply,) = platform.replies_to("m1")
    assert [(file.name, file.verdict) for file in reply.files] == [("travel.md", "refused")]
    (row,) = await core.stores.journal.of_message("web", "acme", "m1")
    assert row.outcome is not None and row.outcome["files"][0]["verdict"] == "refused"


async def test_a_choice_that_somebody_else_types_is_the_askers(
    core: Core, platform: MemoryPlatform, library: Library
) -> None:
    for name, days in (("alder", "30 days"), ("birch", "60 days")):
        await library.add(f"{name}.md", {"Notice": f"The notice period of this contract is {days}."})
    await core.say("What is the notice period of the contract?", "m1")
    await core.settled("m1")
    assert platform.replies_to("m1")[0].kind == "clarification"
    await core.say("the second one", "m2", user="bo")
    await core.settled("m2")
    (reply,) = platform.replies_to("m2")
    assert reply.kind == "notice" and "ann" in reply.text
    await core.say("the second one", "m3")
    await core.settled("m3")
    assert "60 days" in platform.replies_to("m3")[0].text


# what is left behind


def kept_threads(folder: Path) -> list[str]:
    kept = "SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM writes ORDER BY 1"
    with contextlib.closing(sqlite3.connect(folder / "checkpoints.sqlite")) as connection:
        return [thread for (thread,) in connection.execute(kept)]


async def test_an_answer_leaves_nothing_with_the_agent(core: Core, tmp_path: Path) -> None:
    await core.say(QUESTION, "m1")
    await core.settled("m1")
    assert kept_threads(tmp_path) == []


async def test_a_question_back_is_kept_until_its_answer(core: Core, library: Library, tmp_path: Path) -> None:
    for name, days in (("north.md", 10), ("south.md", 20)):
        await library.add(name, {"Probation": f"The probation period is {days} weeks."})
    await core.say("How long is the probation period?", "m1")
    await core.settled("m1")
    assert kept_threads(tmp_path) == ["web:acme:general:t"]
    await core.say("north.md", "m2")
    await core.settled("m2")
    assert kept_threads(tmp_path) == []


@pytest.mark.parametrize("how", [Kind.DELETE, Kind.EDIT, "stop"])
async def test_a_turn_that_is_broken_off_leaves_nothing_with_the_agent(
    how: str, core: Core, platform: MemoryPlatform, library: Library, tmp_path: Path
) -> None:
    """It runs in a thread of the agent's own, as a question back waits beside it."""
    for name, days in (("north.md", 10), ("south.md", 20)):
        await library.add(name, {"Probation": f"The probation period is {days} weeks."})
    await core.say("How long is the probation period?", "m1")
    await core.settled("m1")
    waiting = kept_threads(tmp_path)
    platform.hold, platform.hold_at = asyncio.Event(), "searching"
    await core.say(QUESTION, "m2", user="bo")
    await asyncio.wait_for(platform.held.wait(), 20)
    assert len(kept_threads(tmp_path)) == 2
    if how == "stop":
        await core.say("stop", "m3", user="bo")
        await core.settled("m3")
    else:
        await core.say("thanks", "m2", user="bo", kind=Kind(how), revision="1")
    await core.settled("m2")
    await eventually(lambda: kept_threads(tmp_path) == waiting)


async def test_at_the_start_the_agent_forgets_what_no_turn_needs(
    tmp_path: Path, library: Library, embedder: BundledEmbedder, platform: MemoryPlatform
) -> None:
    async with open_agent(library, tmp_path) as asking:
        await asking.answer(asked(QUESTION, agent_thread="web:acme:general:crashed"))
    assert kept_threads(tmp_path) == ["web:acme:general:crashed"]
    async with open_core(library, tmp_path, embedder, platform):
        assert kept_threads(tmp_path) == []
