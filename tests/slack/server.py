"""A Slack of the project's own: the Web API, Socket Mode, events over HTTP, and the people who use it.

It runs in a thread of its own, so that a bot can stay connected while tests, each with its own event loop, come and go.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from aiohttp import web

from tests.slack import api, channels, posting
from tests.slack.api.call import Call
from tests.slack.delivery import Deliveries, Delivery, Order, Transport
from tests.slack.faults import Fault, Faults, Status
from tests.slack.hosting import Hosting
from tests.slack.http_events import HttpEvents
from tests.slack.people import Person
from tests.slack.responding import Responding
from tests.slack.socket_mode import Connection, SocketMode
from tests.slack.web_api import WebApi
from tests.slack.workspace import App, Channel, File, Installation, Json, Message, Slack, Team, Timing
from tests.slack.workspace import Status as Working

T = TypeVar("T")
SECONDS = 10.0
PERMALINK = re.compile(r"/archives/(?P<channel>\w+)/p(?P<seconds>\d+)(?P<micros>\d{6})")
UNAVAILABLE = Status(503)
assert api.chat  # importing the methods registers them


class SlackServer:
    def __init__(self, timing: Timing | None = None) -> None:
        self.slack = Slack(timing or Timing())
        self.faults = Faults()
        self.deliveries: Deliveries
        self._sockets = SocketMode(self.slack)
        self.slack.sockets = self._sockets
        self._web = WebApi(self.slack, self.faults)
        self._hosting = Hosting(self.slack, self.faults)
        self._http: HttpEvents
        self._runner: web.AppRunner
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="slack", daemon=True)

    def __enter__(self) -> SlackServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()
        self._run(self._open())

    def stop(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def api_url(self) -> str:
        """What the bot is given instead of https://slack.com/api/."""
        return f"{self.slack.url}/api/"

    @property
    def timing(self) -> Timing:
        return self.slack.timing

    @timing.setter
    def timing(self, timing: Timing) -> None:
        self.slack.timing = timing

    def team(self, name: str) -> Team:
        with self.slack.lock:
            return self.slack.add_team(name)

    def person(self, team: Team, name: str, **traits: Any) -> Person:
        """Somebody of a team: is_admin, is_owner, is_restricted, is_ultra_restricted, deleted."""
        with self.slack.lock:
            return Person(self.slack, self.deliveries, self.slack.add_user(team, name, **traits))

    def newcomer(self, team: Team, name: str, **traits: Any) -> Person:
        """Somebody who joins the team now, so that apps hear of it."""
        person = self.person(team, name, **traits)
        person.tells_of_self("team_join")
        return person

    def channel(
        self, name: str, *, by: Person, members: Iterable[Person | Installation] = (), private: bool = False
    ) -> Channel:
        """A channel that has always been there: no app hears of it."""
        users = [member.user if isinstance(member, Person) else member.bot for member in members]
        with self.slack.lock:
            everyone = dict.fromkeys([by.user, *users])
            return self.slack.add_channel(by.user, name, "private" if private else "public", everyone)

    def app(self, name: str = "Threadlore", **traits: Any) -> App:
        """An app with all scopes and events of a bot, unless others are named."""
        with self.slack.lock:
            return self.slack.add_app(name, **traits)

    def install(self, app: App, by: Person) -> Installation:
        with self.slack.lock:
            return self.slack.install(app, by.user)

    def grant(self, installation: Installation, *, without: Iterable[str] = (), also: Iterable[str] = ()) -> None:
        """Change the scopes of an installation."""
        with self.slack.lock:
            installation.scopes = (installation.scopes | set(also)) - set(without)

    async def serve(self, app: App, request_url: str) -> None:
        """Send the app's events to this address from now on. Raises UnverifiedUrl."""
        await self._do(self._http.verify(app, request_url))
        app.request_url = request_url

    def calls(self, method: str = "") -> list[Call]:
        """All API calls, in the order in which they came."""
        return [call for call in list(self._web.calls) if method in ("", call.method)]

    async def wait_for_calls(self, method: str, number: int = 1, seconds: float = SECONDS) -> list[Call]:
        """As soon as so many have been answered."""

        def enough() -> list[Call] | None:
            done = [call for call in self.calls(method) if call.status]
            return done if len(done) >= number else None

        return await self.until(enough, seconds)

    @property
    def downloads(self) -> list[File]:
        return list(self._hosting.downloads)

    @property
    def statuses(self) -> list[tuple[Channel, str, Working]]:
        """Each status that an app has set, with channel and thread."""
        return list(self.slack.statuses)

    def delivered(self, app: App, event: str = "") -> list[Delivery]:
        """All that was sent to an app, or one type of event."""
        return self.deliveries.to(app, event)

    async def until(self, find: Callable[[], T | None], seconds: float = SECONDS) -> T:
        """What `find` finds, looked for whenever something has changed. Raises TimeoutError."""
        return await self.slack.changes.until(find, seconds)

    async def until_settled(self, app: App, seconds: float = SECONDS) -> list[Delivery]:
        """Once everything sent to the app was acknowledged or given up."""

        def settled() -> list[Delivery] | None:
            sent = [delivery for delivery in self.delivered(app) if not delivery.held]
            return sent if all(delivery.is_settled for delivery in sent) else None

        return await self.until(settled, seconds)

    async def until_connected(self, app: App, number: int = 1, seconds: float = SECONDS) -> list[Connection]:
        """Once the app holds so many WebSockets open."""

        def enough() -> list[Connection] | None:
            now = self.connections(app)
            return now if len(now) >= number else None

        return await self.until(enough, seconds)

    def connections(self, app: App) -> list[Connection]:
        return self._sockets.connections(app)

    @contextlib.contextmanager
    def holding(self, order: Order = list) -> Iterator[None]:
        """Events are held back, and let go in this order at the end."""
        self.deliveries.hold()
        try:
            yield
        finally:
            self.deliveries.release(order)

    def repeat(self, delivery: Delivery) -> Delivery:
        """The same event once more, with the same id."""
        return self.deliveries.repeat(delivery)

    def duplicate(self, delivery: Delivery) -> Delivery:
        """The same event once more, with another id."""
        return self.deliveries.duplicate(delivery)

    def drop_connections(self, app: App | None = None) -> None:
        self._loop.call_soon_threadsafe(self._sockets.drop, app)

    async def refresh_connections(self, app: App, reason: str = "refresh_requested") -> None:
        """`warning`, `refresh_requested` or `link_disabled`."""
        await self._do(self._sockets.refresh(app, reason))

    @contextlib.contextmanager
    def outage(self, fault: Fault = UNAVAILABLE) -> Iterator[None]:
        """Slack is down: every call fails, and no WebSocket is open."""
        self.faults.always("*", fault)
        self._sockets.is_down = True
        self.drop_connections()
        try:
            yield
        finally:
            self._sockets.is_down = False
            self.faults.heal("*")

    def unfurl(self, message: Message, title: str, url: str) -> None:
        """Slack shows what a link in the message leads to."""
        attachment: Json = {"id": 1, "from_url": url, "title": title, "title_link": url, "fallback": title}
        posting.unfurl(self.slack, message, attachment)

    def webhook(self, channel: Channel, name: str, text: str) -> Message:
        """A bot without a user posts this."""
        return posting.post_by_webhook(self.slack, channel, name, text)

    def expire_stream(self, message: Message) -> None:
        """As after minutes without a word."""
        with self.slack.lock:
            assert message.stream is not None
            message.stream.state = "expired"

    def message_at(self, permalink: str) -> Message | None:
        """What stands where a link leads to."""
        place = PERMALINK.search(permalink)
        channel = self.slack.channels.get(place["channel"]) if place else None
        if place is None or channel is None:
            return None
        found = channel.messages.get(f"{place['seconds']}.{place['micros']}")
        return None if found is None or found.deleted else found

    def connect_teams(self, channel: Channel, team: Team) -> None:
        """Slack Connect, and apps hear of it."""
        channels.share(self.slack, channel, team)

    def _transport(self, app: App) -> Transport:
        return self._http if app.request_url else self._sockets

    async def _open(self) -> None:
        self.deliveries = Deliveries(self.slack, self._transport)
        self.slack.outbox = self.deliveries
        self._http = HttpEvents(self.slack)
        self._runner = web.AppRunner(self._routes(), shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.slack.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def _routes(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        responding = Responding(self.slack)
        app.router.add_route("*", "/api/{method}", self._web.handle)
        app.router.add_get("/link/", self._sockets.handle)
        app.router.add_get("/files-pri/{ids}/{name}", self._hosting.download)
        app.router.add_get("/files-pri/{ids}/download/{name}", self._hosting.download)
        app.router.add_post("/upload/v1/{ticket}", self._hosting.take_upload)
        for kind in ("actions", "commands", "app"):
            app.router.add_post(f"/{kind}/{{team}}/{{name}}", responding.handle)
        return app

    async def _close(self) -> None:
        await self.deliveries.close()
        await self._sockets.close()
        await self._http.close()
        await self._runner.cleanup()

    async def _do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)
