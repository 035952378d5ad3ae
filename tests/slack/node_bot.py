"""A bot on npm's @slack/bolt in a process of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.slack.bolt_bot import Transport
from tests.slack.server import SlackServer
from tests.slack.workspace import Installation

SCRIPT = Path(__file__).with_suffix(".mjs")
PACKAGES = Path(__file__).parents[2] / ".tools" / "slack-bolt"
INSTALL = "make slack-bolt"
SECONDS = 20.0


def skip_if_missing() -> None:
    if shutil.which("node") is None:
        pytest.skip("node 20 or newer is not installed")
    if not (PACKAGES / "node_modules" / "@slack" / "bolt").exists():
        pytest.skip(f"@slack/bolt is not installed: {INSTALL}")


class NodeBot:
    def __init__(self, slack: SlackServer, installed: Installation, transport: Transport) -> None:
        self._slack = slack
        self._installed = installed
        self._transport = transport
        self._process: asyncio.subprocess.Process

    async def __aenter__(self) -> NodeBot:
        self._process = await asyncio.create_subprocess_exec(
            "node", str(SCRIPT), str(PACKAGES), json.dumps(self._settings()), stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            ready, _, port = (await self._process.stdout.readline()).decode().partition(" ")
        assert ready == "ready", "the bot ended while it started"
        if self._transport == "http":
            await self._slack.serve(self._installed.app, f"http://127.0.0.1:{port.strip()}/slack/events")
        else:
            await self._slack.until_connected(self._installed.app)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.communicate()

    def _settings(self) -> dict[str, str]:
        app = self._installed.app
        way = {"appToken": app.app_token} if self._transport == "socket" else {"signingSecret": app.signing_secret}
        return {"apiUrl": self._slack.api_url, "botToken": self._installed.token, **way}
