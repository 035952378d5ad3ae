"""Whoever posts, asks, joins, leaves or hides what, nothing of a document outside a reply's audience gets out.

Each example is a workspace of its own in one running bot. Every document holds words that stand nowhere else, in its
text and in its name, and all answer the same questions: whatever the bot says is searched for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bot.app import open_app
from bot.settings import Settings

PEOPLE = ("ada", "ben", "cleo")
CHANNELS = ("east", "west", "board", *(f"@{name}" for name in PEOPLE))
TOPICS = ("sluice at Aken", "weir at Lauenburg")
SECONDS = 30

Json = dict[str, Any]


@dataclass
class Caller:
    """Speaks to the bot from tests that aren't coroutines. `shown` counts the secrets that were rightly told."""

    runner: asyncio.Runner
    http: aiohttp.ClientSession
    workspaces: int = 0
    documents: int = 0
    shown: int = 0
    elsewhere: list[str] = field(default_factory=list)  # ids of documents of workspaces before

    def call(self, method: str, path: str, user: str, workspace: str, **request: Any) -> tuple[int, Json]:
        return self.runner.run(self._call(method, path, {"user": user, "workspace": workspace}, **request))

    async def _call(self, method: str, path: str, who: dict[str, str], **request: Any) -> tuple[int, Json]:
        params = {**who, **request.pop("params", {})}
        async with self.http.request(method, path, params=params, **request) as response:
            body: Json = await response.json()
            return response.status, body


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()

        async def begin() -> aiohttp.ClientSession:
            opened = open_app(Settings(data_dir=tmp_path, questions_per_minute=100_000), port=0)
            app = await stack.enter_async_context(opened)
            return await stack.enter_async_context(aiohttp.ClientSession(app.url))

        try:
            yield Caller(runner, runner.run(begin()))
        finally:
            runner.run(stack.aclose())


@dataclass
class Channel:
    """`members` is None where everyone may read it."""

    members: frozenset[str] | None
    knowledge: bool = True

    def sees(self, user: str) -> bool:
        return self.members is None or user in self.members


@dataclass(frozen=True)
class Paper:
    secret: str
    name: str
    posted_by: str
    channel: str
    thread: str  # "" where it is the channel's
    id: str

    @property
    def words(self) -> tuple[str, str, str]:
        return self.secret, self.name, self.id


@dataclass(frozen=True)
class Thread:
    channel: str
    thread: str


@dataclass(frozen=True)
class Card:
    thread: Thread
    asker: str
    clarification: str
    options: int


class Audience(RuleBasedStateMachine):
    threads: Bundle[Thread] = Bundle("threads")
    cards: Bundle[Card] = Bundle("cards")

    caller: ClassVar[Caller]

    def __init__(self) -> None:
        super().__init__()
        self.caller.workspaces += 1
        self.workspace = f"w{self.caller.workspaces}"
        self.channels = {name: Channel(frozenset([name[1:]]) if name[0] == "@" else None) for name in CHANNELS}
        self.papers: list[Paper] = []
        self.gone: list[Paper] = []
        self.looks = 0

    def teardown(self) -> None:
        self.caller.elsewhere = [paper.id for paper in self.papers][:3]

    # what people do

    @initialize(members=st.sets(st.sampled_from(PEOPLE), min_size=1), topic=st.sampled_from(TOPICS))
    def begin(self, members: set[str], topic: str) -> None:
        """There is something to tell everywhere, and something to hide."""
        member = min(members)
        self._set("board", member, {"visibility": "private", "members": sorted(members)}, frozenset(members))
        for channel in ("board", "east", f"@{member}"):
            self._post(channel, member, topic, "")

    @rule(name=st.sampled_from(CHANNELS[:3]), who=st.sampled_from(PEOPLE), others=st.sets(st.sampled_from(PEOPLE)))
    def make_private(self, name: str, who: str, others: set[str]) -> None:
        self._set(name, who, {"visibility": "private", "members": sorted(others | {who})}, frozenset(others | {who}))

    @rule(name=st.sampled_from(CHANNELS[:3]), who=st.sampled_from(PEOPLE))
    def make_public(self, name: str, who: str) -> None:
        self._set(name, who, {"visibility": "public"}, None)

    @rule(name=st.sampled_from(CHANNELS), who=st.sampled_from(PEOPLE), knowledge=st.booleans())
    def take_files_or_none(self, name: str, who: str, knowledge: bool) -> None:
        channel = self.channels[name]
        status, _ = self._call("PUT", f"/api/channels/{name}", who, json={"knowledge": knowledge})
        assert status == (200 if channel.sees(who) else 403)
        channel.knowledge = knowledge if channel.sees(who) else channel.knowledge

    @rule(name=st.sampled_from(CHANNELS), who=st.sampled_from(PEOPLE), topic=st.sampled_from(TOPICS))
    def post_a_file(self, name: str, who: str, topic: str) -> None:
        self._post(name, who, topic, "")

    @rule(target=threads, name=st.sampled_from(CHANNELS), who=st.sampled_from(PEOPLE), topic=st.sampled_from(TOPICS))
    def ask_about_a_file(self, name: str, who: str, topic: str) -> Any:
        """With the question comes a file: the channel's, or where the channel takes none, this thread's alone."""
        found = self._post(name, who, topic, _question(topic))
        return found or multiple()

    @rule(target=threads, name=st.sampled_from(CHANNELS), who=st.sampled_from(PEOPLE), topic=st.sampled_from(TOPICS))
    def ask(self, name: str, who: str, topic: str) -> Any:
        return self._ask(name, who, _question(topic)) or multiple()

    @rule(target=cards, thread=threads, who=st.sampled_from(PEOPLE), topic=st.sampled_from((*TOPICS, "")))
    def ask_on(self, thread: Thread, who: str, topic: str) -> Any:
        text = _question(topic) if topic else "and what is the closing hour?"
        if self._ask(thread.channel, who, text, thread.thread) is None:
            return multiple()
        _, shown = self._call("GET", f"/api/threads/{thread.thread}", who)
        last = shown["messages"][-1]
        if last["kind"] != "clarification":
            return multiple()
        return Card(thread, who, last["clarification"], len(last["options"]))

    @rule(card=consumes(cards), option=st.integers(0, 5))
    def choose(self, card: Card, option: int) -> None:
        body = {"option": option % max(card.options, 1)}
        status, made = self._call("POST", f"/api/clarifications/{card.clarification}", card.asker, json=body)
        if status == 202:
            self._check(card.thread, card.asker, made["message"])

    @precondition(lambda self: self.papers)
    @rule(number=st.integers(0, 100))
    def forget(self, number: int) -> None:
        paper = self.papers[number % len(self.papers)]
        if self.channels[paper.channel].sees(paper.posted_by):
            status, _ = self._call("DELETE", f"/api/documents/{paper.id}", paper.posted_by)
            assert status == 200
            self.papers.remove(paper)
            self.gone.append(paper)

    # what they see

    @invariant()
    def nobody_is_shown_more_than_they_may_see(self) -> None:
        self.looks += 1
        who = PEOPLE[self.looks % len(PEOPLE)]
        theirs = [paper for paper in self.papers if self.channels[paper.channel].sees(who)]
        _, listed = self._call("GET", "/api/documents", who)
        assert {each["document"] for each in listed["documents"]} == {each.id for each in theirs if not each.thread}
        self._search(who, CHANNELS[self.looks % len(CHANNELS)])
        for paper in self.papers:
            status, _ = self._call("GET", f"/api/documents/{paper.id}/sections/1", who)
            assert status == (200 if paper in theirs else 404)
        for id in self.caller.elsewhere:
            assert self._call("GET", f"/api/documents/{id}/sections/1", who)[0] == 404

    def _search(self, who: str, name: str) -> None:
        status, found = self._call("POST", "/api/search", who, json={"query": _question(TOPICS[0]), "channel": name})
        assert status == (200 if self.channels[name].sees(who) else 403)
        self._holds_only(self._allowed(name, who, ""), found)

    # how they are told

    def _allowed(self, channel: str, who: str, thread: str) -> list[Paper]:
        """What a reply may draw on here, by the rule as it is written down."""
        direct = channel.startswith("@")
        return [
            paper
            for paper in self.papers
            if (paper.thread == thread and paper.channel == channel)
            or (
                not paper.thread
                and (
                    paper.channel == channel
                    or self.channels[paper.channel].members is None
                    or (direct and self.channels[paper.channel].sees(who))
                )
            )
        ]

    def _holds_only(self, allowed: list[Paper], told: object) -> None:
        text = json.dumps(told)
        for paper in [*self.papers, *self.gone]:
            for word in paper.words:
                assert word not in text or paper in allowed, (paper, text)
        self.caller.shown += sum(paper.secret in text for paper in allowed)

    def _check(self, thread: Thread, who: str, message: str) -> Json:
        status, turn = self._call("GET", f"/api/messages/{message}/turn", who, params={"wait": SECONDS})
        assert status == 200 and turn["state"] == "done", turn
        told = {name: value for name, value in turn.items() if name != "files"}
        self._holds_only(self._allowed(thread.channel, who, thread.thread), told)
        return turn

    def _ask(self, channel: str, who: str, text: str, thread: str = "") -> Thread | None:
        body = {"channel": channel, "text": text, **({"thread": thread} if thread else {})}
        status, made = self._call("POST", "/api/messages", who, json=body)
        assert status == (202 if self.channels[channel].sees(who) else 403), made
        if status == 403:
            return None
        asked = Thread(channel, made["thread"])
        self._check(asked, who, made["message"])
        return asked

    def _post(self, name: str, who: str, topic: str, text: str) -> Thread | None:
        self.caller.documents += 1
        number = self.caller.documents
        secret, file = f"zq{number:05}x", f"paper{number:05}q.txt"
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("channel", name)
        form.add_field("text", text)
        form.add_field("files", f"The opening hour of the {topic} is {secret} today.".encode(), filename=file)
        status, made = self._call("POST", "/api/messages", who, data=form)
        channel = self.channels[name]
        assert status == (202 if channel.sees(who) else 403)
        if status == 403:
            return None
        thread = Thread(name, made["thread"])
        _, turn = self._call("GET", f"/api/messages/{made['message']}/turn", who, params={"wait": SECONDS})
        if (document := turn["files"][0].get("document")) and turn["files"][0]["verdict"] == "indexed":
            own = "" if channel.knowledge else made["thread"]
            self.papers.append(Paper(secret, file, who, name, own, document))
        if text:
            self._check(thread, who, made["message"])
        return thread

    def _set(self, name: str, who: str, body: Json, members: frozenset[str] | None) -> None:
        channel = self.channels[name]
        status, _ = self._call("PUT", f"/api/channels/{name}", who, json=body)
        assert status == (200 if channel.sees(who) else 403)
        if status == 200:
            channel.members = members

    def _call(self, method: str, path: str, who: str, **request: Any) -> tuple[int, Json]:
        return self.caller.call(method, path, who, self.workspace, **request)


def _question(topic: str) -> str:
    return f"What is the opening hour of the {topic}?"


@pytest.mark.timeout(300)
def test_nothing_of_a_document_gets_out_of_its_audience(caller: Caller) -> None:
    Audience.caller = caller
    run_state_machine_as_test(
        Audience,
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            phases=[Phase.generate],  # each example is a workspace that is filled anew: shrinking takes minutes
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert caller.shown > 20  # else the bot told nobody anything, and nothing was shown
