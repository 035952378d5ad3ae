"""5. Refused files: each says which it is and what to do; the rest of the post is learnt all the same."""

from __future__ import annotations

import re

import pytest

from tests.scenarios.conftest import LARGEST_FILE, UNPACKED_MEGABYTES
from tests.scenarios.papers import docx, exploding_docx, locked_pdf, note, paper, scanned_pdf
from tests.scenarios.stage import Channel, File, Player

WHOLE = docx("figures.docx", ["Quarterly figures of the plant."])
LOGIN_PAGE = (
    "<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Sign in to continue</h1>"
    '<form action="/login" method="post"><input name="email"><input type="password" name="password">'
    "<button>Sign in</button></form></body></html>"
)
REFUSED = {
    "encrypted": (locked_pdf("safe.pdf"), r"password|encrypt|protected"),
    "empty": (File("blank.txt", b""), r"empty"),
    "scanned": (scanned_pdf("scan.pdf", "Invoice 4417"), r"scan|\bOCR\b|picture|image"),
    "too large": (File("dump.txt", b"All work and no play. " * (LARGEST_FILE // 22 + 1000)), r"large|big"),
    "broken": (
        File("figures.docx", WHOLE.content[: len(WHOLE.content) * 6 // 10]),
        r"broken|damaged|corrupt|incomplete",
    ),
    "unreadable type": (File("pump.bin", bytes(range(256)) * 40), r"type|format|kind"),
    "login page": (note("report.pdf", LOGIN_PAGE), r"login|log-in|sign.in|web page"),
    "zip bomb": (exploding_docx("tiny.docx", UNPACKED_MEGABYTES + 20), r"unpack|bomb|expand|large|big"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_refused_file_says_why_and_the_rest_is_learnt(ada: Player, team: Channel, kind: str) -> None:
    file, why = REFUSED[kind]
    post, report = await ada.shares(team, file, paper("handbook.md"))
    verdicts = {each.name: each for each in report.files}
    assert verdicts["handbook.md"].verdict == "indexed", report.text
    refused = verdicts[file.name]
    assert refused.verdict == "refused", report.text
    assert re.search(why, refused.reason, re.I), refused.reason
    assert refused.reason in report.text
    assert "Error" not in refused.reason
    assert len(refused.reason.split()) >= 5, f"what can a person do about {refused.reason!r}?"
    assert await ada.replies(post) == [report]


async def test_a_refused_file_answers_nothing(ada: Player, team: Channel) -> None:
    await ada.share(team, note("report.pdf", LOGIN_PAGE), paper("handbook.md"))
    answer = await ada.ask(team, "Where do I sign in to continue?")
    assert "report.pdf" not in answer.cited
