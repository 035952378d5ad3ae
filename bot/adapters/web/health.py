"""Is it alive, is it ready, and what has it done."""

from __future__ import annotations

import time

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from bot.adapters.web.desk import Desk
from bot.adapters.web.errors import reply
from bot.adapters.web.guard import Guard

OK = "ok"
NOT_CONFIGURED = "not configured"
SPARED = frozenset({"model", "embeddings", "rerank"})  # without these the bot does less, and says so
DOCTOR = "/api/doctor"
UNMATCHED = "unmatched"
MOST_STARTED = 10_000


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "threadlore_requests", "Requests by route and status", ["route", "status"], registry=self._registry
        )
        self.readers = Gauge("threadlore_event_readers", "Open event streams", registry=self._registry)
        self.turns = Counter("threadlore_turns", "Replies by kind", ["kind"], registry=self._registry)
        self.seconds = Histogram(
            "threadlore_turn_seconds",
            "From a message's claim to its reply",
            ["kind"],
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180),
            registry=self._registry,
        )
        self._started: dict[int, float] = {}

    def claimed(self, row: int) -> None:
        """A turn begins. One that ends without a reply is forgotten in time."""
        self._started[row] = time.monotonic()
        while len(self._started) > MOST_STARTED:
            del self._started[next(iter(self._started))]

    def replied(self, row: int, kind: str) -> None:
        self.turns.labels(kind).inc()
        started = self._started.pop(row, None)
        if started is not None:
            self.seconds.labels(kind).observe(time.monotonic() - started)

    def answered(self, request: web.Request, status: int) -> None:
        resource = request.match_info.route.resource
        self.requests.labels(resource.canonical if resource else UNMATCHED, str(status)).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Health:
    def __init__(self, desk: Desk, guard: Guard, metrics: Metrics) -> None:
        self._desk = desk
        self._guard = guard
        self._metrics = metrics
        self.is_listening = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self.alive),
            web.get("/readyz", self.ready),
            web.get(DOCTOR, self.ready),
            web.get("/metrics", self.metrics),
        ]

    async def alive(self, _: web.Request) -> web.Response:
        return reply({"alive": True})

    async def ready(self, request: web.Request) -> web.Response:
        """Each dependency by name; what is wrong with it only for who has the token."""
        is_doctor = request.path == DOCTOR  # who asks it wants to read what is wrong, whatever that is
        found = {"bot": "is starting or ending"}
        if self.is_listening:
            found = await self._desk.readiness(thoroughly=is_doctor)
        is_ready = all(state == OK for name, state in found.items() if name not in SPARED)
        if not self._guard.knows(request):
            found = {name: _in_short(state) for name, state in found.items()}
        return reply({"ready": is_ready, "dependencies": found}, 200 if is_ready or is_doctor else 503)

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _in_short(state: str) -> str:
    """For who must not know more."""
    if state.startswith(OK):
        return OK
    return state if state == NOT_CONFIGURED else "down"
