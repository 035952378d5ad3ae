"""What apps send back to a click or a command: by `response_url`, or with the acknowledgement."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from tests.slack import blocks as block_kit
from tests.slack import posting
from tests.slack.errors import SlackError
from tests.slack.posting import Draft
from tests.slack.wording import as_sent
from tests.slack.workspace import Json, ResponseUrl, Slack

MOST_USES = 5


class Responding:
    def __init__(self, slack: Slack) -> None:
        self._slack = slack

    async def handle(self, request: web.Request) -> web.Response:
        body: Any = await request.json()
        url = self._slack.response_urls.get(request.match_info["name"])
        if url is None or time.monotonic() - url.at > self._slack.timing.response_url:
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        if url.uses >= MOST_USES:
            return web.json_response({"ok": False, "error": "used_url"}, status=404)
        url.uses += 1
        try:
            respond(self._slack, url, body)
        except SlackError as error:
            return web.json_response({"ok": False, "error": error.code} | error.fields)
        return web.Response(text="ok")


def respond(slack: Slack, url: ResponseUrl, body: Json) -> None:
    """A new message, or a change to the one that was clicked."""
    with slack.lock:
        if url.message and _flag(body, "delete_original"):
            _remove(slack, url)
            return
        draft = _draft(body)
        if url.message and _flag(body, "replace_original", not body.get("response_type")):
            _replace(slack, url, draft)
        elif body.get("response_type") == "in_channel":
            posting.post(slack, url.channel, url.installation, draft)
        else:
            posting.whisper(slack, url.channel, url.installation, url.user, draft)


def _flag(body: Json, name: str, default: bool = False) -> bool:
    return str(body.get(name, default)).lower() == "true"


def _draft(body: Json) -> Draft:
    text = as_sent(body.get("text") or "")
    blocks = block_kit.check(body.get("blocks") or [])
    if not (text or blocks or body.get("attachments")):
        raise SlackError("no_text")
    return Draft(text, body.get("thread_ts") or "", blocks, body.get("attachments") or [])


def _replace(slack: Slack, url: ResponseUrl, draft: Draft) -> None:
    message = url.message
    assert message is not None
    if message.only_for:
        message.text, message.blocks = draft.text, posting.numbered(draft.blocks)
        posting.show(slack, message)
    else:
        posting.rewrite(slack, message, url.installation.bot, draft)


def _remove(slack: Slack, url: ResponseUrl) -> None:
    message = url.message
    assert message is not None
    if message.only_for:
        message.deleted = True
        slack.changes.notify()
    else:
        posting.erase(slack, message)
