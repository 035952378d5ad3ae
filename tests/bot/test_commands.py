from __future__ import annotations

import pytest

from bot.commands import Command, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("help", Command("help")),
        ("@bot help", Command("help")),
        ("<@U07> docs", Command("docs")),
        ("forget two  spaces.pdf", Command("forget", "two  spaces.pdf")),
        ("Help!", Command("help")),
        ("What can you do?", Command("help")),
        ("你能做什么？", Command("help")),
        ("docs", Command("docs")),
        ("/docs", Command("docs")),
        ("forget Handbook v2.pdf", Command("forget", "Handbook v2.pdf")),
        ("settings", Command("settings")),
        ("settings knowledge off", Command("settings", "knowledge off")),
        ("Stop.", Command("stop")),
        ("try again", Command("try again")),
        ("start over", Command("start over")),
    ],
)
def test_words_that_are_commands(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text", ["help me find the notice period", "what do the docs say?", "how do I stop the pump?", "forget me", ""]
)
def test_words_that_only_begin_like_commands(text: str) -> None:
    assert parse(text) is None
