"""Events over HTTP: signed requests to the address that the app has named."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from urllib.parse import urlencode

import aiohttp

from tests.slack.delivery import EVENT, Attempt, Delivery
from tests.slack.workspace import App, Json, Slack

COMMAND = "slash_commands"


class UnverifiedUrl(Exception):
    """The address doesn't answer Slack's challenge."""


class HttpEvents:
    def __init__(self, slack: Slack) -> None:
        self._slack = slack
        self._http = aiohttp.ClientSession()

    async def close(self) -> None:
        await self._http.close()

    async def verify(self, app: App, url: str) -> None:
        """The challenge that an address has to answer before it is taken."""
        challenge = hashlib.sha256(app.id.encode()).hexdigest()
        body = json.dumps({"token": app.verification_token, "challenge": challenge, "type": "url_verification"})
        timeout = aiohttp.ClientTimeout(total=self._slack.timing.ack)
        headers = _headers(app, body, "application/json")
        try:
            async with self._http.post(url, data=body, headers=headers, timeout=timeout) as response:
                if response.status == 200 and challenge in await response.text():
                    return
                raise UnverifiedUrl(f"{url} answered {response.status}")
        except (TimeoutError, aiohttp.ClientError) as error:
            raise UnverifiedUrl(f"{url} did not answer") from error

    async def attempt(self, delivery: Delivery, attempt: Attempt) -> None:
        app = delivery.app
        attempt.via = app.request_url
        body, kind = _body(delivery)
        headers = _headers(app, body, kind) | _retry(attempt)
        timeout = aiohttp.ClientTimeout(total=self._slack.timing.ack)
        try:
            async with self._http.post(app.request_url, data=body, headers=headers, timeout=timeout) as response:
                await _note(attempt, response)
        except TimeoutError:
            attempt.failure = "http_timeout"
        except aiohttp.ClientError:
            attempt.failure = "connection_failed"


def sign(secret: str, timestamp: str, body: str) -> str:
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256)
    return f"v0={digest.hexdigest()}"


async def _note(attempt: Attempt, response: aiohttp.ClientResponse) -> None:
    text = await response.text()
    if response.status >= 300:
        attempt.failure = "http_error"
        attempt.final = response.headers.get("X-Slack-No-Retry") == "1"
        return
    attempt.acked_at = time.monotonic()
    attempt.answer = _answer(text, response.content_type)


def _answer(text: str, content_type: str) -> Json | None:
    if not text:
        return None
    answer: Json = json.loads(text) if content_type == "application/json" else {"text": text}
    return answer


def _body(delivery: Delivery) -> tuple[str, str]:
    if delivery.kind == EVENT:
        return json.dumps(delivery.payload), "application/json"
    form = delivery.payload if delivery.kind == COMMAND else {"payload": json.dumps(delivery.payload)}
    return urlencode(form), "application/x-www-form-urlencoded"


def _headers(app: App, body: str, content_type: str) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {
        "Content-Type": content_type,
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": sign(app.signing_secret, timestamp, body),
    }


def _retry(attempt: Attempt) -> dict[str, str]:
    if not attempt.number:
        return {}
    return {"X-Slack-Retry-Num": str(attempt.number), "X-Slack-Retry-Reason": attempt.reason}
