"""Names and ids as they come from outside, and the ids that the page gives."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
import unicodedata
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import quote, unquote

from pydantic import AfterValidator

from storage.channels import DIRECT

LONGEST_NAME = 80
LONGEST_FILE_NAME = 200
UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
BLANKS = "\u115f\u1160\u2800\u3164\uffa0\ufe0f\ufe0e\u034f"  # that Unicode counts among letters, symbols and marks
# no ":" and no "/": both part the names within a lane, an audience, a link
_NAME = re.compile(r"[\w.+\-@]+(?: [\w.+\-@]+)*")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,99}")
_UNSAID = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]")


def clean_name(value: str) -> str:
    """A workspace's or channel's name. Raises ValueError."""
    name = unicodedata.normalize("NFC", value)
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(f"use letters, digits and . - _ + @, at most {LONGEST_NAME} of them")
    return name


def clean_user(value: str) -> str:
    name = clean_name(value)
    if name.startswith(DIRECT) or len(name) >= LONGEST_NAME:
        raise ValueError(f"use a name that doesn't begin with {DIRECT} and has fewer than {LONGEST_NAME} characters")
    return name


def clean_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("use an id as it was given: letters, digits and . - _")
    return value


def clean_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("leave out the characters with code 0")
    return value


def is_blank(text: str) -> bool:
    """Whether nobody could see anything of it: spaces, line ends, and what has no width."""
    return all(each in BLANKS or unicodedata.category(each) in UNSEEN for each in text)


def file_name(value: str) -> str:
    """A file's name as it is shown: its last part, without what can't be seen, at most 200 characters."""
    last = PurePosixPath(_readable(value).replace("\\", "/")).name
    name = unicodedata.normalize("NFC", _UNSAID.sub("", last)).strip().strip(".").strip() or "unnamed"
    if len(name) <= LONGEST_FILE_NAME:
        return name
    suffix = PurePosixPath(name).suffix[:20]
    return name[: LONGEST_FILE_NAME - len(suffix)] + suffix


def _readable(name: str) -> str:
    """Browsers send a name in UTF-8, with a quote as %22; other clients send all of it in percent-encoding."""
    if name.isascii():
        with suppress(UnicodeDecodeError):
            return unquote(name, errors="strict")
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("%22", '"')


Name = Annotated[str, AfterValidator(clean_name)]
User = Annotated[str, AfterValidator(clean_user)]
Id = Annotated[str, AfterValidator(clean_id)]
Words = Annotated[str, AfterValidator(clean_text)]


def new_id() -> str:
    """An id that nobody can guess; later ones sort after earlier ones."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(5)}"


def message_id(key: str, *owner: str) -> str:
    """The id of a new message; with an idempotency key the same one for the same owner each time."""
    if not key:
        return f"m{new_id()}"
    return f"m{digest(key, *owner)[:24]}"


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def link(channel: str, thread: str, message: str = "") -> str:
    """A post's address on the page."""
    return "/#/" + "/".join(quote(part, safe="@") for part in (channel, thread, message) if part)
