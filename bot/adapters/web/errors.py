"""The page's one error boundary: whatever goes wrong below it becomes a status and a sentence that says what to do.

WebError                 400 … 503, its text is for the person
bot.platform.Refused     by `STATUS`
storage.errors           503
a full disk              507
OperationalError         503, logged
aiohttp's HTTPException  its own status
anything else            500, logged
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from bot.platform import Refused, Why
from storage.database import is_disk_full
from storage.errors import StorageError

log = logging.getLogger(__name__)

STATUS = {
    Why.INVALID: 400,
    Why.TOO_LONG: 400,
    Why.TOO_MANY: 429,
    Why.UNKNOWN: 404,
    Why.NOT_MEMBER: 403,
    Why.NOT_AUTHOR: 403,
    Why.NOT_ASKER: 403,
    Why.DECIDED: 409,
    Why.CONFLICT: 409,
    Why.NOT_ADDRESSED: 409,
}
WAIT_A_MINUTE = {"Retry-After": "60"}
NOT_FOUND = "There is nothing at this address. Check its spelling."
HTTP_TEXTS = {
    400: "The request can't be read. Check its headers and body.",
    404: NOT_FOUND,
    405: "This address doesn't take that method.",
    413: "That is too large. Send less at once.",
    417: "That expectation isn't met here. Leave the header Expect out.",
}
BROKEN_OFF = "The request broke off. Send it again."
UNAVAILABLE = "A part that this needs can't be reached just now. Try again in a minute; `doctor` tells more."
FULL = "The disk is full: free space under DATA_DIR, then send it again."
UNEXPECTED = "Something went wrong here, and it was logged. Try again; if it stays so, tell whoever runs Threadlore."


class WebError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def reply(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON response. Text that no encoding can carry is replaced, not raised."""
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return web.Response(body=body, status=status, headers=headers, content_type="application/json", charset="utf-8")


def error_reply(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return reply({"error": text}, status, headers)


def reply_to_error(error: Exception, request: web.Request) -> web.Response:
    match error:
        case WebError():
            return error_reply(error.status, error.text)
        case Refused():
            return error_reply(STATUS[error.why], error.text, WAIT_A_MINUTE if error.why is Why.TOO_MANY else None)
        case web.HTTPException():
            return _http_error(error)
        case aiohttp.ClientPayloadError() | aiohttp.web.RequestPayloadError() | HttpProcessingError():
            return error_reply(400, BROKEN_OFF)
        case StorageError():
            log.warning("%s %s: %s", request.method, request.path, error)
            return error_reply(503, UNAVAILABLE)
        case SQLAlchemyError() | OSError():
            return _storage_error(error, request)
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return error_reply(500, UNEXPECTED)


def _storage_error(error: SQLAlchemyError | OSError, request: web.Request) -> web.Response:
    if is_disk_full(error):
        log.error("%s %s: the disk is full", request.method, request.path)
        return error_reply(507, FULL)
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    if isinstance(error, OperationalError):
        return error_reply(503, UNAVAILABLE)
    return error_reply(500, UNEXPECTED)


def _http_error(error: web.HTTPException) -> web.Response:
    allowed: dict[str, Any] = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    return error_reply(error.status, HTTP_TEXTS.get(error.status, "That can't be done here."), allowed)
