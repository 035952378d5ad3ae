"""Who may speak to the page: the right host, the right origin, the right token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from bot.adapters.web.desk import WebNotStarted
from bot.adapters.web.errors import WebError

COOKIE = "threadlore"
COOKIE_SECONDS = 90 * 86400
OPEN_PATHS = ("/", "/healthz", "/readyz", "/favicon.ico", "/api/sign-in")
OPEN_FOLDER = "/static/"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Without a token the page serves this machine alone, so it answers to this machine's names alone: a foreign site
    whose name was made to point here is turned away by its Host."""

    def __init__(self, host: str, token: str | None) -> None:
        self._host = host.lower()
        self._token = token.encode() if token else None

    def check_binding(self) -> None:
        if self._token is None and not is_loopback(self._host):
            raise WebNotStarted(
                f"HOST={self._host or '(empty)'} can be reached from other machines, so the page needs a token: "
                "set WEB_TOKEN to a long secret, or HOST=127.0.0.1."
            )

    def check(self, request: web.Request) -> None:
        """Raises WebError where this request may not go on."""
        self._check_host(request)
        _check_origin(request)
        if not _is_open(request.path) and not self.knows(request):
            raise WebError(401, "Sign in first: this page needs its token (WEB_TOKEN).")

    def knows(self, request: web.Request) -> bool:
        """Whether the request carries the token; true where none is needed."""
        if self._token is None:
            return True
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(token.strip()):
            return True
        return hmac.compare_digest(_bytes(request.cookies.get(COOKIE, "")), self._cookie().encode())

    def is_token(self, token: str) -> bool:
        return self._token is None or hmac.compare_digest(_bytes(token), self._token)

    def sign_in(self, response: web.Response, secure: bool) -> None:
        """The cookie holds a digest: who reads it doesn't have the token."""
        response.set_cookie(
            COOKIE,
            self._cookie(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Strict",
            secure=secure,
        )

    def _cookie(self) -> str:
        return hmac.new(self._token or b"", b"threadlore page", hashlib.sha256).hexdigest()

    def _check_host(self, request: web.Request) -> None:
        if self._token is not None:
            return
        name = host_name(request.headers.get("Host", ""))
        if not is_loopback(name) and name != self._host:
            raise WebError(403, "This page answers to the names of its own machine alone: open it as 127.0.0.1.")


def _check_origin(request: web.Request) -> None:
    origin = request.headers.get("Origin")
    if origin is not None and _netloc(origin) != request.headers.get("Host", "").lower():
        raise WebError(403, "Another site may not use this page. Open it at its own address.")


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def host_name(host: str) -> str:
    """The name of a Host header, without its port and an IPv6 address's brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
