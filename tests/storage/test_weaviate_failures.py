"""What an operator reads where the server isn't there, or isn't what it should be; and that it is waited for."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from aiohttp import web

from storage.errors import StoreUnavailable
from storage.knowledge import Entry, KnowledgeStore
from storage.models import Version
from storage.weaviate import Server, WeaviateStore
from tests.storage.knowledge_contract import ask, entry, passage, vector
from tests.weaviate_server import WeaviateServer

KEY = "the-right-key"
_INTERNAL = re.compile(r"grpc_status|httpx|traceback|\{|\}|exception|errno", re.IGNORECASE)
Serve = Callable[[str, str], Awaitable[str]]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> Iterator[WeaviateServer]:
    """A server that asks for a key, and isn't running yet."""
    settings = {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": KEY,
        "AUTHENTICATION_APIKEY_USERS": "bot",
    }
    server = WeaviateServer(tmp_path_factory.mktemp("own"), free_port, settings)
    yield server
    server.kill()


def place(server: WeaviateServer, *, key: str | None = KEY, grpc_port: int = 0, patience: float = 60) -> Server:
    return Server(server.url, grpc_port or server.grpc_port, key, patience)


async def refusal(server: Server) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        await WeaviateStore.open(server, "passages")
    assert not _INTERNAL.search(str(refused.value))
    return str(refused.value)


async def test_a_server_that_comes_up_late_is_waited_for(own: WeaviateServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "storage.weaviate")
    opening = asyncio.create_task(WeaviateStore.open(place(own), "passages"))
    while "can't be reached" not in caplog.text:
        assert not opening.done()
        await asyncio.sleep(0.02)
    own.launch()
    store = await opening
    await store.add([entry(passage("notice"), vector(1))])
    assert len(await store.search(ask("notice", vector(1)))) == 1
    await store.close()
    assert len({each.getMessage() for each in caplog.records}) == len(caplog.records), "it says each thing once"


@pytest.mark.parametrize("key", [None, "a wrong one"])
async def test_a_refused_key_is_said_at_once(own: WeaviateServer, key: str | None) -> None:
    own.start()
    began = time.monotonic()
    text = await refusal(place(own, key=key))
    assert "WEAVIATE_API_KEY" in text
    assert KEY not in text and "a wrong one" not in text
    assert time.monotonic() - began < 30, "it doesn't wait for what never comes"


async def test_a_closed_grpc_port_is_named(own: WeaviateServer, free_port: Callable[[], int]) -> None:
    own.start()
    port = free_port()
    text = await refusal(place(own, grpc_port=port, patience=1))
    assert "WEAVIATE_GRPC_PORT" in text and str(port) in text


async def test_no_server_at_all_is_named(free_port: Callable[[], int]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    text = await refusal(Server(url, free_port(), patience=1))
    assert url in text and "WEAVIATE_URL" in text


@pytest.fixture
async def serve(free_port: Callable[[], int]) -> AsyncIterator[Serve]:
    """Starts a web server that answers one path with one text; gives its address."""
    runners: list[web.AppRunner] = []

    async def start(path: str, answer: str) -> str:
        async def handler(_: web.Request) -> web.Response:
            return web.Response(text=answer, content_type="application/json" if answer[0] == "{" else "text/html")

        app = web.Application()
        app.router.add_get(path, handler)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return f"http://127.0.0.1:{port}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("path", ["/v1/meta", "/"])
@pytest.mark.parametrize("answer", ["<html>hello</html>", '{"hello": 1}', '{"version": "unknown"}'])
async def test_what_is_no_weaviate_is_named(serve: Serve, path: str, answer: str) -> None:
    url = await serve(path, answer)
    text = await refusal(Server(url, patience=0))
    assert url in text and "isn't Weaviate" in text and "WEAVIATE_URL" in text


@pytest.mark.parametrize("version", ["1.20.0", "1.32.9"])
async def test_a_server_that_is_too_old_is_named(serve: Serve, version: str) -> None:
    url = await serve("/v1/meta", f'{{"version": "{version}"}}')
    text = await refusal(Server(url, patience=60))
    assert url in text and "1.33" in text


async def test_a_server_that_stops_in_the_middle_of_writes_ends_up_with_everything_once(
    own: WeaviateServer,
) -> None:
    own.start()
    store = await WeaviateStore.open(place(own), "passages", owner="killed")
    failed = 0
    for start in range(1, 601, 20):
        if start == 301:
            asyncio.get_running_loop().call_later(0.005, own.terminate)
        batch = [entry(passage(f"notice {n}", number=n), vector(1, n)) for n in range(start, start + 20)]
        while not await _added(store, batch):
            failed += 1
            await asyncio.to_thread(own.kill)
            await _find_nothing(store, own)
            await asyncio.to_thread(own.start)
    assert failed > 0
    assert await store.count("acme", Version("handbook", 1)) == 600
    assert len(await store.search(ask("notice", vector(1), limit=600))) == 600
    await store.close()


async def _added(store: KnowledgeStore, batch: list[Entry]) -> bool:
    try:
        await store.add(batch)
    except StoreUnavailable:
        return False
    return True


async def _find_nothing(store: KnowledgeStore, away: WeaviateServer) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        await store.search(ask("notice", vector(1)))
    assert away.url in str(refused.value) and not _INTERNAL.search(str(refused.value))
