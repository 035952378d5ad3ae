"""A file's bytes, as Slack keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.platform import FetchFailed

CHUNK = 256 * 1024
SECONDS = aiohttp.ClientTimeout(total=None, connect=10, sock_read=30)

Json = Mapping[str, Any]

_GONE = "it was deleted on Slack"
_ELSEWHERE = "it isn't kept on Slack but elsewhere; post the file itself"
_NO_SCOPE = (
    "Slack sent its sign-in page instead of the file: the app lacks the scope files:read. Whoever set it up adds it "
    "under OAuth & Permissions and installs the app again"
)
_REFUSED = "Slack doesn't hand it out ({error}); post it again, or tell who set up the app"
_BROKEN = "Slack couldn't send it just now; post it again in a moment"


async def fetch(client: AsyncWebClient, http: aiohttp.ClientSession, file: str, target: Path, most: int) -> None:
    """Write the file to `target`, of a larger one than `most` bytes the beginning. Raises FetchFailed."""
    info = await _info(client, file)
    address = info.get("url_private_download") or info.get("url_private")
    if info.get("mode") == "tombstone":
        raise FetchFailed(_GONE)
    if info.get("is_external") or not address:
        raise FetchFailed(_ELSEWHERE)
    try:
        await _download(http, str(address), {"Authorization": f"Bearer {client.token}"}, target, most)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise FetchFailed(_BROKEN) from error


async def _info(client: AsyncWebClient, file: str) -> Json:
    try:
        found: Json = (await client.files_info(file=file))["file"]
    except SlackApiError as error:
        name = str(error.response.get("error"))
        if name in ("file_not_found", "file_deleted"):
            raise FetchFailed(_GONE) from error
        raise FetchFailed(_NO_SCOPE if name == "missing_scope" else _REFUSED.format(error=name)) from error
    return found


async def _download(
    http: aiohttp.ClientSession, address: str, headers: Mapping[str, str], target: Path, most: int
) -> None:
    async with http.get(address, headers=headers, timeout=SECONDS) as response:
        if response.status != 200:
            raise FetchFailed(_REFUSED.format(error=f"status {response.status}"))
        written = 0
        with await asyncio.to_thread(target.open, "wb") as file:
            async for chunk in response.content.iter_chunked(CHUNK):
                if not written and response.content_type == "text/html" and _is_sign_in(chunk):
                    raise FetchFailed(_NO_SCOPE)
                await asyncio.to_thread(file.write, chunk)
                written += len(chunk)
                if written > most:
                    return


def _is_sign_in(beginning: bytes) -> bool:
    """A page of Slack's own, where the file isn't one."""
    head = beginning[:20_000].lower()
    return b"<html" in head and b"slack" in head and (b"sign in" in head or b"signin" in head or b"log in" in head)
