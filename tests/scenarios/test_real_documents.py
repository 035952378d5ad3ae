"""Documents that were written by others, the whole way: posted, asked about, answered, and the citation opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.scenarios.reading import assert_every_statement_is_cited, assert_opens_word_for_word, source_of
from tests.scenarios.stage import Channel, File, Player


@dataclass(frozen=True)
class Asked:
    """A question to a real document; the words that answer it, and where they stand."""

    question: str
    fact: str
    page: int | None
    place: str


REAL = {
    "pdf51_redp_2col_sampled.pdf": [
        Asked(
            "How many characters must the values of VERIFY_GROUP_FOR_USER be in length?",
            "1 - 10 characters",
            12,
            "page 12",
        ),
        Asked("By how much did the average cost of a data breach increase in 2013?", "15%", 5, "page 5"),
    ],
    "xlsx10_chartsheet.xlsx": [
        Asked("How many saltwater ducks were there in 2024?", "130", 1, "sheet Duck Observations"),
    ],
    "xlsx13_hidden_merged.xlsx": [
        Asked("Who approved the quarterly budget?", "Ines Okafor", 1, "sheet Budget"),
    ],
    "csv09_gb18030.csv": [
        Asked("欧阳娜娜在哪个部门？", "市场部", None, ""),
    ],
}


@pytest.mark.parametrize("name", REAL)
async def test_a_real_document_answers_with_its_place(
    ada: Player, team: Channel, real_file: Callable[[str], bytes], name: str
) -> None:
    report = await ada.share(team, File(name, real_file(name)))
    assert [file.verdict for file in report.files] == ["indexed"], report.text
    for asked in REAL[name]:
        answer = await ada.ask(team, asked.question)
        assert answer.kind == "answer", answer.text
        assert_every_statement_is_cited(answer)
        assert answer.cited == {name}
        source = source_of(answer, asked.fact)
        assert source.page == asked.page
        assert asked.place in source.place
        await assert_opens_word_for_word(ada, source)


async def test_a_hidden_sheet_is_never_shown(ada: Player, team: Channel, real_file: Callable[[str], bytes]) -> None:
    name = "xlsx13_hidden_merged.xlsx"
    await ada.share(team, File(name, real_file(name)))
    answer = await ada.ask(team, "What is HIDDEN-SHEET-SECRET?")
    assert "9931" not in answer.text
    assert all("9931" not in source.quote for source in answer.sources)


async def test_a_long_chinese_text_answers_in_chinese(
    ada: Player, team: Channel, real_corpus: Callable[[str], list[str]]
) -> None:
    text = "\n\n".join(real_corpus("xquad_zh")[:40])
    await ada.share(team, File("新闻.txt", text.encode("gb18030")))
    answer = await ada.ask(team, "黑豹队的防守丢了多少分？")
    assert answer.kind == "answer", answer.text
    source = source_of(answer, "308")
    assert source.name == "新闻.txt"
    assert_every_statement_is_cited(answer)
    await assert_opens_word_for_word(ada, source)


async def test_what_a_chinese_text_does_not_hold_is_not_found(
    ada: Player, team: Channel, real_corpus: Callable[[str], list[str]]
) -> None:
    await ada.share(team, File("新闻.txt", "\n\n".join(real_corpus("xquad_zh")[:40]).encode()))
    answer = await ada.ask(team, "雷克雅未克的国际象棋比赛谁赢了？")
    assert answer.kind == "not_found"
