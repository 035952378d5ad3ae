"""Socket Mode: apps that hold WebSockets open, and acknowledge what comes through them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
import uuid
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.slack.delivery import EVENT, Attempt, Delivery
from tests.slack.errors import SlackError
from tests.slack.workspace import App, Json, Slack

MOST_CONNECTIONS = 10
HOST = "applink-1"


@dataclass(eq=False)
class Connection:
    app: App
    socket: web.WebSocketResponse
    request: web.Request
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    opened_at: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class Pending:
    attempt: Attempt
    done: asyncio.Event = field(default_factory=asyncio.Event)


class SocketMode:
    def __init__(self, slack: Slack) -> None:
        self._slack = slack
        self._tickets: dict[str, tuple[App, float]] = {}
        self._pending: dict[str, Pending] = {}
        self._turns = itertools.count()
        self._connections: list[Connection] = []
        self.is_down = False

    def url_for(self, app: App) -> str:
        """Where the app may open one connection."""
        if app.request_url:
            raise SlackError("forbidden_team")
        ticket = str(uuid.uuid4())
        self._tickets[ticket] = (app, time.monotonic())
        return f"{self._slack.url.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={app.id}"

    def connections(self, app: App) -> list[Connection]:
        return [connection for connection in self._connections if connection.app is app]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        app, issued = self._tickets.pop(request.query.get("ticket", ""), (None, 0.0))
        if app is None or self.is_down or time.monotonic() - issued > self._slack.timing.ticket:
            return web.Response(status=403)
        socket = web.WebSocketResponse(heartbeat=self._slack.timing.ping, max_msg_size=0)
        await socket.prepare(request)
        connection = Connection(app, socket, request)
        if len(self.connections(app)) >= MOST_CONNECTIONS:
            await self._disconnect(connection, "too_many_websockets")
            return socket
        await self._serve(connection)
        return socket

    async def attempt(self, delivery: Delivery, attempt: Attempt) -> None:
        open_now = self.connections(delivery.app)
        if not open_now:
            attempt.failure = "connection_failed"
            return
        connection = open_now[next(self._turns) % len(open_now)]
        attempt.via = connection.id
        pending = self._pending[attempt.envelope_id] = Pending(attempt)
        try:
            async with asyncio.timeout(self._slack.timing.ack):
                await connection.socket.send_str(json.dumps(_envelope(delivery, attempt)))
                await pending.done.wait()
        except TimeoutError:
            attempt.failure = "timeout"
        except ConnectionError:
            attempt.failure = "connection_failed"

    async def refresh(self, app: App, reason: str) -> None:
        """Ask the app to open new connections; all but a warning close the old ones."""
        for connection in self.connections(app):
            if reason == "warning":
                await _send(connection, _disconnect(reason))
            else:
                await self._disconnect(connection, reason)

    def drop(self, app: App | None = None) -> None:
        """Cut connections off without a word."""
        for connection in list(self._connections):
            if app in (None, connection.app) and connection.request.transport is not None:
                connection.request.transport.abort()

    async def close(self) -> None:
        for connection in list(self._connections):
            with contextlib.suppress(ConnectionError):
                await connection.socket.close()

    async def _serve(self, connection: Connection) -> None:
        self._connections.append(connection)
        self._slack.changes.notify()
        try:
            await _send(connection, self._hello(connection.app))
            async for message in connection.socket:
                if message.type is WSMsgType.TEXT:
                    self._take(json.loads(message.data))
        finally:
            self._connections.remove(connection)
            self._slack.changes.notify()

    def _take(self, acknowledgement: Json) -> None:
        pending = self._pending.pop(acknowledgement.get("envelope_id", ""), None)
        if pending is None:
            return
        pending.attempt.acked_at = time.monotonic()
        pending.attempt.answer = acknowledgement.get("payload")
        pending.done.set()
        self._slack.changes.notify()

    def _hello(self, app: App) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.connections(app)),
            "debug_info": {"host": HOST, "build_number": 1, "approximate_connection_time": 18060},
            "connection_info": {"app_id": app.id},
        }

    async def _disconnect(self, connection: Connection, reason: str) -> None:
        await _send(connection, _disconnect(reason))
        await connection.socket.close()


def _disconnect(reason: str) -> Json:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}}


def _envelope(delivery: Delivery, attempt: Attempt) -> Json:
    envelope: Json = {
        "envelope_id": attempt.envelope_id,
        "payload": delivery.payload,
        "type": delivery.kind,
        "accepts_response_payload": delivery.kind != EVENT,
    }
    if delivery.kind == EVENT:
        envelope |= {"retry_attempt": attempt.number, "retry_reason": attempt.reason}
    return envelope


async def _send(connection: Connection, frame: Json) -> None:
    with contextlib.suppress(ConnectionError):
        await connection.socket.send_str(json.dumps(frame))
