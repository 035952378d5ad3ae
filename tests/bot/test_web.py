"""The page's HTTP interface, over a real socket."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import FormData
from sqlalchemy import delete

from agent.outcomes import Status, Step, Token
from bot.adapters.web import WebNotStarted
from bot.adapters.web import events as events_module
from bot.adapters.web.events import Glimpses
from bot.adapters.web.names import file_name
from bot.adapters.web.shapes import whole_text
from bot.messages import Attachment, Kind
from bot.platform import FetchFailed, Refused, Turn, Why
from storage.channels import Channel, Channels
from storage.database import open_database, sqlite_url
from storage.documents import FilePost, identity
from storage.models import Anchor, Section, channel_audience
from storage.schema import sections
from storage.transcript import Part
from tests.bot.web_stage import Served, next_named, serving


def form(fields: dict[str, str], *files: tuple[str, bytes]) -> FormData:
    made = FormData(fields, default_to_multipart=True)
    for name, content in files:
        made.add_field("files", io.BytesIO(content), filename=name, content_type="application/octet-stream")
    return made


POST = {"channel": "general", "user": "ada", "text": "hello"}


# Posting


async def test_a_post_is_claimed_before_it_is_acknowledged(page: Served) -> None:
    status, body = await page.call("POST", "/api/messages", json=POST)
    assert status == 202
    (claimed,) = page.core.claimed
    assert body == {"message": claimed.message, "thread": claimed.message}
    assert (claimed.kind, claimed.user, claimed.text, claimed.direct) == (Kind.MESSAGE, "ada", "hello", False)
    assert claimed.link == f"/#/general/{claimed.message}/{claimed.message}"
    _, thread = await page.call("GET", f"/api/threads/{body['thread']}")
    assert [each["text"] for each in thread["messages"]] == ["hello"]


async def test_a_post_goes_on_in_its_thread_and_in_order(page: Served) -> None:
    first = await page.post("one")
    second = await page.post("two", thread=first.where.thread)
    assert second.where == first.where
    assert page.core.claimed[0].sent_at < page.core.claimed[1].sent_at


async def test_a_thread_of_another_channel_is_unknown_here(page: Served) -> None:
    first = await page.post("one", channel="sales")
    status, _ = await page.call("POST", "/api/messages", json={**POST, "thread": first.where.thread})
    assert status == 404


async def test_a_persons_own_channel_is_direct_and_closed_to_others(page: Served) -> None:
    turn = await page.post("a note", channel="@ada")
    assert page.core.claimed[-1].direct
    assert turn.where.channel == "@ada"
    status, _ = await page.call("POST", "/api/messages", json={**POST, "channel": "@ben"})
    assert status == 403
    status, _ = await page.call("GET", "/api/threads", params={"channel": "@ben", "user": "ada"})
    assert status == 403


async def test_mentions_are_told_apart(page: Served) -> None:
    for text, bot, others in (
        ("@ben what do you think?", False, True),
        ("What does @ben do? Write to me@example.org", False, False),
        ("@Threadlore what is it?", True, False),
        ("@ben ask @threadlore", True, True),
    ):
        await page.post(text)
        assert (page.core.claimed[-1].mentions_bot, page.core.claimed[-1].mentions_others) == (bot, others), text


@pytest.mark.parametrize(
    ("why", "status"),
    [
        (Why.NOT_MEMBER, 403),
        (Why.NOT_ASKER, 403),
        (Why.NOT_AUTHOR, 403),
        (Why.UNKNOWN, 404),
        (Why.DECIDED, 409),
        (Why.CONFLICT, 409),
        (Why.TOO_LONG, 400),
        (Why.INVALID, 400),
        (Why.TOO_MANY, 429),
    ],
)
async def test_a_refusal_has_its_status_and_leaves_no_file(page: Served, why: Why, status: int) -> None:
    page.core.refusal = Refused(why, "this is what to do")
    async with page.http.post("/api/messages", data=form(POST, ("a.txt", b"a"))) as response:
        assert response.status == status
        assert await response.json() == {"error": "this is what to do"}
        assert ("Retry-After" in response.headers) == (status == 429)
    assert list(page.uploads.iterdir()) == []


async def test_a_repeat_with_its_key_is_the_same_message(page: Served) -> None:
    key = {"Idempotency-Key": "k1"}
    body = {**POST, "thread": ""}
    upload = ("a.txt", b"content")
    answers = [
        await page.call("POST", "/api/messages", data=form(body, upload), headers=key),
        await page.call("POST", "/api/messages", data=form(body, upload), headers=key),
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 202
    assert len(page.core.claimed) == 1
    assert len(list(page.uploads.iterdir())) == 1, "the repeat's upload is gone"
    for other in (form(body, ("a.txt", b"other")), form(body, ("b.txt", b"content")), form({**body, "text": "x"})):
        status, _ = await page.call("POST", "/api/messages", data=other, headers=key)
        assert status == 409
    assert len(list(page.uploads.iterdir())) == 1
    status, body = await page.call("POST", "/api/messages", json={**POST, "user": "ben"}, headers=key)
    assert status == 202
    assert body["message"] != answers[0][1]["message"]


async def test_a_key_is_not_shared_by_workspaces_or_channels(page: Served) -> None:
    key = {"Idempotency-Key": "k1"}
    places: list[dict[str, str]] = [{}, {"channel": "sales"}, {"workspace": "other"}]
    found = [await page.call("POST", "/api/messages", json={**POST, **each}, headers=key) for each in places]
    assert [status for status, _ in found] == [202] * 3
    assert len({body["message"] for _, body in found}) == 3


BROKEN: list[tuple[Any, str]] = [
    (b"", "application/json"),
    (b"{", "application/json"),
    (b'{"channel": "general", "text": "\xff"}', "application/json"),
    (b'{"channel": "general", "text": "\\ud800"}', "application/json"),
    (b'{"channel": "general", "text": "a\\u0000b"}', "application/json"),
    (b'{"channel": "general", "text": 7}', "application/json"),
    (b'{"channel": "general", "text": "x", "admin": true}', "application/json"),
    (b'{"channel": "a:b", "text": "x"}', "application/json"),
    (b'{"channel": "a/b", "text": "x"}', "application/json"),
    (b'{"channel": "", "text": "x"}', "application/json"),
    (b'{"channel": "general", "user": "@ben", "text": "x"}', "application/json"),
    (b'{"channel": "general", "thread": "../x", "text": "x"}', "application/json"),
    (b'{"channel": "general", "text": " \\n"}', "application/json"),
    ('{"channel": "general", "text": "\u200b\u2060 \u3164\ufeff"}'.encode(), "application/json"),
    (b"[]", "application/json"),
    (b"null", "application/json"),
    (b"[" * 100_000, "application/json"),
    (b"nothing", "multipart/form-data"),
    (b"nothing", "multipart/form-data; boundary=x"),
    (b"--x\r\n\r\nnothing\r\n--x--\r\n", "multipart/form-data; boundary=x"),
    (b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n\xff\r\n--x--\r\n', "multipart/form-data; boundary=x"),
    (
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nnot ended',
        "multipart/form-data; boundary=x",
    ),
]


@pytest.mark.parametrize(("body", "kind"), BROKEN)
async def test_a_broken_body_is_refused_in_words(page: Served, body: bytes, kind: str) -> None:
    status, _ = await page.call("POST", "/api/messages", data=body, headers={"Content-Type": kind})
    assert status == 400
    assert page.core.claimed == []
    assert list(page.uploads.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"channel": "general", "thread": "../x", "text": "x"}, 'The field "thread" is wrong'),
        ({"channel": "general", "text": 7}, 'The field "text" is wrong'),
        ({"text": "x"}, 'The field "channel" is missing'),
        ({"channel": "general", "tone": "kind"}, 'There is no field "tone"'),
        ([], "The body is no JSON object"),
    ],
)
async def test_what_is_wrong_with_a_body_is_named_in_its_own_words(page: Served, body: object, words: str) -> None:
    _, answer = await page.call("POST", "/api/messages", json=body)
    assert answer["error"].startswith(words)
    assert "clean_id" not in answer["error"]


async def test_another_content_type_is_refused(page: Served) -> None:
    status, _ = await page.call("POST", "/api/messages", data=b"{}", headers={"Content-Type": "text/plain"})
    assert status == 415


async def test_a_body_of_megabytes_is_refused(page: Served) -> None:
    body = io.BytesIO(json.dumps({**POST, "text": "x" * 2_000_000}).encode())
    headers = {"Content-Type": "application/json"}
    status, _ = await page.call("POST", "/api/messages", data=body, headers=headers)
    assert status == 413


# Files


async def test_files_are_on_the_disk_when_they_are_acknowledged(page: Served, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    status, _ = await page.call("POST", "/api/messages", data=form(POST, ("计划 2024.pdf", content), ("b.txt", b"b")))
    assert status == 202
    first, second = page.core.claimed[0].attachments
    assert (first.name, first.size, second.name) == ("计划 2024.pdf", len(content), "b.txt")
    await page.web.fetch(first, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == content
    await page.web.discard(first)
    await page.web.discard(first)
    with pytest.raises(FetchFailed):
        await page.web.fetch(first, tmp_path / "again")
    assert (tmp_path / "fetched").read_bytes() == content


async def test_a_too_large_file_is_refused_alone(page: Served, tmp_path: Path) -> None:
    """Its bytes aren't kept, the rest of the post is."""
    large = b"x" * (1024 * 1024 + 1)
    status, _ = await page.call("POST", "/api/messages", data=form(POST, ("large.bin", large), ("b.txt", b"b")))
    assert status == 202
    first, second = page.core.claimed[0].attachments
    with pytest.raises(FetchFailed, match="too large"):
        await page.web.fetch(first, tmp_path / "large")
    await page.web.fetch(second, tmp_path / "small")
    assert sum(each.stat().st_size for each in page.uploads.iterdir()) == 1


async def test_a_file_without_end_is_cut_off(page: Served) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
        while True:
            yield b"x" * 1024 * 1024

    with pytest.raises((AssertionError, aiohttp.ClientError)):  # the answer comes, or the connection goes
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        status, _ = await page.call("POST", "/api/messages", data=endless(), headers=headers)
        assert status != 413
    assert list(page.uploads.iterdir()) == []


async def test_too_many_files_are_refused(page: Served) -> None:
    files = [(f"{number}.txt", b"x") for number in range(101)]
    status, _ = await page.call("POST", "/api/messages", data=form(POST, *files))
    assert status == 400
    assert list(page.uploads.iterdir()) == []


async def test_a_reference_from_elsewhere_opens_nothing(page: Served, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for reference in ("../secret", str(tmp_path / "secret"), ""):
        with pytest.raises(FetchFailed):
            await page.web.fetch(Attachment(name="x", size=1, reference=reference), tmp_path / "target")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\files\\plan.docx", "plan.docx"),
        ("a\x00b\x1b[31m\u202etxt.exe", "ab[31mtxt.exe"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("  .hidden ", "hidden"),
        ("e\u0301.md", "é.md"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
        ("caf\udcc3\udca9.txt", "café.txt"),
        ("%E8%AE%A1 100%25.pdf", "计 100%.pdf"),
        ("100% sure%FF.txt", "100% sure%FF.txt"),
        ("计%22划%22.txt", '计"划".txt'),
        ("..%2f..%2fpasswd", "passwd"),
    ],
)
def test_a_files_name_is_cleaned_for_show(given: str, shown: str) -> None:
    assert file_name(given) == shown


async def test_what_a_crash_left_unfinished_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / ("0" * 32 + ".part")).write_bytes(b"half")
    (tmp_path / "uploads" / ("1" * 32)).write_bytes(b"of a message that was never claimed")
    (tmp_path / "uploads" / "notes.txt").write_bytes(b"not the page's")
    async with serving(tmp_path) as page:
        assert [each.name for each in page.uploads.iterdir()] == ["notes.txt"]
        assert (await page.call("POST", "/api/messages", data=form(POST, ("a.txt", b"a"))))[0] == 202
    async with serving(tmp_path) as page:
        assert len(list(page.uploads.iterdir())) == 2, "its message waits for it"


async def test_a_full_disk_is_named_and_leaves_no_upload(page: Served) -> None:
    async with page.core.database.write() as connection:
        pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar_one()
        await connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    body = {**POST, "text": "words " * 2000}
    status, answer = await page.call("POST", "/api/messages", data=form(body, ("a.txt", b"a")))
    assert (status, "free space under DATA_DIR" in answer["error"]) == (507, True)
    assert list(page.uploads.iterdir()) == []


async def test_a_post_that_fails_leaves_no_upload(page: Served) -> None:
    for number, status in ((errno.ENOSPC, 507), (errno.EIO, 500)):
        page.core.refusal = OSError(number, "the inside of the disk")
        got, answer = await page.call("POST", "/api/messages", data=form(POST, ("a.txt", b"a")))
        assert (got, "inside" in answer["error"]) == (status, False)
        assert list(page.uploads.iterdir()) == []


async def test_a_post_that_fails_after_its_claim_keeps_its_upload(page: Served) -> None:
    page.core.late_failure = OSError(errno.EIO, "the inside of the disk")
    key = {"Idempotency-Key": "k1"}
    assert (await page.call("POST", "/api/messages", data=form(POST, ("a.txt", b"a")), headers=key))[0] == 500
    assert len(page.core.claimed) == len(list(page.uploads.iterdir())) == 1, "its message waits for it"
    page.core.late_failure = None
    assert (await page.call("POST", "/api/messages", data=form(POST, ("a.txt", b"a")), headers=key))[0] == 202
    assert len(page.core.claimed) == len(list(page.uploads.iterdir())) == 1


# Changing


async def test_an_author_edits_and_deletes(page: Served) -> None:
    turn = await page.post()
    path = f"/api/messages/{turn.message}"
    assert await page.call("PATCH", path, json={"user": "ada", "text": "new"}) == (
        202,
        {"message": turn.message, "thread": turn.message},
    )
    edit = page.core.claimed[-1]
    assert (edit.kind, edit.message, edit.text, edit.where) == (Kind.EDIT, turn.message, "new", turn.where)
    assert (await page.call("DELETE", path, json={"user": "ada", "text": "of no account"}))[0] == 202
    assert page.core.claimed[-1].kind is Kind.DELETE
    assert page.core.claimed[-1].revision > edit.revision
    assert (await page.call("DELETE", path, params={"user": "ada"}))[0] == 409
    _, thread = await page.call("GET", f"/api/threads/{turn.message}", params={"user": "ada"})
    (line,) = thread["messages"]
    assert (line["edited"], line["deleted"], line["text"]) == (True, True, "")


async def test_a_message_is_not_edited_to_nothing(page: Served) -> None:
    turn = await page.post()
    path = f"/api/messages/{turn.message}"
    for blank in ("", " \n", "\u200b\u2060"):
        assert (await page.call("PATCH", path, json={"user": "ada", "text": blank}))[0] == 400
    assert len(page.core.claimed) == 1
    _, posted = await page.call("POST", "/api/messages", data=form(POST, ("a.txt", b"a")))
    status, _ = await page.call("PATCH", f"/api/messages/{posted['message']}", json={"user": "ada", "text": ""})
    assert status == 202, "its file is still there"


async def test_others_change_nothing(page: Served) -> None:
    turn = await page.post()
    reply = await page.core.say(turn, Part("an answer", "answer"), page.web)
    for message in (turn.message, reply):
        for method in ("PATCH", "DELETE"):
            status, _ = await page.call(method, f"/api/messages/{message}", json={"user": "ben", "text": "x"})
            assert status in (400, 403)
    assert (await page.call("DELETE", f"/api/messages/{reply}", json={"user": "ada"}))[0] == 403
    assert (await page.call("DELETE", "/api/messages/unknown", json={}))[0] == 404
    assert len(page.core.claimed) == 1


async def test_a_choice_is_a_message_of_its_own(page: Served) -> None:
    turn = await page.post("which one?")
    card = await page.core.ask_back(turn, page.web, ["Aldgate", "Corvane"])
    _, thread = await page.call("GET", f"/api/threads/{turn.message}")
    asked = thread["messages"][1]
    assert asked["clarification"] == {"id": card, "state": "open", "asker": "ada", "choice": None}
    assert [each["label"] for each in asked["options"]] == ["Aldgate", "Corvane"]
    wrong: list[dict[str, object]] = [
        {},
        {"option": -1},
        {"option": 0, "text": "x"},
        {"option": True},
        {"text": " "},
    ]
    for body in wrong:
        assert (await page.call("POST", f"/api/clarifications/{card}", json={"user": "ada", **body}))[0] == 400
    status, answer = await page.call("POST", f"/api/clarifications/{card}", json={"user": "ada", "option": 1})
    assert (status, answer["thread"]) == (202, turn.where.thread)
    click = page.core.claimed[-1]
    assert (click.kind, click.option, click.text, click.clarification) == (Kind.ACTION, 1, "", card)
    assert answer["message"] == click.message != turn.message
    assert (await page.call("POST", "/api/clarifications/c999", json={"option": 0}))[0] == 404
    other = {"workspace": "other", "option": 0}
    assert (await page.call("POST", f"/api/clarifications/{card}", json=other))[0] == 404


async def test_feedback_is_for_what_the_bot_said(page: Served) -> None:
    turn = await page.post()
    reply = await page.core.say(turn, Part("an answer", "answer"), page.web)
    assert (await page.call("POST", "/api/feedback", json={"message": reply, "user": "ada", "value": 1}))[0] == 200
    wrong: list[tuple[dict[str, object], int]] = [
        ({"message": reply, "value": 2}, 400),
        ({"message": reply, "value": True}, 400),
        ({"message": turn.message, "value": 1}, 400),
        ({"message": "unknown", "value": 1}, 404),
    ]
    for body, expected in wrong:
        assert (await page.call("POST", "/api/feedback", json=body))[0] == expected


# Reading


async def test_threads_are_listed_with_what_they_are_about(page: Served) -> None:
    first = await page.post("the first", channel="sales")
    second = await page.post("the second", channel="sales", user="ben")
    await page.core.say(first, Part("an answer", "answer"), page.web)
    _, body = await page.call("GET", "/api/threads", params={"channel": "sales"})
    assert [(each["thread"], each["text"], each["user"], each["messages"]) for each in body["threads"]] == [
        (first.message, "the first", "ada", 2),
        (second.message, "the second", "ben", 1),
    ]
    assert await page.call("GET", "/api/threads", params={"channel": "new"}) == (200, {"threads": []})
    assert (await page.call("GET", "/api/threads"))[0] == 400
    assert (await page.call("GET", "/api/threads/unknown"))[0] == 404


async def test_a_private_channel_is_closed_at_every_address(page: Served) -> None:
    await page.make_private("board", "ada")
    turn = await page.post("the secret", channel="board")
    reply = await page.core.ask_back(turn, page.web, ["a", "b"])
    ben = {"user": "ben"}
    closed: list[tuple[str, str, dict[str, object] | None]] = [
        ("GET", "/api/threads?channel=board", None),
        ("GET", f"/api/threads/{turn.message}", None),
        ("GET", f"/api/threads/{turn.message}/events", None),
        ("GET", f"/api/messages/{turn.message}/turn", None),
        ("GET", "/api/documents?channel=board", None),
        ("PUT", "/api/channels/board", {"visibility": "public", **ben}),
        ("POST", "/api/messages", {**POST, **ben, "channel": "board"}),
        ("POST", f"/api/clarifications/{reply}", {"option": 0, **ben}),
        ("POST", "/api/feedback", {"message": f"r{turn.row}.0", "value": 1, **ben}),
        ("POST", "/api/search", {"query": "secret", "channel": "board", **ben}),
        ("DELETE", f"/api/messages/{turn.message}", {**ben}),
    ]
    for method, path, body in closed:
        status, answer = await page.call(method, path, params=ben if body is None else {}, json=body)
        assert status == (403 if "board" in path or (body or {}).get("channel") else 404), path
        assert "secret" not in answer["error"]
    _, listed = await page.call("GET", "/api/channels", params=ben)
    assert "board" not in [each["channel"] for each in listed["channels"]]


async def test_channels_are_listed_and_set(page: Served) -> None:
    _, body = await page.call("GET", "/api/channels", params={"user": "ada"})
    assert [(each["channel"], each["visibility"]) for each in body["channels"]] == [
        ("general", "public"),
        ("@ada", "direct"),
    ]
    private = {"user": "ada", "visibility": "private", "members": ["ben"], "knowledge": False}
    _, body = await page.call("PUT", "/api/channels/hr", json=private)
    assert body == {
        "channel": "hr",
        "visibility": "private",
        "members": ["ben"],
        "knowledge": False,
        "quiet": False,
        "manages": True,
    }
    assert (await page.call("PUT", "/api/channels/hr", json={"user": "ada", "visibility": "public"}))[0] == 403
    _, body = await page.call("PUT", "/api/channels/hr", json={"user": "ben", "knowledge": True})
    assert (body["knowledge"], body["members"]) == (True, ["ben"])
    _, body = await page.call("PUT", "/api/channels/hr", json={"user": "ben", "visibility": "public"})
    assert body["members"] == []


async def test_changes_of_a_channel_at_once_are_all_kept(page: Served) -> None:
    changes: list[dict[str, object]] = [{"visibility": "private"}, {"knowledge": False}, {"quiet": True}]
    for name in ("one", "two", "three"):
        put = [page.call("PUT", f"/api/channels/{name}", json={"user": "ada", **change}) for change in changes]
        assert [status for status, _ in await asyncio.gather(*put)] == [200] * 3
        found = await page.channels.get("web", "local", name)
        assert found is not None
        assert (found.visibility, found.knowledge, found.quiet) == ("private", False, True)


async def test_who_was_left_out_meanwhile_changes_nothing(page: Served) -> None:
    own = {"user": "ada", "visibility": "private", "members": ["ada"]}
    late = {"user": "ben", "visibility": "public"}
    (first, _), (second, _) = await asyncio.gather(
        page.call("PUT", "/api/channels/hr", json=own), page.call("PUT", "/api/channels/hr", json=late)
    )
    found = await page.channels.get("web", "local", "hr")
    assert found is not None
    assert first == 200
    assert (second, found.visibility) in ((403, "private"), (200, "private"))


async def test_a_private_channel_without_members_has_who_made_it(page: Served) -> None:
    _, body = await page.call("PUT", "/api/channels/hr", json={"user": "ada", "visibility": "private"})
    assert body["members"] == ["ada"]


@pytest.mark.parametrize(
    ("channel", "body"),
    [
        ("hr", {"visibility": "shared"}),
        ("hr", {"members": ["ben"]}),
        ("hr", {"visibility": "private", "members": "ben"}),
        ("hr", {"knowledge": "yes"}),
        ("hr", {"answer": "always"}),
        ("a%2Fb", {}),
        ("a:b", {}),
        ("@me", {"visibility": "public"}),
    ],
)
async def test_a_channel_cannot_be_set_to_anything(page: Served, channel: str, body: dict[str, object]) -> None:
    assert (await page.call("PUT", f"/api/channels/{channel}", json=body))[0] == 400


async def a_document(
    page: Served, name: str = "handbook.md", channel: str = "general", workspace: str = "local", content: str = ""
) -> str:
    """A document of two sections, as ingestion leaves it."""
    post = FilePost(
        workspace=workspace,
        channel=channel,
        audience=channel_audience(channel),
        name=name,
        size=10,
        posted_by="ada",
        posted_at=1.0,
        message="m1",
        attachment="0",
        link=f"/#/{channel}/t1/m1",
    )
    begun = await page.documents.begin(post, content or name)
    assert begun.document is not None
    version = begun.document.key
    cut = [
        Section(1, ("Leave",), "# Leave\n28 days.\n", (Anchor(0, 1, "page 1"),)),
        Section(2, ("Notice",), "Four weeks and more.\n", (Anchor(0, 1, "page 1"), Anchor(11, 2, "page 2"))),
    ]
    await page.documents.store_sections(version, cut, 2)
    await page.documents.swap(version, 2, embedded=True)
    assert version.document == identity(post)
    return version.document


async def test_a_citation_opens_its_section(page: Served) -> None:
    await page.channels.ensure("web", "local", "general", "ada")
    document = await a_document(page)
    path = f"/api/documents/{document}/sections/1"
    status, body = await page.call("GET", path, params={"version": "1"})
    assert status == 200
    assert (body["name"], body["text"], body["deleted"]) == ("handbook.md", "# Leave\n28 days.\n", False)
    assert (body["headings"], body["place"]) == (["Leave"], "page 1, Leave")
    for wrong in ("/api/documents/unknown/sections/1", f"/api/documents/{document}/sections/3", f"{path}x"):
        assert (await page.call("GET", wrong))[0] == 404
    assert (await page.call("GET", path, params={"version": "2"}))[0] == 404
    assert (await page.call("GET", path, params={"version": "x"}))[0] == 400
    assert (await page.call("GET", path, params={"workspace": "other"}))[0] == 404
    await page.documents.forget(document)
    status, body = await page.call("GET", path, params={"version": "1"})
    assert (status, body["deleted"], body["text"]) == (200, True, "")


async def test_a_citation_of_a_replaced_version_says_so(page: Served) -> None:
    await page.channels.ensure("web", "local", "general", "ada")
    document = await a_document(page)
    path = f"/api/documents/{document}/sections/1"
    assert await a_document(page, content="another") == document
    status, body = await page.call("GET", path, params={"version": "1"})
    assert (status, body["state"], body["current"], body["text"]) == (200, "superseded", 2, "# Leave\n28 days.\n")
    assert (await page.call("GET", f"/api/documents/{document}/sections/3", params={"version": "1"}))[0] == 404
    async with page.core.database.write() as connection:
        await connection.execute(delete(sections).where(sections.c.version == 1))
    status, body = await page.call("GET", path, params={"version": "1"})
    assert (status, body["state"], body["deleted"], body["text"]) == (200, "superseded", False, "")
    assert (body["version"], body["current"], body["channel"]) == (1, 2, "general")


async def test_documents_are_listed_to_who_may_read_them(page: Served) -> None:
    await page.channels.ensure("web", "local", "general", "ada")
    await page.make_private("board", "ada")
    await a_document(page)
    secret = await a_document(page, "minutes.md", "board")
    await a_document(page, "elsewhere.md", workspace="other")

    async def names(**query: str) -> list[str]:
        _, body = await page.call("GET", "/api/documents", params=query)
        return [each["name"] for each in body["documents"]]

    assert await names(user="ada") == ["handbook.md", "minutes.md"]
    assert await names(user="ben") == ["handbook.md"]
    assert await names(user="ada", channel="board") == ["minutes.md"]
    assert await names(user="ada", channel="general", scope="yes") == ["handbook.md"]
    assert await names(user="ada", channel="board", scope="yes") == ["handbook.md", "minutes.md"]
    for end in ("sections/1?version=1", "text", "passages"):
        assert (await page.call("GET", f"/api/documents/{secret}/{end}", params={"user": "ben"}))[0] == 404
        assert (await page.call("GET", f"/api/documents/{secret}/{end}", params={"user": "ada"}))[0] == 200
    _, body = await page.call("GET", "/api/documents", params={"channel": "general"})
    assert body["documents"][0] == {
        "document": body["documents"][0]["document"],
        "version": 1,
        "name": "handbook.md",
        "channel": "general",
        "verdict": "indexed",
        "reason": "",
        "pages": 2,
        "passages": 2,
        "size": 10,
        "posted_by": "ada",
        "posted_at": 1.0,
        "link": "/#/general/t1/m1",
        "thread": "t1",
    }


async def test_a_document_is_printed_with_its_places(page: Served) -> None:
    await page.channels.ensure("web", "local", "general", "ada")
    document = await a_document(page)
    _, body = await page.call("GET", f"/api/documents/{document}/text")
    assert body["text"] == ("<!-- page 1 -->\n# Leave\n28 days.\nFour weeks \n<!-- page 2 -->\nand more.\n")
    _, body = await page.call("GET", f"/api/documents/{document}/passages")
    assert "28 days." in body["passages"][0]["text"]


def test_a_text_without_places_stays_as_it_is() -> None:
    sections = [Section(1, (), "one\n\n", (Anchor(0, None, ""),)), Section(2, (), "two")]
    assert whole_text(sections) == "one\n\ntwo"


# Events


async def test_what_happens_is_told_at_once(page: Served) -> None:
    async with page.listening("ben") as events:
        turn = await page.post()
        _, posted = await next_named(events, "post")
        assert (posted["message"], posted["author"]) == (turn.message, "user")
        started = time.monotonic()
        await page.web.tell(turn, Status(text="searching"))
        _, told = await next_named(events, "status")
        assert time.monotonic() - started < 0.1
        assert told == {"message": turn.message, "thread": turn.message, "channel": "general", "text": "searching"}
        await page.web.tell(turn, Step(name="grade", detail={"enough": True}))
        assert (await next_named(events, "step"))[1]["detail"] == {"enough": True}
        await page.web.tell(turn, Token(text="28 days.\nNo more."))
        assert (await next_named(events, "token"))[1]["text"] == "28 days.\nNo more."
        reply = await page.core.say(turn, Part("28 days [1].", "answer"), page.web)
        number, said = await next_named(events, "reply")
        assert (said["message"], said["reply_to"], said["kind"]) == (reply, turn.message, "answer")
        assert int(number) > 0


async def test_a_reader_goes_on_where_it_was_also_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as page:
        async with page.listening() as events:
            turn = await page.post()
            await page.core.say(turn, Part("first", "answer"), page.web)
            last, _ = await next_named(events, "reply")
        missed = await page.post(thread=turn.message)
        await page.core.say(missed, Part("second", "answer"), page.web)
        async with page.listening(last=last) as events:
            assert (await next_named(events, "reply"))[1]["text"] == "second"
    async with serving(tmp_path) as page:
        async with page.listening(last=last) as events:
            assert (await next_named(events, "reply"))[1]["text"] == "second"
        async with page.http.get("/api/events", params={"user": "ada", "last_event_id": last}) as response:
            assert response.status == 200
        for wrong in ("x", "-1", "1" * 30):
            assert (await page.call("GET", "/api/events", headers={"Last-Event-ID": wrong}))[0] == 400


async def test_more_was_missed_than_is_kept_at_hand(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "AT_ONCE", 10)
    monkeypatch.setattr(events_module, "RECENT", 15)
    turn = await page.post("0")
    for number in range(45):
        await page.core.on_message(
            page.core.claimed[0].model_copy(update={"message": f"m-{number}", "text": str(number), "where": turn.where})
        )
    async with page.listening(last="1") as events:
        texts = [(await next_named(events, "post"))[1]["text"] for _ in range(45)]
    assert texts == [str(number) for number in range(45)]


@pytest.mark.parametrize("last", ["0" * 5000, "9" * 19, "-1", "1.5", "²"])
async def test_a_place_in_the_stream_that_was_never_told_is_refused(page: Served, last: str) -> None:
    assert (await page.call("GET", "/api/events", params={"last_event_id": last}))[0] == 400
    if last.isascii():
        assert (await page.call("GET", "/api/events", headers={"Last-Event-ID": last}))[0] == 400


async def test_a_threads_stream_is_its_own(page: Served) -> None:
    turn = await page.post("one")
    async with page.listening("ben", path=f"/api/threads/{turn.message}/events") as events:
        other = await page.post("other")
        await page.web.tell(other, Status(text="elsewhere"))
        await page.core.say(other, Part("elsewhere", "answer"), page.web)
        await page.web.tell(turn, Status(text="here"))
        assert (await next_named(events, "status"))[1]["text"] == "here"
        await page.core.say(turn, Part("here", "answer"), page.web)
        assert (await next_named(events, "reply"))[1]["text"] == "here"
    assert (await page.call("GET", "/api/threads/unknown/events"))[0] == 404


async def test_events_reach_only_who_may_see_them(page: Served) -> None:
    """Also from the moment on that a channel is made private."""
    async with page.listening("ben") as events:
        first = await page.post("seen by ben", channel="plans")
        assert (await next_named(events, "post"))[1]["text"] == "seen by ben"
        await page.make_private("plans", "ada")
        await page.web.tell(first, Token(text="secret"))
        await page.core.say(first, Part("secret", "answer"), page.web)
        other = Turn(first.row, first.where.model_copy(update={"workspace": "other"}), "m", "x")
        await page.web.tell(other, Token(text="secret"))
        await page.post("secret", channel="@ada")
        await page.post("the end")
        assert (await next_named(events, "post"))[1]["text"] == "the end"
    async with page.listening("ben", last="1") as events:
        assert (await next_named(events, "post"))[1]["text"] == "the end"


async def test_a_quiet_stream_beats_and_a_gone_reader_is_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path, heartbeat_seconds=0.05) as page:
        async with page.listening() as events:
            async with asyncio.timeout(2):
                async for event in events:
                    if "" in event:
                        break
            assert await readers(page) == 1
        async with asyncio.timeout(2):
            while await readers(page):
                await asyncio.sleep(0.02)


async def readers(page: Served) -> int:
    async with page.http.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    return int(float(next(line for line in lines if line.startswith("threadlore_event_readers")).split()[1]))


async def test_a_slow_reader_loses_no_reply_and_costs_the_turn_nothing(page: Served) -> None:
    turn = await page.post()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(page.web.url.rpartition(":")[2]))
    writer.write(b"GET /api/events?user=ada HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert b"200" in await reader.readline()
    async with asyncio.timeout(20):
        for _ in range(700):
            await page.web.tell(turn, Token(text="x" * 20_000))
    await page.core.say(turn, Part("the reply", "answer"), page.web)
    async with asyncio.timeout(10):
        while b"the reply" not in await reader.readline():
            pass
    writer.close()


async def test_the_page_ends_though_readers_are_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as page, page.listening() as events:
        started = time.monotonic()
        await page.web.close()
        assert time.monotonic() - started < 2
        assert [event async for event in events if "event" in event] == []


async def test_replies_are_sent_while_no_more_is_taken(page: Served) -> None:
    async with page.listening() as events:
        turn = await page.post()
        await page.web.stop_listening()
        await page.core.say(turn, Part("late", "answer"), page.web)
        assert (await next_named(events, "reply"))[1]["text"] == "late"
    with pytest.raises(aiohttp.ClientConnectionError):
        async with aiohttp.ClientSession() as http, http.get(f"{page.web.url}/healthz"):
            pass


# The port


async def test_a_reply_is_found_where_it_stands(page: Served) -> None:
    turn = await page.post()
    assert await page.web.find(turn) == []
    await page.core.say(turn, Part("an answer", "answer"), page.web)
    (found,) = await page.web.find(turn)
    assert (found.message, found.part) == (f"r{turn.row}.0", 0)
    assert await page.web.find(Turn(turn.row * 10, turn.where, turn.message, "ada")) == []


# Safety


async def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "", "::"):
        with pytest.raises(WebNotStarted, match="WEB_TOKEN"):
            async with serving(tmp_path, host=host):
                pass
    async with serving(tmp_path, host="0.0.0.0", token="secret") as page:
        assert (await page.call("GET", "/api/channels"))[0] == 401


async def test_a_taken_port_is_named(page: Served, tmp_path: Path) -> None:
    port = int(page.web.url.rpartition(":")[2])
    with pytest.raises(WebNotStarted, match=str(port)):
        async with serving(tmp_path / "other", port=port):
            pass


async def test_the_token_opens_and_nothing_else_does(tmp_path: Path) -> None:
    async with serving(tmp_path, token="秘密 secret") as page:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "threadlore=wrong"}):
            for path in ("/api/channels", "/metrics", "/api/events", "/api/nothing"):
                assert (await page.call("GET", path, headers=headers))[0] == 401
        for path in ("/healthz", "/readyz", "/"):
            async with page.http.get(path, headers={"Host": "bot.example"}) as response:
                assert response.status == 200
        bearer = {"Authorization": "Bearer 秘密 secret"}
        assert (await page.call("GET", "/api/channels", headers=bearer))[0] == 200
        assert (await page.call("POST", "/api/sign-in", json={"token": "wrong"}))[0] == 401
        async with page.http.post("/api/sign-in", json={"token": "秘密 secret"}) as response:
            assert response.status == 200
            cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "secret" not in cookie
        value = {"Cookie": cookie.partition(";")[0]}
        assert (await page.call("GET", "/api/channels", headers=value))[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:9999"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost.evil.example:8420"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://[::1", "Host": ""}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:2"}, 403),
        ({"Origin": "http://localhost:2", "Host": "localhost:2"}, 200),
    ],
)
async def test_a_foreign_host_or_origin_is_refused(page: Served, headers: dict[str, str], status: int) -> None:
    assert (await page.call("GET", "/api/channels", headers=headers))[0] == status


async def test_every_response_says_how_it_may_be_used(page: Served) -> None:
    for path in ("/", "/api/channels", "/nothing", "/static/nothing.js"):
        async with page.http.get(path) as response:
            assert "default-src 'self'" in response.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_an_unknown_address_or_method_answers_in_json(page: Served) -> None:
    for path in ("/nothing", "/static/nothing", "/static/../platform.py", "/static/..%2f..%2fsettings.py", "/api/"):
        assert (await page.call("GET", path))[0] == 404
    async with page.http.put("/api/messages", json={}) as response:
        assert response.status == 405
        assert "POST" in response.headers["Allow"]
        assert "error" in await response.json()


async def test_what_nobody_foresaw_is_logged_and_not_shown(page: Served, caplog: pytest.LogCaptureFixture) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("the inside of the bot")

    page.core.transcript.thread = fails  # type: ignore[method-assign,assignment]
    status, body = await page.call("GET", "/api/threads/t1")
    assert status == 500
    assert "inside" not in json.dumps(body)
    assert "the inside of the bot" in caplog.text


async def test_a_client_that_goes_away_leaves_nothing(page: Served, caplog: pytest.LogCaptureFixture) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", int(page.web.url.rpartition(":")[2]))
    head = b"POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
    head += b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    writer.write(head + part + b"x" * 1000)
    await writer.drain()
    async with asyncio.timeout(2):
        while not list(page.uploads.iterdir()):
            await asyncio.sleep(0.01)
        writer.close()
        while list(page.uploads.iterdir()):
            await asyncio.sleep(0.01)
    assert "Traceback" not in caplog.text
    assert page.core.claimed == []


# Health, and what the command line asks for


async def test_readiness_names_what_is_wrong(tmp_path: Path) -> None:
    async with serving(tmp_path) as page:
        assert await page.call("GET", "/readyz") == (200, {"ready": True, "dependencies": {"database": "ok"}})
        page.readiness |= {"model": "api.example refuses the key", "rerank": "not configured"}
        assert (await page.call("GET", "/readyz"))[1]["ready"], "without them the bot does less, and is ready"
        page.readiness["passages"] = "the disk http://inside is full"
        async with page.http.get("/readyz") as response:
            assert response.status == 503
            assert (await response.json())["dependencies"]["passages"] == "the disk http://inside is full"
        status, told = await page.call("GET", "/api/doctor")
        assert (status, told["ready"], told["dependencies"]["passages"]) == (200, False, page.readiness["passages"])
        async with page.http.get("/healthz") as response:
            assert response.status == 200
    async with serving(tmp_path, token="secret") as page:
        page.readiness |= {"passages": "the disk http://inside is full", "model": "ok: gpt", "rerank": "not configured"}
        async with page.http.get("/readyz") as response:
            shown = {"database": "ok", "passages": "down", "model": "ok", "rerank": "not configured"}
            assert (await response.json())["dependencies"] == shown


async def test_metrics_count_by_route(page: Served) -> None:
    await page.post()
    await page.call("GET", "/api/threads/unknown-1")
    await page.call("GET", "/api/threads/unknown-2")
    await page.call("GET", "/nothing-1")
    async with page.http.get("/metrics") as response:
        text = await response.text()
    assert 'threadlore_requests_total{route="/api/threads/{thread}",status="404"} 2.0' in text
    assert 'threadlore_requests_total{route="unmatched",status="404"} 1.0' in text
    assert "nothing-1" not in text


async def test_a_turn_is_waited_for(page: Served) -> None:
    turn = await page.post()
    status, body = await page.call("GET", f"/api/messages/{turn.message}/turn")
    assert (status, body["state"], body["thread"]) == (200, "open", turn.message)
    waiting = asyncio.create_task(page.call("GET", f"/api/messages/{turn.message}/turn", params={"wait": "10"}))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await page.core.say(turn, Part("done", "answer"), page.web)
    async with asyncio.timeout(1):
        assert (await waiting)[1]["state"] == "done"
    assert (await page.call("GET", "/api/messages/unknown/turn"))[0] == 404
    assert (await page.call("GET", f"/api/messages/{turn.message}/turn", params={"wait": "nan"}))[0] == 400


async def test_a_search_is_checked_and_bounded(page: Served) -> None:
    query = {"query": "leave", "channel": "general"}
    status, body = await page.call("POST", "/api/search", json={**query, "mode": "keyword"})
    assert (status, body["query"], body["hits"]) == (200, "leave", [])
    for wrong in ({"limit": 0}, {"limit": 101}, {"mode": "magic"}, {"query": ""}, {"query": "x" * 20_001}):
        assert (await page.call("POST", "/api/search", json={**query, **wrong}))[0] == 400


async def test_what_writes_on_this_machine_is_for_who_is_on_it(page: Served, tmp_path: Path) -> None:
    async with page.http.post("/api/reembed") as response:
        lines = (await response.text()).splitlines()
    assert [json.loads(line) for line in lines] == [{"done": 1, "total": 2}, {"embedded": 2}]
    target = {"target": str(tmp_path / "backup")}
    assert await page.call("POST", "/api/backup", json=target) == (200, {"backup": target["target"]})
    assert page.core.backups == [tmp_path / "backup"]
    assert (await page.call("POST", "/api/backup", json={"target": "backup"}))[0] == 400
    assert (await page.call("POST", "/api/backup", json={"target": str(tmp_path)}))[0] == 409
    for wrong in ("/a\0b", str(tmp_path / ("x" * 300)), "/proc/nothing/backup"):
        status, answer = await page.call("POST", "/api/backup", json={"target": wrong})
        assert (status, len(answer["error"]) < 300) == (400, True), wrong
    for path in ("/api/backup", "/api/reembed"):
        assert (await page.call("POST", path, json=target, headers={"X-Forwarded-For": "10.0.0.1"}))[0] == 403
    assert len(page.core.backups) == 1


async def test_who_comes_into_a_channel_hears_what_is_said_in_it_at_once(tmp_path: Path) -> None:
    async with open_database(sqlite_url(tmp_path / "app.sqlite")) as database:
        channels = Channels(database)
        glimpses = Glimpses(channels)
        await channels.put(Channel("web", "local", "hr", visibility="private", members=frozenset({"ann"})))
        before = await glimpses.channel("local", "hr")
        assert before is not None and not before.sees("bo")
        await channels.put(replace(before, members=frozenset({"ann", "bo"})))
        after = await glimpses.channel("local", "hr")
        assert after is not None and after.sees("bo")
