"""What goes out to apps: in what order, how often, and when each of it was acknowledged."""

from __future__ import annotations

import asyncio
import copy
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.slack.workspace import App, Installation, Json, Slack

EVENT = "events_api"
Order = Callable[[Sequence["Delivery"]], Sequence["Delivery"]]


@dataclass(eq=False)
class Attempt:
    number: int
    reason: str  # why it is made once more
    envelope_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    at: float = field(default_factory=time.monotonic)
    via: str = ""  # the connection that took it, or the address
    acked_at: float | None = None
    answer: Json | None = None
    failure: str = ""
    final: bool = False  # the app asked for no more attempts

    @property
    def delay(self) -> float | None:
        return None if self.acked_at is None else self.acked_at - self.at


@dataclass(eq=False)
class Delivery:
    """One event, click or command on its way to one app."""

    installation: Installation
    kind: str
    payload: Json
    attempts: list[Attempt] = field(default_factory=list)
    held: bool = False
    given_up: bool = False

    @property
    def app(self) -> App:
        return self.installation.app

    @property
    def event(self) -> Json:
        event: Json = self.payload.get("event", {})
        return event

    @property
    def acked(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.acked_at is not None), None)

    @property
    def is_settled(self) -> bool:
        return bool(self.acked) or self.given_up


class Transport(Protocol):
    async def attempt(self, delivery: Delivery, attempt: Attempt) -> None:
        """Send it and note in the attempt how that went."""


class Deliveries:
    """The outbox of Slack. `log` holds all of them in the order in which they happened."""

    def __init__(self, slack: Slack, transport: Callable[[App], Transport]) -> None:
        self._slack = slack
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[Delivery] | None = None
        self.log: list[Delivery] = []

    def put(self, installation: Installation, kind: str, payload: Json) -> Delivery:
        delivery = Delivery(installation, kind, copy.deepcopy(payload))
        with self._slack.lock:
            self.log.append(delivery)
            if self._held is not None and kind == EVENT:
                delivery.held = True
                self._held.append(delivery)
            else:
                self._send(delivery)
        return delivery

    def hold(self) -> None:
        """Keep events back until they are released."""
        with self._slack.lock:
            self._held = self._held or []

    def release(self, order: Order = list) -> None:
        """Let go what was held back, in this order; what the order leaves out is lost."""
        with self._slack.lock:
            held, self._held = self._held or [], None
            for delivery in order(held):
                delivery.held = False
                self._send(delivery)

    def repeat(self, delivery: Delivery) -> Delivery:
        """The same event with the same id, as if its acknowledgement had been lost."""
        again = Delivery(delivery.installation, delivery.kind, copy.deepcopy(delivery.payload))
        again.attempts = [Attempt(0, "", failure="timeout")]
        with self._slack.lock:
            self.log.append(again)
            self._send(again)
        return again

    def duplicate(self, delivery: Delivery) -> Delivery:
        """The same event with another id."""
        payload = {**delivery.payload, "event_id": self._slack.ids.new("Ev")}
        return self.put(delivery.installation, delivery.kind, payload)

    def to(self, app: App, event: str = "") -> list[Delivery]:
        with self._slack.lock:
            return [found for found in self.log if found.app is app and event in ("", found.event.get("type"))]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _send(self, delivery: Delivery) -> None:
        self._loop.call_soon_threadsafe(self._start, delivery)

    def _start(self, delivery: Delivery) -> None:
        task = self._loop.create_task(self._deliver(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        while (attempt := self._next(delivery)) is not None:
            pause = self._pause(attempt.number)
            await asyncio.sleep(pause)
            attempt.at = time.monotonic()
            await self._transport(delivery.app).attempt(delivery, attempt)
            self._slack.changes.notify()
        delivery.given_up = delivery.acked is None
        self._slack.changes.notify()

    def _next(self, delivery: Delivery) -> Attempt | None:
        last = delivery.attempts[-1] if delivery.attempts else None
        if last is None:
            attempt = Attempt(0, "")
        elif delivery.acked or last.final or delivery.kind != EVENT or delivery.installation.refusal:
            return None
        elif last.number >= len(self._slack.timing.retries):
            return None
        else:
            attempt = Attempt(last.number + 1, last.failure)
        delivery.attempts.append(attempt)
        return attempt

    def _pause(self, number: int) -> float:
        return self._slack.timing.retries[number - 1] if number else 0
