from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from storage.channels import Channel, Channels
from storage.database import open_database, sqlite_url
from storage.models import channel_audience, thread_audience


@pytest.fixture
async def channels(tmp_path: Path) -> AsyncIterator[Channels]:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        channels = Channels(database)
        await channels.ensure("web", "local", "general", "ana")
        await channels.put(Channel("web", "local", "hr", visibility="private", members=frozenset({"ana", "bo"})))
        await channels.put(Channel("web", "local", "board", visibility="private", members=frozenset({"cy"})))
        await channels.put(Channel("web", "local", "partners", visibility="shared", members=frozenset({"ana"})))
        await channels.put(Channel("web", "other", "secret"))
        yield channels


async def audiences(channels: Channels, channel: str, user: str, thread: str = "") -> frozenset[str]:
    scope = await channels.scope("web", "local", channel, user, thread)
    assert scope.workspace == "local"
    return scope.audiences


def of(*names: str) -> set[str]:
    return {channel_audience(name) for name in names}


async def test_a_new_channel_is_public_and_its_files_are_knowledge(channels: Channels) -> None:
    channel = await channels.ensure("web", "local", "new", "ana")
    assert (channel.visibility, channel.knowledge, channel.created_by) == ("public", True, "ana")


async def test_a_direct_channel_has_its_person_alone(channels: Channels) -> None:
    channel = await channels.ensure("web", "local", "@ana", "mallory")
    assert channel.visibility == "direct"
    assert channel.sees("ana") and not channel.sees("mallory")


async def test_a_public_channel_draws_on_public_channels(channels: Channels) -> None:
    assert await audiences(channels, "general", "ana") == of("general")


async def test_a_private_channel_draws_on_itself_and_public_channels(channels: Channels) -> None:
    assert await audiences(channels, "hr", "ana") == of("hr", "general")


async def test_a_direct_channel_draws_on_what_its_person_may_read(channels: Channels) -> None:
    assert await audiences(channels, "@ana", "ana") == of("@ana", "general", "hr", "partners")


async def test_a_shared_channel_draws_on_itself_alone(channels: Channels) -> None:
    assert await audiences(channels, "partners", "ana") == of("partners")


async def test_a_threads_own_files_belong_to_it(channels: Channels) -> None:
    found = await audiences(channels, "general", "ana", "t1")
    assert found == of("general") | {thread_audience("general", "t1")}


async def test_a_channel_made_private_leaves_every_other_scope_at_once(channels: Channels) -> None:
    general = await channels.get("web", "local", "general")
    assert general is not None
    assert channel_audience("general") in await audiences(channels, "hr", "bo")
    await channels.put(replace(general, visibility="private", members=frozenset({"ana"})))
    assert channel_audience("general") not in await audiences(channels, "hr", "bo")


async def test_visible_are_public_channels_and_ones_own(channels: Channels) -> None:
    assert [each.channel for each in await channels.visible("web", "local", "bo")] == ["general", "hr"]


async def test_members_are_kept_with_their_channel(channels: Channels) -> None:
    hr = await channels.get("web", "local", "hr")
    assert hr is not None and hr.members == {"ana", "bo"}
    await channels.put(replace(hr, members=frozenset({"bo"})))
    hr = await channels.get("web", "local", "hr")
    assert hr is not None and hr.members == {"bo"}


async def test_changes_at_once_lose_nothing(channels: Channels) -> None:
    rush = ("web", "local", "rush", "ana")
    await asyncio.gather(
        channels.change(*rush, lambda each: replace(each, visibility="private", members=frozenset({"ana"}))),
        channels.change(*rush, lambda each: replace(each, knowledge=False)),
        channels.change(*rush, lambda each: replace(each, quiet=True)),
        channels.ensure("web", "local", "rush", "bo"),
    )
    found = await channels.get("web", "local", "rush")
    assert found is not None
    assert (found.visibility, found.members, found.knowledge, found.quiet) == (
        "private",
        frozenset({"ana"}),
        False,
        True,
    )
