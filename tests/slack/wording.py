"""Text as it goes over the wire: `&`, `<` and `>` are escaped, mentions and links stand in angle brackets."""

from __future__ import annotations

import re
from collections.abc import Callable

Change = Callable[[str], str]
TOKEN = r"<(?:[@#][A-Z][A-Z0-9]+(?:\|[^>]*)?|![a-z][^>]*|(?:https?://|mailto:|tel:)[^\s>]+(?:\|[^>]*)?|https?://[^|>]+\|[^>]*)>"
PEOPLE = re.compile(r"<(?:[@#][A-Z][A-Z0-9]+|![a-z]+)>")
ANY = re.compile(TOKEN)
ADDRESS = re.compile(r"https?://[^\s<>|]+[^\s<>|.,;:!?)\]'\"]")
DOMAIN = re.compile(r"(?<![\w@/.-])(?:[\w-]+\.)+(?:com|org|net|io|dev|ai|md|py|sh|rs)\b(?![\w@/])", re.IGNORECASE)
MAIL = re.compile(r"(?<![\w<:|])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
ENTITY = re.compile(r"&(?!(?:amp|lt|gt);)")


def as_typed(text: str) -> str:
    """What a person types: Slack links addresses, and takes `handbook.md` for one."""
    return _between(PEOPLE, text, lambda words: _linked(_escaped(words.replace("&", "&amp;"))))


def as_sent(text: str) -> str:
    """What an app sends, which may hold links and mentions."""
    return _between(ANY, text, lambda words: _escaped(ENTITY.sub("&amp;", words)))


def _escaped(words: str) -> str:
    return words.replace("<", "&lt;").replace(">", "&gt;")


def _linked(words: str) -> str:
    return _between(ADDRESS, words, _linked_names, lambda address: f"<{address}>")


def _linked_names(words: str) -> str:
    words = MAIL.sub(lambda found: f"<mailto:{found[0]}|{found[0]}>", words)
    return _between(ANY, words, lambda rest: DOMAIN.sub(lambda found: f"<http://{found[0]}|{found[0]}>", rest))


def _between(pattern: re.Pattern[str], text: str, change: Change, token: Change = str) -> str:
    parts = []
    end = 0
    for found in pattern.finditer(text):
        parts += [change(text[end : found.start()]), token(found[0])]
        end = found.end()
    return "".join([*parts, change(text[end:])])
