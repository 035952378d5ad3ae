from __future__ import annotations

from tests.slack import channels
from tests.slack.api.call import Request, method, next_page
from tests.slack.errors import SlackError
from tests.slack.shapes import channel_json, message_json
from tests.slack.workspace import CHANNEL_TYPES, Channel, Json, Kind, Message

TYPES: dict[str, Kind] = {"public_channel": "public", "private_channel": "private", "im": "im", "mpim": "mpim"}
READ = ("channels:read", "groups:read", "im:read", "mpim:read")
HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")
DISTRIBUTED_PAGE = 15


@method("conversations.list", *READ)
def list_conversations(request: Request) -> Json:
    return _listed(request, [channel for channel in request.slack.channels.values() if _is_listed(request, channel)])


@method("users.conversations", *READ)
def users_conversations(request: Request) -> Json:
    user = request.user() if request.has("user") else request.caller.bot
    mine = (channel for channel in request.slack.channels.values() if user in channel.members)
    return _listed(request, [channel for channel in mine if _is_listed(request, channel)])


@method("conversations.info", *READ)
def info(request: Request) -> Json:
    channel = request.channel()
    request.needs(channel.scope("read"))
    shape = channel_json(channel, request.caller)
    if request.flag("include_num_members"):
        shape["num_members"] = len(channel.members)
    return {"channel": shape}


@method("conversations.members", *READ)
def members(request: Request) -> Json:
    channel = request.channel()
    request.needs(channel.scope("read"))
    page, cursor = request.page([user.id for user in channel.members], 100, 1000)
    return {"members": page} | next_page(cursor)


@method("conversations.history", *HISTORY)
def history(request: Request) -> Json:
    channel = _readable(request)
    standing = [message for message in reversed(channel.standing()) if message.in_channel]
    page, cursor = request.page(_within(request, standing), *_page_size(request))
    return _messages(request, page, cursor) | {"pin_count": 0}


@method("conversations.replies", *HISTORY)
def replies(request: Request) -> Json:
    channel = _readable(request)
    found = channel.messages.get(request.required("ts"))
    if found is None or found.deleted:
        raise SlackError("thread_not_found")
    thread = channel.thread(found.root_ts)
    page, cursor = request.page([thread[0], *_within(request, thread[1:])], *_page_size(request))
    return _messages(request, page, cursor)


@method("conversations.open", "im:write", "mpim:write")
def open_conversation(request: Request) -> Json:
    if request.has("channel"):
        return {"channel": _opened(request, request.channel())}
    idents = [ident.strip() for ident in request.required("users").split(",")]
    found = [request.slack.users.get(ident) for ident in idents]
    people = [user for user in found if user is not None]
    if len(people) < len(idents):
        raise SlackError("user_not_found")
    request.needs("im:write" if len(people) == 1 else "mpim:write")
    return {"channel": _opened(request, request.slack.direct(request.caller.bot, *people))}


@method("conversations.join", "channels:join")
def join(request: Request) -> Json:
    channel = request.channel()
    if channel.kind != "public":
        raise SlackError("method_not_supported_for_channel_type")
    if request.caller.bot not in channel.members:
        channels.join(request.slack, channel, request.caller.bot)
        return {"channel": channel_json(channel, request.caller)}
    return {"channel": channel_json(channel, request.caller), "warning": "already_in_channel"}


@method("conversations.leave", "channels:manage", "channels:write", "groups:write")
def leave(request: Request) -> Json:
    channel = request.channel()
    if request.caller.bot not in channel.members:
        return {"not_in_channel": True}
    channels.leave(request.slack, channel, request.caller.bot)
    return {}


def _opened(request: Request, channel: Channel) -> Json:
    return channel_json(channel, request.caller) if request.flag("return_im") else {"id": channel.id}


def _listed(request: Request, found: list[Channel]) -> Json:
    page, cursor = request.page(found, 100, 999)
    return {"channels": [channel_json(channel, request.caller) for channel in page]} | next_page(cursor)


def _is_listed(request: Request, channel: Channel) -> bool:
    if request.flag("exclude_archived") and channel.is_archived:
        return False
    if channel.kind not in _kinds(request) or request.team not in channel.teams:
        return False
    return channel.kind == "public" or request.caller.bot in channel.members


def _kinds(request: Request) -> list[Kind]:
    names = [name.strip() for name in request.text("types", "public_channel").split(",")]
    if not set(names) <= TYPES.keys():
        raise SlackError("invalid_types")
    kinds = [TYPES[name] for name in names]
    for kind in kinds:
        request.needs(f"{_scope(kind)}:read")
    return kinds


def _scope(kind: Kind) -> str:
    return {"channel": "channels", "group": "groups"}.get(CHANNEL_TYPES[kind], CHANNEL_TYPES[kind])


def _readable(request: Request) -> Channel:
    channel = request.entered()
    request.needs(channel.scope("history"))
    if request.app.distributed:
        request.slack.throttle(request.caller, request.call.method)
    return channel


def _page_size(request: Request) -> tuple[int, int]:
    return (DISTRIBUTED_PAGE, DISTRIBUTED_PAGE) if request.app.distributed else (100, 999)


def _within(request: Request, messages: list[Message]) -> list[Message]:
    """Those between `oldest` and `latest`."""
    oldest, latest = request.text("oldest", "0"), request.text("latest", "9999999999.999999")
    if request.flag("inclusive"):
        return [message for message in messages if _time(oldest) <= _time(message.ts) <= _time(latest)]
    return [message for message in messages if _time(oldest) < _time(message.ts) < _time(latest)]


def _time(ts: str) -> tuple[int, int]:
    seconds, _, micros = ts.partition(".")
    try:
        return int(seconds), int(micros.ljust(6, "0")[:6])
    except ValueError:
        raise SlackError("invalid_ts_latest") from None


def _messages(request: Request, page: list[Message], cursor: str) -> Json:
    shapes = [message_json(message, request.slack, request.team) for message in page]
    if not request.flag("include_all_metadata"):
        shapes = [{name: value for name, value in shape.items() if name != "metadata"} for shape in shapes]
    answer: Json = {"messages": shapes, "has_more": bool(cursor)}
    return answer | next_page(cursor) if cursor else answer
