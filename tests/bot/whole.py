"""A whole bot in this process, and what a person does on its page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from bot.app import open_app
from bot.settings import Settings

Json = dict[str, Any]


class Page:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def posts(
        self, text: str = "", file: str | bytes = "", name: str = "rules.md", **more: str
    ) -> httpx.Response:
        fields = {"channel": "general", "text": text, **more}
        if not file:
            return await self.http.post("/api/messages", json=fields)
        return await self.http.post("/api/messages", data=fields, files={"files": (name, file)})

    async def asks(self, text: str, **more: str) -> Json:
        return await self.outcome(await self.posts(text, **more))

    async def shares(self, file: str | bytes, name: str = "rules.md") -> Json:
        """The file's verdict."""
        (found,) = (await self.outcome(await self.posts(file=file, name=name)))["files"]
        return dict(found)

    async def outcome(self, posted: httpx.Response, seconds: float = 90) -> Json:
        assert posted.status_code == 202, posted.text
        message = posted.json()["message"]
        async with asyncio.timeout(seconds):
            while True:
                turn = (await self.http.get(f"/api/messages/{message}/turn?wait=5", timeout=20)).json()
                if turn.get("state") in ("done", "failed"):
                    return dict(turn)

    async def replies(self, posted: httpx.Response) -> Sequence[Json]:
        thread = (await self.http.get(f"/api/threads/{posted.json()['thread']}")).json()
        return [each for each in thread["messages"] if each["author"] == "bot"]


@contextlib.asynccontextmanager
async def opened(folder: Path, **settings: object) -> AsyncIterator[Page]:
    """With these settings alone, whatever the environment of the tests says."""
    given = {"data_dir": folder / "data", "port": 0, "log_level": "INFO", **settings}
    async with (
        open_app(Settings.model_validate(given)) as app,
        httpx.AsyncClient(base_url=app.url, timeout=30) as http,
    ):
        yield Page(http)
