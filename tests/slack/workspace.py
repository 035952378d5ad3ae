"""What Slack keeps: teams, people, channels, messages, files, and the apps that are installed."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.slack.changes import Changes
from tests.slack.errors import Limited
from tests.slack.names import Clock, Ids

Json = dict[str, Any]
Kind = Literal["public", "private", "im", "mpim"]

BOT_SCOPES = frozenset(
    """
    app_mentions:read assistant:write channels:history channels:read chat:write commands files:read files:write
    groups:history groups:read im:history im:read im:write mpim:history mpim:read reactions:read reactions:write
    team:read users:read
    """.split()
)
BOT_EVENTS = frozenset(
    """
    app_home_opened app_mention app_uninstalled assistant_thread_context_changed assistant_thread_started
    channel_archive channel_created channel_deleted channel_id_changed channel_left channel_rename channel_shared
    channel_unarchive channel_unshared file_change file_created file_deleted file_shared group_archive group_left
    group_rename group_unarchive member_joined_channel member_left_channel message.channels message.groups message.im
    message.mpim reaction_added reaction_removed team_join tokens_revoked user_change
    """.split()
)
CHANNEL_TYPES: dict[Kind, str] = {"public": "channel", "private": "group", "im": "im", "mpim": "mpim"}
SCOPE_NAMES: dict[Kind, str] = {"public": "channels", "private": "groups", "im": "im", "mpim": "mpim"}


@dataclass
class Timing:
    """How long Slack waits, in seconds. `scaled` makes all of it shorter."""

    ack: float = 3
    retries: tuple[float, ...] = (0, 60, 300)
    trigger: float = 3
    response_url: float = 1800
    stream: float = 300
    status: float = 120
    ticket: float = 30
    history: float = 60  # between two reads of a distributed app
    ping: float = 10

    def scaled(self, factor: float) -> Timing:
        return Timing(
            ack=self.ack * factor,
            retries=tuple(pause * factor for pause in self.retries),
            trigger=self.trigger * factor,
            response_url=self.response_url * factor,
            stream=self.stream * factor,
            status=self.status * factor,
            ticket=self.ticket,
            history=self.history * factor,
            ping=self.ping,
        )


@dataclass(eq=False)
class Team:
    id: str
    name: str
    domain: str

    @property
    def url(self) -> str:
        return f"https://{self.domain}.slack.com/"


@dataclass(eq=False)
class User:
    id: str
    team: Team
    name: str
    is_bot: bool = False
    is_admin: bool = False
    is_owner: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    deleted: bool = False
    title: str = ""
    updated: int = field(default_factory=lambda: int(time.time()))

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(eq=False)
class App:
    """An app as its developer has set it up. Where it is installed, it has a bot user of its own."""

    id: str
    name: str
    client_id: str
    client_secret: str
    signing_secret: str
    verification_token: str
    app_token: str
    scopes: frozenset[str]
    events: frozenset[str]
    app_token_scopes: frozenset[str] = frozenset({"connections:write", "authorizations:read"})
    request_url: str = ""  # without one the app uses Socket Mode
    commands: tuple[str, ...] = ()
    shortcuts: tuple[str, ...] = ()
    distributed: bool = False  # commercially, outside of the Marketplace
    mentions_with_files: bool = False  # whether such a post is an app_mention too
    one_event_for_all: bool = False  # whether what several installations may hear is sent for one of them alone
    installations: dict[str, Installation] = field(default_factory=dict)

    def in_team(self, team: Team) -> Installation:
        return self.installations[team.id]


@dataclass(eq=False)
class Installation:
    app: App
    team: Team
    bot: User
    bot_id: str
    token: str
    scopes: frozenset[str]
    installer: User
    refusal: str = ""  # what its token is answered with once it is worth nothing

    def may(self, *scopes: str) -> bool:
        return not scopes or any(scope in self.scopes for scope in scopes)


@dataclass(eq=False)
class File:
    id: str
    owner: User
    name: str
    content: bytes = field(repr=False)
    mimetype: str
    filetype: str
    title: str = ""
    mode: str = "hosted"  # hosted, snippet, post, external
    external_url: str = ""
    created: int = field(default_factory=lambda: int(time.time()))
    deleted: bool = False
    channels: list[str] = field(default_factory=list)
    must_be_looked_up: bool = False  # `file_access: check_file_info`


@dataclass(eq=False)
class Stream:
    """A message that is still being written."""

    touched: float
    mode: Literal["", "text", "chunks"] = ""
    state: Literal["in_progress", "completed", "stopped", "expired"] = "in_progress"


@dataclass(eq=False)
class Message:
    channel: Channel
    ts: str
    user: User
    text: str = ""
    thread_ts: str = ""
    subtype: str = ""
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    installation: Installation | None = None
    edited: Json | None = None
    metadata: Json | None = None
    client_msg_id: str = ""
    stream: Stream | None = None
    tasks: dict[str, Json] = field(default_factory=dict)
    only_for: User | None = None  # an ephemeral message
    deleted: bool = False
    extra: Json = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)  # what people saw, one after the other

    @property
    def root_ts(self) -> str:
        return self.thread_ts or self.ts

    @property
    def is_reply(self) -> bool:
        return bool(self.thread_ts) and self.thread_ts != self.ts

    @property
    def in_channel(self) -> bool:
        """Whether it stands in the channel itself."""
        return not self.is_reply or self.subtype == "thread_broadcast"


@dataclass(eq=False)
class Status:
    """What an app shows below a thread while it works."""

    text: str
    loading_messages: list[str]
    at: float
    installation: Installation


@dataclass(eq=False)
class Channel:
    id: str
    name: str
    kind: Kind
    team: Team
    creator: User
    members: list[User] = field(default_factory=list)
    connected: list[Team] = field(default_factory=list)  # teams that it is shared with
    topic: str = ""
    purpose: str = ""
    created: int = field(default_factory=lambda: int(time.time()))
    is_archived: bool = False
    is_general: bool = False
    previous_names: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    ephemerals: list[Message] = field(default_factory=list)
    statuses: dict[str, Status] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, list[Json]] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return CHANNEL_TYPES[self.kind]

    @property
    def is_private(self) -> bool:
        return self.kind != "public"

    @property
    def is_ext_shared(self) -> bool:
        return bool(self.connected)

    @property
    def teams(self) -> list[Team]:
        return [self.team, *self.connected]

    def scope(self, verb: str) -> str:
        """`channels:history` and the like."""
        return f"{SCOPE_NAMES[self.kind]}:{verb}"

    def standing(self) -> list[Message]:
        return [message for message in self.messages.values() if not message.deleted]

    def thread(self, ts: str) -> list[Message]:
        return [message for message in self.standing() if message.root_ts == ts]

    def replies(self, ts: str) -> list[Message]:
        return [message for message in self.thread(ts) if message.is_reply]


@dataclass(eq=False)
class View:
    id: str
    installation: Installation
    user: User
    content: Json
    hash: str
    root_id: str = ""
    previous_id: str = ""
    closed: bool = False
    errors: Json = field(default_factory=dict)


@dataclass(eq=False)
class Trigger:
    """Permission to open a view, for a moment."""

    installation: Installation
    user: User
    at: float
    used: bool = False


@dataclass(eq=False)
class ResponseUrl:
    installation: Installation
    user: User
    channel: Channel
    at: float
    message: Message | None = None
    uses: int = 0


class Sockets(Protocol):
    """Where apps open their WebSockets."""

    def url_for(self, app: App) -> str: ...


class Outbox(Protocol):
    """Takes what is to be delivered to an app."""

    def put(self, installation: Installation, kind: str, payload: Json) -> object: ...


@dataclass
class Habits:
    """What Slack does at one time and not at another."""

    replies_change_roots: bool = True  # a reply is a message_changed of its root, for the number of replies
    replies_are_told: bool = False  # and a message_replied


class Slack:
    """All that Slack keeps. Whoever touches it holds the lock."""

    def __init__(self, timing: Timing) -> None:
        self.lock = threading.RLock()
        self.changes = Changes()
        self.timing = timing
        self.habits = Habits()
        self.url = ""
        self.outbox: Outbox
        self.sockets: Sockets
        self.ids = Ids()
        self.clock = Clock()
        self.teams: dict[str, Team] = {}
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, File] = {}
        self.apps: dict[str, App] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[tuple[str, str], View] = {}  # by app and user
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.last_reads: dict[tuple[str, str], float] = {}
        self.codes: dict[str, tuple[App, User]] = {}
        self.uploads: dict[str, tuple[Installation, File]] = {}
        self.contexts: dict[str, list[Installation]] = {}  # who may hear of an event
        self.statuses: list[tuple[Channel, str, Status]] = []

    @property
    def installations(self) -> Iterator[Installation]:
        for app in self.apps.values():
            yield from app.installations.values()

    def add_team(self, name: str) -> Team:
        team = Team(self.ids.new("T"), name, name.lower().replace(" ", "-"))
        self.teams[team.id] = team
        return team

    def add_user(self, team: Team, name: str, **traits: Any) -> User:
        user = User(self.ids.new("U"), team, name, **traits)
        self.users[user.id] = user
        return user

    def add_channel(self, creator: User, name: str, kind: Kind, members: Iterable[User]) -> Channel:
        channel = Channel(self.ids.new("D" if kind == "im" else "C"), name, kind, creator.team, creator, list(members))
        self.channels[channel.id] = channel
        return channel

    def direct(self, *users: User) -> Channel:
        """The conversation of these alone: one of two, or a group's."""
        for channel in self.channels.values():
            if channel.kind in ("im", "mpim") and set(channel.members) == set(users):
                return channel
        kind: Kind = "im" if len(users) == 2 else "mpim"
        name = "" if kind == "im" else f"mpdm-{'--'.join(user.name for user in users)}-1"
        return self.add_channel(users[0], name, kind, users)

    def add_app(self, name: str, **traits: Any) -> App:
        app_id = self.ids.new("A")
        app = App(
            id=app_id,
            name=name,
            client_id=f"{len(self.apps) + 1}.{app_id}",
            client_secret=uuid.uuid4().hex,
            signing_secret=uuid.uuid4().hex,
            verification_token=uuid.uuid4().hex[:24],
            app_token=f"xapp-1-{app_id}-{uuid.uuid4().hex}",
            **{"scopes": BOT_SCOPES, "events": BOT_EVENTS, **traits},
        )
        self.apps[app.id] = app
        return app

    def install(self, app: App, installer: User) -> Installation:
        """Installed again, the app keeps its bot user and gets a new token."""
        team = installer.team
        known = app.installations.get(team.id)
        bot = known.bot if known else self.add_user(team, app.name.lower(), is_bot=True)
        bot_id = known.bot_id if known else self.ids.new("B")
        token = f"xoxb-{team.id}-{bot.id}-{uuid.uuid4().hex}"
        installation = Installation(app, team, bot, bot_id, token, app.scopes, installer)
        app.installations[team.id] = installation
        return installation

    def installation_by_token(self, token: str) -> Installation | None:
        return next((found for found in self.installations if found.token == token), None)

    def trigger(self, installation: Installation, user: User) -> str:
        name = f"{uuid.uuid4().int % 10**13}.{uuid.uuid4().hex}"
        self.triggers[name] = Trigger(installation, user, time.monotonic())
        return name

    def response_url(self, kind: str, url: ResponseUrl) -> str:
        name = uuid.uuid4().hex
        self.response_urls[name] = url
        return f"{self.url}/{kind}/{url.installation.team.id}/{name}"

    def open_views(self, app: App, user: User) -> list[View]:
        """The modals that this person has before them, the lowest first."""
        return [
            view
            for view in self.views.values()
            if view.installation.app is app
            and view.user is user
            and view.content["type"] == "modal"
            and not view.closed
        ]

    def throttle(self, installation: Installation, method: str) -> None:
        """One call of this method a minute."""
        now = time.monotonic()
        left = self.last_reads.get((installation.token, method), float("-inf")) + self.timing.history - now
        if left > 0:
            raise Limited(left)
        self.last_reads[installation.token, method] = now

    def permalink(self, message: Message, team: Team | None = None) -> str:
        link = f"{(team or message.channel.team).url}archives/{message.channel.id}/p{message.ts.replace('.', '')}"
        return f"{link}?thread_ts={message.thread_ts}&cid={message.channel.id}" if message.is_reply else link
