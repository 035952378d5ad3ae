"""4. Files posted to a knowledge channel: one short reply that says what was learnt."""

from __future__ import annotations

import pytest

from tests.scenarios.papers import docx, note, paper, pdf, pptx, xlsx
from tests.scenarios.stage import Channel, File, Player, Stage


async def test_a_posted_file_is_learnt_and_reported_in_one_line(ada: Player, team: Channel) -> None:
    post, report = await ada.shares(team, paper("handbook.md"))
    assert report.kind == "report"
    assert [(file.name, file.verdict) for file in report.files] == [("handbook.md", "indexed")]
    (line,) = [line for line in report.text.splitlines() if "handbook.md" in line]
    assert "passages" in line
    assert "ready" in line
    assert await ada.replies(post) == [report]


async def test_the_pages_of_a_file_are_counted(ada: Player, team: Channel) -> None:
    report = await ada.share(
        team, pdf("rota.pdf", ["The gate opens at 6.", "The gate closes at 22.", "No gate on Sunday."])
    )
    assert "3 pages" in report.text


async def test_ten_files_at_once_get_one_reply_with_ten_lines(ada: Player, team: Channel) -> None:
    files = [
        note(f"rule_{number}.txt", f"Rule {number}: shelf {number} holds {number * 7} bolts.") for number in range(10)
    ]
    post, report = await ada.shares(team, *files)
    assert [file.name for file in report.files] == [file.name for file in files]
    assert {file.verdict for file in report.files} == {"indexed"}
    lines = [line for line in report.text.splitlines() if "rule_" in line]
    assert len(lines) == 10
    assert await ada.replies(post) == [report]


FORMATS = [
    (docx("notes.docx", ["# Canteen", "The canteen serves lentil soup on Tuesdays."]), "lentil soup on Tuesdays"),
    (pptx("kickoff.pptx", [("Goals", "The first milestone is the pump test.")]), "first milestone is the pump test"),
    (xlsx("stock.xlsx", {"Parts": [["Part", "Shelf"], ["gasket", "shelf 12"]]}), "shelf 12"),
    (pdf("sluice.pdf", ["The sluice is greased with lithium grease."]), "lithium grease"),
    (note("list.csv", "tool,keeper\ntorque wrench,Dmitri\n"), "Dmitri"),
    (note("page.html", "<h1>Lift</h1><p>The goods lift carries 900 kilograms.</p>"), "900 kilograms"),
]
QUESTIONS = {
    "notes.docx": "When does the canteen serve lentil soup?",
    "kickoff.pptx": "What is the first milestone?",
    "stock.xlsx": "On which shelf is the gasket?",
    "sluice.pdf": "What is the sluice greased with?",
    "list.csv": "Who is the keeper of the torque wrench?",
    "page.html": "How many kilograms does the goods lift carry?",
}


@pytest.mark.parametrize(("file", "fact"), FORMATS, ids=[file.name for file, _ in FORMATS])
async def test_every_common_format_answers(ada: Player, team: Channel, file: File, fact: str) -> None:
    report = await ada.share(team, file)
    assert [each.verdict for each in report.files] == ["indexed"], report.text
    answer = await ada.ask(team, QUESTIONS[file.name])
    assert answer.kind == "answer", answer.text
    assert fact in answer.text
    assert answer.cited == {file.name}


async def test_a_post_with_files_and_a_question_gets_one_reply_with_both(ada: Player, team: Channel) -> None:
    post, seen = await ada.asks(team, "What does clause 7 say?", [paper("clauses.md")])
    assert seen.kind == "answer"
    assert "written consent of the landlord" in seen.text
    assert [(file.name, file.verdict) for file in seen.files] == [("clauses.md", "indexed")]
    assert await ada.replies(post) == [seen]


async def test_a_channel_that_is_no_knowledge_channel_learns_nothing(stage: Stage, ada: Player) -> None:
    lobby = await stage.make_channel("lobby", by=ada, members=[ada], knowledge=False)
    post = await ada.post(lobby, files=[paper("handbook.md")])
    known = await ada.ask(lobby, "docs")
    assert "handbook.md" not in known.text
    answer = await ada.ask(lobby, "How many days of annual leave do employees have?")
    assert answer.kind == "not_found"
    assert len(await ada.replies(post)) <= 1
