"""What only the web platform has: its statuses, idempotent requests, and streams that go on where they were."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.running import RunningBot
from tests.scenarios.conftest import SIDES
from tests.scenarios.papers import note, paper
from tests.scenarios.stage import SECONDS, Channel, Player, Post, Stage
from tests.scenarios.test_clarifying import UNCLEAR
from tests.scenarios.web_stage import server_sent

QUESTION = "How many days of annual leave do employees have?"
Json = dict[str, Any]


pytestmark = pytest.mark.parametrize("side", [side for side in SIDES if side[0] == "web"], indirect=True, ids="-".join)


@pytest.fixture
async def http(bot: RunningBot, stage: Stage) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(bot.url, timeout=aiohttp.ClientTimeout(total=SECONDS)) as http:
        yield http


async def answered(http: aiohttp.ClientSession, method: str, path: str, **request: Any) -> tuple[int, Json]:
    async with http.request(method, path, **request) as response:
        body = await response.json()
        if response.status >= 400:
            assert set(body) == {"error"}, body
            assert body["error"].strip()
        return response.status, body


def message(player: Player, channel: Channel, text: str, **more: str) -> Json:
    return {"user": player.name, "channel": channel.id, "text": text, **more}


async def test_a_post_is_taken_with_202(http: aiohttp.ClientSession, ada: Player, library: Channel) -> None:
    status, body = await answered(http, "POST", "/api/messages", json=message(ada, library, QUESTION))
    assert status == 202
    assert set(body) == {"message", "thread"}
    post = Post(library, body["thread"], body["message"])
    assert (await ada.wait_for_reply(post)).kind == "answer"


async def test_a_repeat_with_the_same_key_is_harmless(
    http: aiohttp.ClientSession, ada: Player, ben: Player, library: Channel
) -> None:
    key = {"Idempotency-Key": f"once-{library.id}"}
    first = await answered(http, "POST", "/api/messages", json=message(ada, library, QUESTION), headers=key)
    again = await answered(http, "POST", "/api/messages", json=message(ada, library, QUESTION), headers=key)
    assert first == again
    assert first[0] == 202
    other = await answered(http, "POST", "/api/messages", json=message(ada, library, "Another question?"), headers=key)
    assert other[0] == 409
    bens = await answered(http, "POST", "/api/messages", json=message(ben, library, QUESTION), headers=key)
    assert bens[0] == 202
    assert bens[1]["message"] != first[1]["message"], "a key is a person's own"
    post = Post(library, first[1]["thread"], first[1]["message"])
    await ada.wait_for_reply(post)
    await ada.follow_up(post, "thanks")
    assert len(await ada.replies(post)) == 1


async def test_a_repeat_after_a_crash_is_harmless(
    http: aiohttp.ClientSession, stage: Stage, ada: Player, library: Channel
) -> None:
    key = {"Idempotency-Key": f"crash-{library.id}"}
    first = await answered(http, "POST", "/api/messages", json=message(ada, library, QUESTION), headers=key)
    await stage.kill()
    await stage.start()
    again = await answered(http, "POST", "/api/messages", json=message(ada, library, QUESTION), headers=key)
    assert first == again
    post = Post(library, first[1]["thread"], first[1]["message"])
    await ada.wait_for_reply(post)
    await ada.follow_up(post, "thanks")
    assert len(await ada.replies(post)) == 1


async def test_a_repeated_upload_is_learnt_once(http: aiohttp.ClientSession, ada: Player, team: Channel) -> None:
    def form(content: bytes) -> aiohttp.FormData:
        form = aiohttp.FormData(message(ada, team, ""), default_to_multipart=True)
        form.add_field("files", content, filename="handbook.md")
        return form

    key = {"Idempotency-Key": f"upload-{team.id}"}
    content = paper("handbook.md").content
    first = await answered(http, "POST", "/api/messages", data=form(content), headers=key)
    again = await answered(http, "POST", "/api/messages", data=form(content), headers=key)
    other = await answered(http, "POST", "/api/messages", data=form(content + b"\nmore"), headers=key)
    assert first == again
    assert (first[0], other[0]) == (202, 409)
    post = Post(team, first[1]["thread"], first[1]["message"])
    report = await ada.wait_for_reply(post)
    assert [file.verdict for file in report.files] == ["indexed"]


async def test_a_post_is_changed_and_deleted_by_its_author_alone(
    http: aiohttp.ClientSession, ada: Player, ben: Player, team: Channel, handbook: Post
) -> None:
    address = f"/api/messages/{handbook.message}"
    who = {"user": ben.name}
    status, _ = await answered(http, "PATCH", address, params=who, json={"user": ben.name, "text": "mine"})
    assert status == 403
    status, _ = await answered(http, "DELETE", address, params=who, json=who)
    assert status == 403
    assert (await ben.ask(team, QUESTION)).kind == "answer"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_post_that_is_not_there_cannot_be_changed(
    http: aiohttp.ClientSession, ada: Player, method: str
) -> None:
    request = {"params": {"user": ada.name}, "json": {"user": ada.name, "text": "x"}}
    status, _ = await answered(http, method, "/api/messages/nothing-here", **request)
    assert status == 404


async def test_the_bots_own_messages_are_changed_by_nobody(
    http: aiohttp.ClientSession, ada: Player, library: Channel
) -> None:
    answer = await ada.ask(library, QUESTION)
    for method in ("PATCH", "DELETE"):
        request = {"params": {"user": ada.name}, "json": {"user": ada.name, "text": "x"}}
        status, _ = await answered(http, method, f"/api/messages/{answer.message}", **request)
        assert status in (403, 404)


async def test_a_private_channel_is_closed_to_others_at_every_address(
    http: aiohttp.ClientSession, ada: Player, ben: Player, stage: Stage
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, paper("board_minutes.md"))
    post, answer = await ada.asks(alone, "What is the code name of the purchase?")
    for path in (
        f"/api/threads?channel={alone.id}",
        f"/api/threads/{post.thread}",
        f"/api/threads/{post.thread}/events",
        answer.sources[0].handle,
    ):
        status, body = await answered(http, "GET", path, params={"user": ben.name})
        assert status == (403 if path.endswith(alone.id) else 404), path
        assert "Heron" not in body["error"]
    for method, path, more in (
        ("GET", f"/api/messages/{answer.message}/turn", {}),
        ("PATCH", f"/api/messages/{post.message}", {"text": "mine now"}),
        ("DELETE", f"/api/messages/{post.message}", {}),
        ("POST", "/api/feedback", {"message": answer.message, "value": 1}),
    ):
        there = await answered(http, method, path, json={"user": ben.name, **more}, params={"user": ben.name})
        path = path.replace(post.message, "nowhere").replace(answer.message, "r999999.0")
        more = {**more, "message": "r999999.0"} if "message" in more else more
        nowhere = await answered(http, method, path, json={"user": ben.name, **more}, params={"user": ben.name})
        assert there == nowhere == (404, {"error": "There is no such message."}), path
    for path in ("/api/channels", "/api/documents"):
        async with http.get(path, params={"user": ben.name}) as response:
            shown = await response.text()
        assert alone.id not in shown
        assert "board_minutes" not in shown
        async with http.get(path, params={"user": ada.name}) as response:
            assert alone.id in await response.text()


async def test_events_of_a_private_channel_reach_its_members_alone(
    bot: RunningBot, http: aiohttp.ClientSession, ada: Player, ben: Player, stage: Stage, team: Channel, handbook: Post
) -> None:
    alone = await stage.make_channel("alone", by=ada, members=[ada])
    await ada.share(alone, paper("board_minutes.md"))
    async with listening(http, ben.name) as events:
        await ada.ask(alone, "What is the code name of the purchase?")
        await ben.ask(team, QUESTION)
        seen = await until(events, "reply", "28 days")
    assert "Heron" not in json.dumps(seen)
    assert "board_minutes" not in json.dumps(seen)


async def test_a_reply_that_was_missed_comes_with_the_last_event_id(
    http: aiohttp.ClientSession, ada: Player, library: Channel
) -> None:
    async with listening(http, ada.name) as events:
        await ada.ask(library, QUESTION)
        last = (await until(events, "reply", "28 days"))[-1]["id"]
    missed = await ada.ask(library, "How long is the probation period?")
    async with listening(http, ada.name, last) as events:
        (seen, *_) = [each for each in await until(events, "reply", "six months") if '"bot"' in each["data"]]
    assert json.loads(seen["data"])["message"] == missed.message


async def test_a_missed_reply_comes_after_a_restart_too(
    http: aiohttp.ClientSession, stage: Stage, ada: Player, library: Channel
) -> None:
    async with listening(http, ada.name) as events:
        await ada.ask(library, QUESTION)
        last = (await until(events, "reply", "28 days"))[-1]["id"]
    missed = await ada.ask(library, "How long is the probation period?")
    await stage.restart()
    async with listening(http, ada.name, last) as events:
        seen = await until(events, "reply", "six months")
    replies = [json.loads(each["data"])["message"] for each in seen if each["event"] == "reply"]
    assert missed.message in replies
    assert len(replies) == len(set(replies))


async def test_a_threads_events_are_its_own(http: aiohttp.ClientSession, ada: Player, library: Channel) -> None:
    post, answer = await ada.asks(library, QUESTION)
    async with listening(http, ada.name, path=f"/api/threads/{post.thread}/events") as events:
        await ada.ask(library, "How long is the probation period?")
        await ada.follow_up(post, "and for contractors?")
        seen = await until(events, "reply", "no paid annual leave")
    assert "six months" not in json.dumps(seen)
    kinds = {each["event"] for each in seen}
    assert {"status", "token", "reply"} <= kinds


async def test_a_thread_reads_as_documented(http: aiohttp.ClientSession, ada: Player, library: Channel) -> None:
    post, _ = await ada.asks(library, QUESTION)
    status, body = await answered(http, "GET", f"/api/threads/{post.thread}", params={"user": ada.name})
    assert status == 200
    assert body["thread"] == post.thread
    assert body["channel"] == library.id
    asked, answer = body["messages"]
    fields = {
        "message",
        "author",
        "user",
        "text",
        "reply_to",
        "kind",
        "citations",
        "options",
        "clarification",
        "files",
        "edited",
        "deleted",
    }
    assert fields <= set(asked)
    assert fields <= set(answer)
    assert (asked["author"], asked["user"], asked["text"]) == ("user", ada.name, QUESTION)
    assert (answer["author"], answer["reply_to"], answer["kind"]) == ("bot", post.message, "answer")
    cited = {"document", "version", "name", "page", "place", "quote", "link"}
    assert all(cited <= set(citation) for citation in answer["citations"])
    status, listed = await answered(http, "GET", "/api/threads", params={"user": ada.name, "channel": library.id})
    assert status == 200
    assert post.thread in json.dumps(listed)


async def test_documents_are_listed_as_documented(
    http: aiohttp.ClientSession, ada: Player, team: Channel, handbook: Post
) -> None:
    _, body = await answered(http, "GET", "/api/documents", params={"user": ada.name, "channel": team.id})
    listed = body["documents"] if isinstance(body, dict) else body
    (document,) = [each for each in listed if each["channel"] == team.id]
    fields = {"document", "version", "name", "channel", "verdict", "pages", "passages", "posted_by", "posted_at"}
    assert fields <= set(document)
    assert (document["name"], document["version"], document["posted_by"]) == ("handbook.md", 1, ada.name)
    await ada.delete(handbook)
    await ada.ask(team, QUESTION)
    _, body = await answered(http, "GET", "/api/documents", params={"user": ada.name, "channel": team.id})
    assert "handbook.md" not in json.dumps(body)


async def test_an_option_is_chosen_over_http_by_its_asker_once(
    http: aiohttp.ClientSession, ada: Player, ben: Player, archive: Channel
) -> None:
    _, card = await ada.asks(archive, UNCLEAR)
    address = f"/api/clarifications/{card.card.rpartition(chr(10))[2]}"
    statuses = [
        (await answered(http, "POST", address, json={"user": user, "option": option}))[0]
        for user, option in ((ben.name, 0), (ada.name, 99), (ada.name, -1), (ada.name, 1), (ada.name, 1), (ben.name, 0))
    ]
    assert statuses == [403, 400, 400, 202, 409, 403]


async def test_a_card_offers_what_its_asker_may_still_be_told(
    http: aiohttp.ClientSession, stage: Stage, ada: Player, ben: Player, team: Channel
) -> None:
    plant = await stage.make_channel("mill", by=ada)
    await ada.share(plant, note("tariff_east.txt", "Tariff of the eastern foundry. The hourly fee is 31 euros."))
    await ben.share(team, note("tariff_west.txt", "Tariff of the western foundry. The hourly fee is 47 euros."))
    asked, card = await ben.asks(team, "What is the hourly fee in the foundry?")
    assert any("east" in option for option in card.options)
    await stage.change_channel(plant, by=ada, members=[ada])
    path = f"/api/threads/{asked.thread}"
    _, thread = await answered(http, "GET", path, params={"user": ben.name})
    _, turn = await answered(http, "GET", f"/api/messages/{asked.message}/turn", params={"user": ben.name})
    async with listening(http, ben.name, "0", f"{path}/events") as events:
        heard = await until(events, "reply", "west")
    for told in (thread, turn, heard):
        assert "east" not in json.dumps(told)
    labels = [option["label"] for option in thread["messages"][-1]["options"]]
    assert sorted(labels) == ["No longer available", *(option for option in card.options if "west" in option)]


async def test_a_clarification_is_answered_in_words(http: aiohttp.ClientSession, ada: Player, archive: Channel) -> None:
    _, card = await ada.asks(archive, UNCLEAR)
    address = f"/api/clarifications/{card.card.rpartition(chr(10))[2]}"
    status, body = await answered(http, "POST", address, json={"user": ada.name, "text": "the one with Corvane"})
    assert status == 202
    answer = await ada.wait_for_reply(Post(archive, body["thread"], body["message"]))
    assert "three months" in answer.text


async def test_feedback_is_taken_for_an_answer(http: aiohttp.ClientSession, ada: Player, library: Channel) -> None:
    answer = await ada.ask(library, QUESTION)
    for value, expected in ((1, range(200, 300)), (-1, range(200, 300)), (7, range(400, 401))):
        body = {"message": answer.message, "user": ada.name, "value": value}
        async with http.post("/api/feedback", json=body) as response:
            assert response.status in expected
    missing = {"message": "nothing-here", "user": ada.name, "value": 1}
    assert (await answered(http, "POST", "/api/feedback", json=missing))[0] == 404


@pytest.mark.parametrize(
    "body", [{}, {"channel": "x"}, {"channel": "x", "user": "ada", "text": 7}, [], "text", {"user": "ada", "text": "?"}]
)
async def test_a_body_that_is_wrong_is_refused_with_advice(http: aiohttp.ClientSession, body: object) -> None:
    status, _ = await answered(http, "POST", "/api/messages", json=body)
    assert status == 400


async def test_a_message_of_nothing_is_refused(http: aiohttp.ClientSession, ada: Player, team: Channel) -> None:
    status, _ = await answered(http, "POST", "/api/messages", json=message(ada, team, "  "))
    assert status == 400


async def test_ten_thousand_characters_are_refused_with_advice(
    http: aiohttp.ClientSession, ada: Player, team: Channel
) -> None:
    status, body = await answered(http, "POST", "/api/messages", json=message(ada, team, "Why? " * 2000))
    assert 400 <= status < 500
    assert "10,000" in body["error"]


async def test_an_unknown_thread_or_document_is_404(http: aiohttp.ClientSession, ada: Player) -> None:
    for path in ("/api/threads/nothing-here", "/api/documents/nothing/sections/1", "/api/nothing"):
        assert (await answered(http, "GET", path, params={"user": ada.name}))[0] == 404


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}])
async def test_a_foreign_origin_or_host_is_refused(
    http: aiohttp.ClientSession, ada: Player, team: Channel, headers: dict[str, str]
) -> None:
    status, _ = await answered(http, "POST", "/api/messages", json=message(ada, team, "hello"), headers=headers)
    assert status == 403
    assert (await answered(http, "GET", "/api/channels", params={"user": ada.name}, headers=headers))[0] == 403


async def test_the_bot_tells_how_it_is(http: aiohttp.ClientSession) -> None:
    async with http.get("/healthz") as response:
        assert response.status == 200
    async with http.get("/readyz") as response:
        assert response.status == 200
        assert len(await response.json()) >= 2, "each dependency by name"
    async with http.get("/metrics") as response:
        assert response.status == 200
        assert "# TYPE" in await response.text()


async def test_a_threads_link_is_a_page(http: aiohttp.ClientSession) -> None:
    async with http.get("/") as response:
        assert response.status == 200
        assert response.content_type == "text/html"


async def test_three_clients_that_post_at_once_are_all_answered(
    http: aiohttp.ClientSession, ada: Player, ben: Player, library: Channel
) -> None:
    posts = await asyncio.gather(*(player.post(library, QUESTION) for player in (ada, ben) for _ in range(3)))
    replies = await asyncio.gather(*(ada.wait_for_reply(post) for post in posts))
    assert all("28 days" in reply.text for reply in replies)


async def test_workspaces_are_tenants(http: aiohttp.ClientSession, ada: Player, team: Channel) -> None:
    """A document that everyone in one workspace can read is unknown in another."""
    where = {"workspace": f"elsewhere-{team.id}"}
    form = aiohttp.FormData({**message(ada, Channel("general"), ""), **where}, default_to_multipart=True)
    form.add_field("files", note("rope.txt", "The rope of Quarrytown is 77 fathoms long.").content, filename="rope.txt")
    assert (await answered(http, "POST", "/api/messages", data=form))[0] == 202
    answer = await ada.ask(team, "How long is the rope of Quarrytown?")
    assert answer.kind == "not_found"
    assert "rope.txt" not in answer.text


@contextlib.asynccontextmanager
async def listening(
    http: aiohttp.ClientSession, user: str, last: str = "", path: str = "/api/events"
) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
    headers = {"Last-Event-ID": last} if last else {}
    async with http.get(path, params={"user": user}, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        yield server_sent(response)


async def until(events: AsyncIterator[dict[str, str]], kind: str, words: str) -> list[dict[str, str]]:
    """The events up to and with the first of this kind that holds these words."""
    seen: list[dict[str, str]] = []
    async with asyncio.timeout(SECONDS):
        async for event in events:
            seen.append(event)
            if event.get("event") == kind and words in event["data"]:
                return seen
    raise AssertionError(f"the stream ended without {words!r}: {seen}")
