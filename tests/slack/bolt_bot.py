"""A bot on slack-bolt, over Socket Mode or over HTTP."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.server import SlackServer
from tests.slack.workspace import Installation

Event = dict[str, Any]
ANY = re.compile("")
Transport = Literal["socket", "http"]


class BoltBot:
    """`bolt` takes listeners; `heard` are the events for which there is none of the test's own."""

    def __init__(self, slack: SlackServer, installed: Installation, transport: Transport) -> None:
        self.installed = installed
        self.client = AsyncWebClient(installed.token, base_url=slack.api_url)
        self.bolt = AsyncApp(client=self.client, signing_secret=installed.app.signing_secret)
        self.heard: list[Event] = []
        self._slack = slack
        self._transport = transport
        self._stack = contextlib.AsyncExitStack()

    @property
    def mention(self) -> str:
        return self.installed.bot.mention

    async def connects(self) -> None:
        self.bolt.event(ANY)(self._hear)
        opened = self._over_http() if self._transport == "http" else self._over_socket()
        await self._stack.enter_async_context(opened)

    async def close(self) -> None:
        await self._stack.aclose()

    async def _hear(self, event: Event) -> None:
        self.heard.append(event)

    @contextlib.asynccontextmanager
    async def _over_socket(self) -> AsyncIterator[None]:
        handler = AsyncSocketModeHandler(self.bolt, self.installed.app.app_token, web_client=self.client)
        await handler.connect_async()  # type: ignore[no-untyped-call]
        await self._slack.until_connected(self.installed.app)
        yield
        await handler.close_async()  # type: ignore[no-untyped-call]

    @contextlib.asynccontextmanager
    async def _over_http(self) -> AsyncIterator[None]:
        runner = web.AppRunner(self.bolt.web_app("/slack/events"), shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        await self._slack.serve(self.installed.app, address)
        yield
        await runner.cleanup()
