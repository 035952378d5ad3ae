"""The page as a platform: it serves the HTTP interface, and what the bot says there is the transcript itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from agent.outcomes import Event
from bot.adapters.web import bodies
from bot.adapters.web.bodies import SignInBody
from bot.adapters.web.desk import PLATFORM, Desk, WebNotStarted, WebOptions
from bot.adapters.web.errors import BROKEN_OFF, NOT_FOUND, WebError, error_reply, reply, reply_to_error
from bot.adapters.web.events import Events
from bot.adapters.web.guard import HEADERS, Guard
from bot.adapters.web.health import Health, Metrics
from bot.adapters.web.posts import Posts
from bot.adapters.web.reading import Reading
from bot.adapters.web.service import Service
from bot.adapters.web.sight import Sight
from bot.adapters.web.uploads import Uploads
from bot.messages import Attachment, Incoming, Posted, Reply, ThreadRef
from bot.platform import Claim, OnMessage, Turn

PAGE = Path(__file__).parents[1] / "page"
CHARACTERS = 100_000  # a message of the page has no bound of its own
ENDING_SECONDS = 3.0  # that open requests have when the page ends
MOST_LINE = 65_536  # of a head that is read at all; a shorter one that is too long is refused in our own words
_FILE = re.compile(r"[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9]+)+")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Web:
    name = PLATFORM
    characters = CHARACTERS

    def __init__(self, options: WebOptions, desk: Desk) -> None:
        self.url = ""
        self._options = options
        self._desk = desk
        self._guard = Guard(options.host, options.token)
        self._metrics = Metrics()
        self._uploads = Uploads(options.uploads, options.largest_upload)
        sight = Sight(desk)
        self._posts = Posts(desk, sight, self._uploads)
        self._events = Events(desk, sight, self._metrics, options.heartbeat_seconds)
        self._health = Health(desk, self._guard, self._metrics)
        self._reading = Reading(desk, sight)
        self._service = Service(desk, sight, self._events)
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    async def start(self, on_message: OnMessage) -> None:
        """Raises WebNotStarted where the address can't be served."""
        self._guard.check_binding()
        self._uploads.open(await self._desk.living())
        await self._events.open()
        self._runner = web.AppRunner(
            self._application(),
            handle_signals=False,
            access_log=None,
            shutdown_timeout=ENDING_SECONDS,
            max_line_size=MOST_LINE,
            max_field_size=MOST_LINE,
            auto_decompress=False,  # one that can't be unpacked would be refused in other words than ours
        )
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, self._options.host, self._options.port)
        try:
            await self._site.start()
        except OSError as error:
            raise WebNotStarted(
                f"the page can't be served on {self._options.host}:{self._options.port} ({error.strerror}). "
                "Set PORT to a free port, or end what uses it."
            ) from None
        self.url = _url(self._options.host, self._runner.addresses[0][1])
        self._posts.open(self._counted(on_message))
        self._health.is_listening = True

    async def stop_listening(self) -> None:
        self._health.is_listening = False
        self._posts.close()
        if self._site is not None:
            await self._site.stop()
            self._site = None

    async def close(self) -> None:
        await self.stop_listening()
        self._service.close()
        await self._events.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def look(self, where: ThreadRef, user: str) -> None:
        """Nothing to do: the catalog is where the page's channels are kept."""

    async def tell(self, turn: Turn, event: Event) -> None:
        await self._events.tell(turn, event)

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        if part == 0:
            self._metrics.replied(turn.row, reply.kind)
        return f"{_reply_id(turn)}{part}"

    async def find(self, turn: Turn) -> list[Posted]:
        lines = await self._desk.transcript.parts_of(turn.row)
        return [Posted(message=line.message, part=int(line.message.removeprefix(_reply_id(turn)))) for line in lines]

    async def revise(self, where: ThreadRef, message: str, reply: Reply) -> None:
        """Nothing to do: who reads the page reads the transcript."""

    async def whisper(self, where: ThreadRef, user: str, text: str) -> None:
        """Nothing to do: whoever is refused here is told with the status of their request."""

    async def fetch(self, attachment: Attachment, target: Path) -> None:
        await self._uploads.fetch(attachment, target)

    async def discard(self, attachment: Attachment) -> None:
        await self._uploads.discard(attachment.reference)

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._boundary], client_max_size=bodies.LARGEST_BODY)
        app.on_response_prepare.append(_add_headers)
        app.add_routes([web.get("/", self._page), web.get("/static/{name}", self._page)])
        app.add_routes([web.post("/api/sign-in", self._sign_in)])
        for part in (self._posts, self._events, self._reading, self._service, self._health):
            app.add_routes(part.routes())
        return app

    @web.middleware
    async def _boundary(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._guard.check(request)
            bodies.check_head(request)
            response = await handler(request)
        except ConnectionError:
            response = error_reply(400, BROKEN_OFF)  # nobody is there to read it
        except Exception as error:  # noqa: BLE001 the boundary: it logs what it doesn't know
            response = reply_to_error(error, request)
        self._metrics.answered(request, response.status)
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", "index.html")
        if not _FILE.fullmatch(name) or not (PAGE / name).is_file():
            raise WebError(404, NOT_FOUND)
        return web.FileResponse(PAGE / name)

    async def _sign_in(self, request: web.Request) -> web.Response:
        body = await bodies.read(request, SignInBody)
        if not self._guard.is_token(body.token):
            await asyncio.sleep(0.5)
            raise WebError(401, "That isn't the token. Ask whoever runs Threadlore for WEB_TOKEN.")
        response = reply({"signed_in": True})
        self._guard.sign_in(response, secure=request.secure)
        return response

    def _counted(self, on_message: OnMessage) -> OnMessage:
        async def claim(incoming: Incoming) -> Claim:
            claimed = await on_message(incoming)
            if claimed.new:
                self._metrics.claimed(claimed.row)
            return claimed

        return claim


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    is_file = request.path == "/" or request.path.startswith("/static/")
    response.headers.setdefault("Cache-Control", "no-cache" if is_file else "no-store")


def _reply_id(turn: Turn) -> str:
    return f"r{turn.row}."


def _url(host: str, port: int) -> str:
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
