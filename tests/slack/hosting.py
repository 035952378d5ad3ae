"""Files over HTTP: fetched by those who may, uploaded where an upload was announced."""

from __future__ import annotations

import asyncio

from aiohttp import hdrs, web

from tests.slack.api.call import Call, Request
from tests.slack.api.files import is_visible
from tests.slack.faults import DOWNLOAD, Cut, Faults, suffer
from tests.slack.workspace import File, Slack

LOGIN_PAGE = """<!DOCTYPE html><html lang="en-US"><head><title>Sign in to Slack | Slack</title></head>
<body><form action="/sign_in_with_password">Sign in to your workspace</form></body></html>"""


class Hosting:
    def __init__(self, slack: Slack, faults: Faults) -> None:
        self._slack = slack
        self._faults = faults
        self.downloads: list[File] = []

    async def download(self, request: web.Request) -> web.StreamResponse:
        """Who may not have the file gets a page to sign in, with status 200."""
        fault = self._faults.take(DOWNLOAD)

        async def answer() -> web.StreamResponse:
            file = self._wanted(request)
            if file is None:
                return web.Response(text=LOGIN_PAGE, content_type="text/html", charset="utf-8")
            if isinstance(fault, Cut):
                return await _cut(request, file, fault.after)
            return web.Response(body=file.content, content_type=file.mimetype)

        return await suffer(fault, request, answer)

    async def take_upload(self, request: web.Request) -> web.Response:
        _, file = self._slack.uploads.pop(request.match_info["ticket"], (None, None))
        if file is None:
            return web.Response(status=404)
        if request.content_type == "multipart/form-data":
            form = await request.post()
            part = next(value for value in form.values() if isinstance(value, web.FileField))
            file.content = part.file.read()
        else:
            file.content = await request.read()
        return web.Response(text=f"OK - {len(file.content)}")

    def _wanted(self, request: web.Request) -> File | None:
        _, _, ident = request.match_info["ids"].partition("-")
        token = request.headers.get(hdrs.AUTHORIZATION, "").removeprefix("Bearer ")
        with self._slack.lock:
            file = self._slack.files.get(ident)
            reader = self._slack.installation_by_token(token)
            if file is None or file.deleted or reader is None or reader.refusal or not reader.may("files:read"):
                return None
            if not is_visible(Request(self._slack, Call("", {}, token), reader.app, reader), file):
                return None
            self.downloads.append(file)
        self._slack.changes.notify()
        return file


async def _cut(request: web.Request, file: File, after: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={hdrs.CONTENT_LENGTH: str(len(file.content))})
    response.content_type = file.mimetype
    await response.prepare(request)
    await response.write(file.content[:after])
    await asyncio.sleep(0)
    assert request.transport is not None
    request.transport.close()
    return response
