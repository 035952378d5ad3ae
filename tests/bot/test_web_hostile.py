"""Requests that no friendly client sends: each gets a status and words, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import AsyncExitStack

import aiohttp
import psutil
import pytest

from agent.outcomes import Token
from storage.transcript import Part
from tests.bot.web_stage import Served

MEGABYTE = 1024 * 1024
JSON = {"Content-Type": "application/json"}


async def raw(page: Served, request: bytes) -> tuple[int, bytes]:
    """The status and body of what is answered to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(page.web.url.rpartition(":")[2]))
    writer.write(request)
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        body = await reader.readexactly(length)
    writer.close()
    return int(head.split()[1]), body


def get(target: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: 127.0.0.1", *headers, b"", b""])


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(b"/api/threads?channel=" + b"x" * 9_000), 414),
        (get(b"/" + b"x" * 60_000), 414),
        (get(b"/healthz", b"X-Long: " + b"x" * 9_000), 431),
        (get(b"/healthz", b"Cookie: a=" + b"x" * 60_000), 431),
        (get(b"/api/threads?channel=%FF%FE"), 400),
        (get(b"/api/threads?channel=a%00b"), 400),
        (get(b"/api/threads/%FF"), 404),
        (get(b"/api/threads/..%2f..%2fthreadlore.sqlite"), 404),
        (get(b"/api/documents/%2e%2e/sections/1"), 404),
        (get(b"/static/..%2f..%2f..%2fsettings.py"), 404),
        (get(b"/static/%2e%2e/platform.py"), 404),
        (get(b"/static//etc/passwd"), 404),
        (get(b"/api/events", b"Last-Event-ID: \xff\xfe"), 400),
    ],
    ids=lambda value: str(value[:50] if isinstance(value, bytes) else value),
)
async def test_a_hostile_head_is_refused_in_words(page: Served, request_: bytes, status: int) -> None:
    answered, body = await raw(page, request_)
    assert (answered, set(json.loads(body))) == (status, {"error"})


@pytest.mark.parametrize("request_", [get(b"/" + b"x" * 200_000), b"\x16\x03\x01\x02\x00" * 100 + b"\r\n\r\n"])
async def test_what_is_no_request_is_answered_without_a_word_of_the_inside(page: Served, request_: bytes) -> None:
    status, body = await raw(page, request_)
    assert status == 400
    assert len(body) < 1000
    assert b"Traceback" not in body
    assert b'File "' not in body
    assert (await page.call("GET", "/healthz"))[0] == 200


NESTED = b'{"channel": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body",
    [
        NESTED,
        b'{"channel": "general", "text": "\xff\xfe"}',
        b'{"channel": "general", "text": "\\ud800"}',
        b'{"channel": "general", "text": "a\\u0000b"}',
        b'{"channel": "gen\\u0000eral", "text": "x"}',
        b'{"channel": "gen\\u202eeral", "text": "x"}',
        b'{"channel": "gen\\u200beral", "text": "x"}',
        b'{"channel": "../../etc", "text": "x"}',
        b'{"channel": "<script>alert(1)</script>", "text": "x"}',
        b'{"channel": "general", "user": "<b>ada</b>", "text": "x"}',
        b'{"channel": 7, "text": "x"}',
        b'{"channel": "general", "text": 1e400}',
        b'{"channel": "general", "text": NaN}',
        b'"general"',
        b"\xef\xbb\xbf{",
    ],
    ids=lambda body: str(body[:60]),
)
async def test_a_hostile_body_is_refused_in_words(page: Served, body: bytes) -> None:
    status, _ = await page.call("POST", "/api/messages", data=body, headers=JSON)
    assert status == 400
    assert page.core.claimed == []


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "x-made-up"])
async def test_a_compressed_body_is_refused_in_words(
    page: Served, encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = gzip.compress(b'{"channel": "general", "text": "hello"}')
    for sent in (body, body[:-9], b"no such thing"):
        headers = {**JSON, "Content-Encoding": encoding}
        status, answer = await page.call("POST", "/api/messages", data=sent, headers=headers)
        assert status == 415 and "Content-Encoding" in answer["error"]
    assert page.core.claimed == []
    assert caplog.records == []


async def test_of_a_key_that_stands_twice_one_is_taken(page: Served) -> None:
    body = b'{"channel": "general", "text": "first", "text": "second"}'
    assert (await page.call("POST", "/api/messages", data=body, headers=JSON))[0] in (202, 400)
    assert all(incoming.text == "second" for incoming in page.core.claimed)


async def test_half_requests_keep_nobody_waiting(page: Served) -> None:
    """Heads and bodies that never end."""
    port = int(page.web.url.rpartition(":")[2])
    async with AsyncExitStack() as stack:
        for number in range(200):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            if number % 2:
                writer.write(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
            else:
                writer.write(
                    b"POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                    b'Content-Length: 1000\r\n\r\n{"channel": '
                )
        async with asyncio.timeout(20):
            await page.post("hello")


async def readers(page: Served) -> float:
    async with page.http.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    (count,) = [line.rsplit(" ", 1)[1] for line in lines if "readers" in line and not line.startswith("#")]
    return float(count)


async def test_readers_that_come_and_go_leave_nothing(page: Served) -> None:
    async def come_and_go() -> None:
        async with page.http.get("/api/events", params={"user": "ada"}) as response:
            await response.content.readline()

    for _ in range(10):
        await asyncio.gather(*(come_and_go() for _ in range(40)))
    turn = await page.post()
    async with asyncio.timeout(20):
        while await readers(page):  # who is gone is noticed at the next word
            await page.web.tell(turn, Token(text="x"))
            await asyncio.sleep(0.05)


async def test_a_reader_that_reads_nothing_is_kept_within_bounds(page: Served) -> None:
    """What it leaves unread is not kept for ever, and another reader hears all the same."""
    turn = await page.post()
    _, silent = await asyncio.open_connection("127.0.0.1", int(page.web.url.rpartition(":")[2]))
    silent.write(b"GET /api/events?user=ada HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    silent.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(0.2)
    before = psutil.Process().memory_info().rss
    async with asyncio.timeout(60):
        for number in range(5_000):
            await page.web.tell(turn, Token(text="x" * 20_000))
            if number % 50 == 0:
                await asyncio.sleep(0)
    assert psutil.Process().memory_info().rss - before < 50 * MEGABYTE
    async with page.listening(user="ada") as events:
        await page.core.say(turn, Part("the reply", "answer"), page.web)
        async with asyncio.timeout(20):
            async for event in events:
                if event.get("event") == "reply":
                    break
    silent.close()


@pytest.mark.parametrize("name", ["../../../etc/passwd", "..\\..\\boot.ini", "/etc/passwd", "%2e%2e%2fpasswd"])
async def test_a_path_in_a_files_name_leads_nowhere(page: Served, name: str) -> None:
    form = aiohttp.FormData({"channel": "general", "user": "ada"}, default_to_multipart=True)
    form.add_field("files", b"content", filename=name)
    status, _ = await page.call("POST", "/api/messages", data=form)
    assert status == 202
    (attachment,) = page.core.claimed[-1].attachments
    assert "/" not in attachment.name
    assert "\\" not in attachment.name
    assert [path.parent for path in page.uploads.rglob("*")] == [page.uploads]
