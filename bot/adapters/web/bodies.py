"""What requests carry, checked: bodies, queries, headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.adapters.web.desk import USER, WORKSPACE
from bot.adapters.web.errors import WebError
from bot.adapters.web.names import Id, Name, User, Words
from storage.knowledge import Mode

LARGEST_BODY = 1024 * 1024
LONGEST_KEY = 200
LONGEST_ADDRESS = 8000
LONGEST_HEADER = 8000
JSON = "application/json"


def _is_rating(value: int) -> int:
    if value not in (1, -1):
        raise ValueError("use 1 or -1")
    return value


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    workspace: Name | None = None
    user: User | None = None


class PostBody(Body):
    channel: Name
    text: Words = ""
    thread: Id | Literal[""] = ""
    model: Words = Field("", max_length=200)


class EditBody(Body):
    text: Words


class DeleteBody(Body):
    """A deletion carries nothing but who asks: what else a client sends along is of no account."""

    model_config = ConfigDict(extra="ignore")


class ChoiceBody(Body):
    option: int | None = Field(None, ge=0)
    text: Words = ""


class FeedbackBody(Body):
    message: Id
    value: Annotated[int, AfterValidator(_is_rating)]


class ChannelBody(Body):
    visibility: Literal["public", "private"] | None = None
    members: list[User] | None = Field(None, max_length=1000)
    knowledge: bool | None = None
    quiet: bool | None = None


class SearchBody(Body):
    query: Words = Field(min_length=1, max_length=20_000)
    channel: Name
    limit: int = Field(10, ge=1, le=100)
    mode: Mode = Field(Mode.HYBRID, strict=False)


class SignInBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    token: str = Field(max_length=10_000)


class BackupBody(Body):
    target: Words = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Caller:
    workspace: str
    user: str


_NAMES = TypeAdapter(Name)
_USERS = TypeAdapter(User)
_IDS = TypeAdapter(Id)
B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")


def check_head(request: web.Request) -> None:
    if len(request.raw_path) > LONGEST_ADDRESS:
        raise WebError(414, "That address is too long. Send what is long in the body of a POST.")
    if any(len(value) > LONGEST_HEADER for value in request.headers.values()):
        raise WebError(431, "A header is too long. Leave out the headers that aren't needed, or delete the cookies.")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise WebError(415, "Send the body as it is, without Content-Encoding: a compressed one isn't unpacked here.")


async def read(request: web.Request, kind: type[B]) -> B:
    """The request's JSON body. An empty one stands for {}."""
    raw = await request.read()
    if raw and request.content_type != JSON:
        raise WebError(415, f"Send the body as {JSON}.")
    try:
        return kind.model_validate_json(raw or b"{}")
    except ValidationError as error:
        raise WebError(400, explain(error)) from None


def explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = str(first["loc"][0]) if first["loc"] else ""
    match first["type"]:
        case "json_invalid":
            return "The body isn't valid JSON in UTF-8. Check it and send it again."
        case "extra_forbidden":
            return f'There is no field "{where[:100]}". Leave it out, or check its spelling.'
        case "missing":
            return f'The field "{where}" is missing.'
    if not where:
        return "The body is no JSON object. Send one: {…}, with the fields in it."
    return f'The field "{where[:100]}" is wrong: {first["msg"].removeprefix("Value error, ")[:300]}.'


def caller(request: web.Request, body: Body | None = None) -> Caller:
    """Who asks, at their word: in the body, in the query, or by default."""
    workspace = body.workspace if body else None
    user = body.user if body else None
    return Caller(
        workspace or query(request, "workspace", WORKSPACE, _NAMES), user or query(request, "user", USER, _USERS)
    )


def channel_of(request: web.Request) -> str:
    """The query's channel, "" where it names none."""
    return query(request, "channel", "", _NAMES)


def query(request: web.Request, name: str, default: str, kind: TypeAdapter[str]) -> str:
    value = request.query.get(name, "")
    return checked(name, value, kind) if value else default


def number(request: web.Request, name: str, default: float, most: float) -> float:
    """A number from 0 to `most` in the query."""
    value = request.query.get(name, "")
    if not value:
        return default
    try:
        found = float(value)
    except ValueError:
        found = -1
    if not 0 <= found <= most:
        raise WebError(400, f'"{name}" is a number from 0 to {most:g}.')
    return found


def path_id(request: web.Request, name: str) -> str:
    """An id in the path: one that can't be an id is unknown like any other."""
    try:
        return _IDS.validate_python(request.match_info[name])
    except ValidationError:
        raise WebError(404, f"There is no such {name}.") from None


def path_name(request: web.Request, name: str) -> str:
    return checked(name, request.match_info[name], _NAMES)


def path_number(request: web.Request, name: str) -> int:
    text = request.match_info[name]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise WebError(404, f"There is no such {name}.")
    return int(text)


def idempotency_key(request: web.Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise WebError(400, f"An Idempotency-Key has at most {LONGEST_KEY} printable characters.")
    return key


def checked(name: str, value: str, kind: TypeAdapter[str]) -> str:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise WebError(400, f'"{name}" is wrong: {message}.') from None
