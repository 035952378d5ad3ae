"""The bot is killed at a named step of a file: its passages are there once all the same, or not at all."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from bot.lanes import FILE_NOT_READ
from tests.crashes import steps
from tests.crashes.client import Json, Post
from tests.crashes.conftest import Stage
from tests.crashes.remains import catalog

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSAGES = 70  # more than are added at once


def long_text(name: str, version: int) -> str:
    """Paragraphs that are a passage each."""
    return "\n\n".join(
        f"# {name} {number}\n\nIn version {version} chapter {number} of {name} weighs {number * version} grams."
        + f" The {name} of {number} is not to be taken lightly, whatever anybody says about it." * 2
        for number in range(PASSAGES)
    )


async def found(stage: Stage, name: str) -> list[Json]:
    return await stage.person.search("library", f"What weighs chapter 7 of {name}?")


async def assert_taken_in_once(stage: Stage, post: Post, verdict: str) -> None:
    await stage.settles()
    report = await stage.person.outcome(post)
    assert [file["verdict"] for file in report["files"]] == [verdict]
    assert [each for each in await stage.person.thread(post) if each["author"] == "bot"] == [report]
    await stage.is_clean()
    await stage.is_tidy()


@pytest.mark.parametrize("left", ["nothing", "what was there before"])
async def test_passages_that_are_gone_at_the_start_are_stored_again(stage: Stage, tmp_path: Path, left: str) -> None:
    """A folder that was lost, or that is from an older backup than the catalog."""
    name, passages, before = f"Lost{len(left)}", stage.bot.data / "passages", tmp_path / "before"
    old = await stage.person.post("library", files={f"{name}.md": f"Chapter 7 of {name} weighs 77 kilograms."})
    await stage.person.outcome(old)
    await asyncio.to_thread(stage.bot.kill)
    shutil.copytree(passages, before)
    await stage.starts()
    new = await stage.person.post("library", files={f"{name}.md": long_text(name, 2)})
    await stage.person.outcome(new)
    await asyncio.to_thread(stage.bot.kill)
    shutil.rmtree(passages)
    if left != "nothing":
        shutil.copytree(before, passages)
    await stage.starts()
    await stage.is_clean()
    assert "they are stored again" in stage.bot.log()
    texts = [hit["text"] for hit in await found(stage, name)]
    assert any("14 grams" in text for text in texts) and not any("77 kilograms" in text for text in texts)


ON_THE_WAY = {
    "bytes stored, not claimed": (steps.KEEP, "after"),
    "claimed, not acknowledged": (steps.RECEIVE, "after"),
    "leased": (steps.LEASE, "after"),
    "converted": (steps.CONVERT, "after"),
    "sections stored": (steps.SECTIONS, "after"),
    "passages partly added": (steps.ADD, "after"),
    "all added, not swapped": (steps.SWAP, "before"),
    "swapped, the old version not cleaned": (steps.SWAP, "after"),
    "taken in, bytes not dropped": (steps.ENDED, "before"),
    "reported": (steps.BEGIN_TO_SEND, "after"),
}


@pytest.mark.parametrize("step", ON_THE_WAY)
async def test_a_new_version_takes_the_place_of_the_old_one_once(stage: Stage, step: str) -> None:
    name = f"Opus{list(ON_THE_WAY).index(step)}"
    first = await stage.person.post("library", files={f"{name}.md": f"Chapter 7 of {name} weighs 77 kilograms."})
    await stage.person.outcome(first)
    at, when = ON_THE_WAY[step]
    stage.stop_at(at, when, *([] if step == "all added, not swapped" else [name]))
    posting = asyncio.create_task(stage.person.post("library", files={f"{name}.md": long_text(name, 2)}))
    await stage.recovers()
    await assert_taken_in_once(stage, await posting, "superseded")
    texts = [hit["text"] for hit in await found(stage, name)]
    assert any("14 grams" in text for text in texts) and not any("77 kilograms" in text for text in texts)


DELETED = {
    "claimed, not acknowledged": (steps.RECEIVE, "after", "Kind.DELETE"),
    "withdrawn, no tombstone": (steps.BURY, "before"),
    "tombstone set, not on disk": (steps.BURY, "after"),
    "on disk, not cleaned": (steps.LEASE, "after", "kind='delete'"),
    "cleaned from the store, not from the catalog": (steps.REMOVE, "after"),
}


@pytest.mark.parametrize("step", DELETED)
async def test_a_post_that_is_deleted_while_its_file_is_taken_in_leaves_nothing(stage: Stage, step: str) -> None:
    name, channel = f"Gone{list(DELETED).index(step)}", f"gone{list(DELETED).index(step)}"
    post = await stage.person.post(channel, files={f"{name}.md": long_text(name, 1)})
    while not catalog(stage.bot.data, "SELECT 1 FROM documents WHERE name = ? AND sections > 0", f"{name}.md"):
        await asyncio.sleep(0.01)
    at, when, *words = DELETED[step]
    stage.stop_at(at, when, *(words or [channel] if at != steps.REMOVE else []))
    deleting = asyncio.create_task(stage.person.delete(post))
    await stage.recovers()
    await deleting
    await stage.settles()
    assert not any(name in hit["name"] for hit in await found(stage, name))
    assert [each["author"] for each in await stage.person.thread(post)] == ["user"]
    await stage.is_clean()
    await stage.is_tidy()


async def test_a_file_that_is_posted_again_while_the_first_post_is_deleted_is_there_once(stage: Stage) -> None:
    first = await stage.person.post("library", files={"Twice.md": long_text("Twice", 1)})
    await stage.person.outcome(first)
    second = await stage.person.post("library", files={"Twice.md": long_text("Twice", 1)})
    assert (await stage.person.outcome(second))["files"][0]["verdict"] == "unchanged"
    stage.stop_at(steps.LEASE, "after", "kind='delete'", first.message)
    await stage.person.delete(first)
    await stage.recovers()
    await stage.settles()
    assert any("7 grams" in hit["text"] for hit in await found(stage, "Twice"))
    await stage.is_clean()


async def test_the_third_crash_on_a_file_ends_it_with_its_verdict_and_leaves_nothing(stage: Stage) -> None:
    stage.stop_at(steps.ADD, "after", "POISON", each_time=True)
    post = await stage.person.post("library", files={"POISON.md": long_text("Poison", 1)})
    await stage.crashes_again()
    await stage.crashes_again()
    await stage.recovers()
    await assert_taken_in_once(stage, post, "refused")
    report = await stage.person.outcome(post)
    assert FILE_NOT_READ in report["files"][0]["reason"]
    stage.bot.stop_nowhere()
    again = await stage.person.post("library", files={"POISON.md": long_text("Poison", 1)})
    await assert_taken_in_once(stage, again, "indexed")
