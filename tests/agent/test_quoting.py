from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting import quote, sentences, support
from storage.models import Hit
from tests.agent.passages import hit

QUESTIONS = Path(__file__).parents[2].parent / "shared" / "data" / "qa"


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def cut_up(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def quotes(question: str, *hits: Hit) -> list[str]:
    return [each.text for each in quote(question, hits)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith left at 5 p.m. today. Then he rang.", ["Dr. Smith left at 5 p.m. today.", "Then he rang."]),
        ("It costs 3.50 euros, e.g. in the U.S. now. Fine.", ["It costs 3.50 euros, e.g. in the U.S. now.", "Fine."]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("员工享有年假。承包商没有！真的吗？", ["员工享有年假。", "承包商没有！", "真的吗？"]),
        ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("a line that is wrapped because it grew so long that it\nhad to go on. Next.", [
            "a line that is wrapped because it grew so long that it\nhad to go on.", "Next.",
        ]),
        ("- First item. Go on.\n- Second item\n  goes on", ["- First item. Go on.", "- Second item\n  goes on"]),
        ("1. Open it.\n2. Close it.", ["1. Open it.", "2. Close it."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", ["| a | b |", "| 1 | 2 |", "| 3 | 4 |"]),
        ("# Title\nText here.", ["# Title", "Text here."]),
        ("```\nx = 1. Then\n\ny = 2\n```\nAfter.", ["```\nx = 1. Then\n\ny = 2\n```", "After."]),
        ("Öffnungszeiten z.B. Mo. bis Fr. Am 3. Mai zu.", ["Öffnungszeiten z.B. Mo. bis Fr.", "Am 3. Mai zu."]),
        ("", []),
        ("  \n \n", []),
    ],
)  # fmt: skip
def test_sentences_of_any_script_are_told_apart(text: str, expected: list[str]) -> None:
    assert cut_up(text) == expected


@given(st.text(alphabet=st.sampled_from("ab .!?\n|-#`*1。？“”\r\t　"), max_size=200))
def test_sentences_are_in_order_and_leave_out_nothing_but_space_and_rules(text: str) -> None:
    spans = sentences(text)
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    left = text
    for start, end in reversed(spans):
        left = left[:start] + left[end:]
    assert not set(left) & set("ab1。？")


@given(st.text(max_size=120), st.lists(st.text(max_size=300), max_size=4))
def test_a_quote_stands_word_for_word_in_its_passage(question: str, texts: list[str]) -> None:
    hits = [hit(text, f"{number}.md") for number, text in enumerate(texts)]
    for each in quote(question, hits):
        assert each.text == each.hit.passage.text[each.start : each.end]
        assert each.text.strip()


LEAVE = hit(
    "Acme was founded in 1998 in Bremen. Employees get 28 days of paid vacation a year. "
    "The canteen is on the ground floor. Anna Schmidt runs the company. Contractors must give notice one month ahead."
)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many vacation days do employees get?", "Employees get 28 days of paid vacation a year."),
        ("When was Acme founded?", "Acme was founded in 1998 in Bremen."),
        ("Who runs the company?", "Anna Schmidt runs the company."),
        ("Where is the canteen?", "The canteen is on the ground floor."),
    ],
)
def test_the_sentence_that_answers_is_quoted_and_no_more(question: str, text: str) -> None:
    assert quotes(question, LEAVE) == [text]


def test_a_sentence_that_holds_the_kind_of_value_that_is_asked_for_is_preferred() -> None:
    passage = hit(
        "The notice period is explained to everyone on the first day. The notice period amounts to three months."
    )
    assert quotes("How long is the notice period?", passage)[0].endswith("three months.")


def test_a_sentence_that_refers_back_comes_with_what_it_refers_to() -> None:
    passage = hit("The Meyer lease was signed in 2019. It ends on 31 May 2027. Parking costs extra in the yard behind.")
    assert quotes("When does the Meyer lease end?", passage)[0].startswith("The Meyer lease")
    assert "31 May 2027" in quotes("When does the Meyer lease end?", passage)[0]


TABLE = (
    "In euros:\n\n| Item | Amount | Owner |\n|---|---|---|\n| Travel | 52,000 | Ann |\n| Training | 18,000 | Bob |\n"
)


def test_a_row_of_a_table_comes_with_the_table_s_head() -> None:
    assert quotes("What is the amount for training?", hit(TABLE)) == [TABLE[TABLE.index("| Item") :].rstrip()]


def test_a_row_far_from_the_head_stands_alone() -> None:
    rows = "".join(f"| Item number {number} of the list | {number * 100} | Owner {number} |\n" for number in range(40))
    passage = hit(f"| Item | Amount | Owner |\n|---|---|---|\n{rows}| Training | 18,000 | Bob |\n")
    assert quotes("What is the amount for training?", passage) == ["| Training | 18,000 | Bob |"]


def test_a_table_head_that_is_said_again_before_a_passage_is_no_part_of_a_quote() -> None:
    head, row = "| Item | Amount |\n|---|---|\n", "| Training | 18,000 |"
    whole = hit(head + row)
    passage = replace(whole, passage=replace(whole.passage, start=500, end=500 + len(row)))
    quoted = quote("What is the amount for training?", [passage])[0]
    assert quoted.text == row
    assert quoted.offset == 500


def test_a_question_in_the_text_is_quoted_with_its_answer() -> None:
    passage = hit(
        "Q: How do I reset my password?\nOpen the portal and click Forgot.\n\nQ: Where is the canteen?\nDownstairs."
    )
    assert quotes("How do I reset my password?", passage)[0].endswith("click Forgot.")


def test_a_list_is_quoted_with_its_items() -> None:
    passage = hit("Holidays in Berlin:\n- 1 January: New Year\n- 1 May: Labour Day\n\nThe office is closed then.")
    assert "Labour Day" in quotes("Which holidays are there in Berlin?", passage)[0]


def test_one_good_sentence_beats_three_weak_ones() -> None:
    others = [hit(f"The office number {number} has many plants.", f"{number}.md", score=0.2) for number in range(5)]
    assert len(quotes("How many vacation days do employees get?", LEAVE, *others)) == 1


def test_the_same_sentence_in_two_documents_is_quoted_once() -> None:
    again = hit(LEAVE.passage.text, "copy.md")
    assert len(quotes("How many vacation days do employees get?", LEAVE, again)) == 1


def test_what_several_documents_say_is_quoted_from_each() -> None:
    first = hit("The notice period for employees is two months.", "one.md")
    second = hit("The notice period for contractors is 14 days.", "two.md", score=0.98)
    assert len(quotes("What are the notice periods?", first, second)) == 2


def test_the_limit_holds() -> None:
    hits = [
        hit(f"The notice period of contract {number} is {number} months.", f"{number}.md") for number in range(2, 9)
    ]
    assert len(quote("What is the notice period?", hits, limit=3)) == 3


def test_chinese_is_quoted_by_the_sentence() -> None:
    passage = hit("公司成立于1998年。员工每年享有十五天带薪年假。食堂在一楼。")
    assert quotes("员工有几天年假？", passage) == ["员工每年享有十五天带薪年假。"]


def test_nothing_is_quoted_from_nothing() -> None:
    assert quote("What is it?", []) == []
    assert quote("", [hit("")]) == []


@pytest.mark.parametrize(("name", "least"), [("xquad_en", 0.82), ("xquad_zh", 0.85), ("cmrc2018_trial", 0.72)])
def test_most_quotes_of_the_right_passage_hold_the_answer(name: str, least: float) -> None:
    if not (QUESTIONS / name).is_dir():
        pytest.skip("the question sets are not on this machine")
    texts = {row["_id"]: row["text"] for row in read_rows(QUESTIONS / name / "corpus.jsonl")}
    pairs = dict(line.split("\t")[:2] for line in (QUESTIONS / name / "qrels.tsv").read_text().splitlines()[1:])
    asked = read_rows(QUESTIONS / name / "queries.jsonl")[::6]
    right = 0
    for row in asked:
        found = quotes(row["text"], hit(texts[pairs[row["_id"]]]))
        right += any(answer in text for answer in row["answers"] for text in found)
    assert right / len(asked) >= least


CONTRACT = hit(
    "The agreement with Meyer ends after 24 months. The notice period is three months. Subletting is not allowed.",
    "meyer.md",
)
OTHER = hit("The agreement with Schulze ends after 12 months. The notice period is six weeks.", "schulze.md")
CHINESE = hit("承包商的通知期为三十天。承包商没有带薪年假。", "协议.md")


@pytest.mark.parametrize(
    ("statement", "supporting"),
    [
        ("The notice period is three months.", CONTRACT),
        ("The notice period is 3 months.", CONTRACT),
        ("The agreement with Schulze ends after 12 months.", OTHER),
        ("Subletting is not allowed.", CONTRACT),
        ("承包商的通知期为三十天。", CHINESE),
        ("承包商没有带薪年假。", CHINESE),
        ("The notice period is five months.", None),
        ("The agreement with Nowak ends after 24 months.", None),
        ("Schulze's agreement ends after 24 months.", None),
        ("Subletting is allowed.", None),
        ("The agreement with Meyer doesn't end after 24 months.", None),
        ("承包商有带薪年假。", None),
        ("承包商的通知期为六十天。", None),
        ("The moon is made of cheese.", None),
        ("", None),
    ],
)
def test_a_statement_is_supported_where_words_numbers_names_and_negation_agree(
    statement: str, supporting: Hit | None
) -> None:
    assert support(statement, [CONTRACT, OTHER, CHINESE]) is supporting
