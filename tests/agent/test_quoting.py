from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting import quote, scored_lines, sentences, support
from agent.shapes import Shape, asked_shape, holds
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


def test_what_was_called_is_no_question_of_a_name() -> None:
    bonds = hit("The bonds of 2014 and the bonds of 2019 pay 3 percent. The loans of 2016 were called in March.")
    assert quotes("Which were called?", bonds) == ["The loans of 2016 were called in March."]


def test_a_sentence_that_holds_the_kind_of_value_that_is_asked_for_is_preferred() -> None:
    passage = hit(
        "The notice period is explained to everyone on the first day. The notice period amounts to three months."
    )
    assert quotes("How long is the notice period?", passage)[0].endswith("three months.")


@pytest.mark.parametrize(
    ("question", "other", "answer"),
    [
        ("How often are phones replaced?", "Phones of 14 are replaced.", "Phones are replaced every three years."),
        ("How often is the server saved?", "The server is saved to 3 disks.", "The server is saved nightly."),
        ("How frequently are prices reviewed?", "Ann reviewed 40 prices.", "Ann reviewed prices twice a year."),
        ("How often was Ann elected?", "Ann was elected by 40 people.", "Ann was elected four times by people."),
        ("Wie oft wird geprüft?", "Geprüft wird von 12 Leuten.", "Geprüft wird jährlich, und von Leuten."),
        ("手机多久更换一次？", "手机由12人更换。", "手机每三年更换。"),
    ],
)  # fmt: skip
def test_how_often_asks_for_no_mere_number(question: str, other: str, answer: str) -> None:
    assert asked_shape(question) is Shape.FREQUENCY
    assert holds(Shape.FREQUENCY, answer, question) and not holds(Shape.FREQUENCY, other, question)
    best = max(scored_lines(question, [hit(other, "one.md"), hit(answer, "two.md")]), key=lambda line: line.score)
    assert best.text == answer


def test_how_long_and_how_many_are_no_questions_of_how_often() -> None:
    assert asked_shape("How long are phones kept?") is Shape.DURATION
    assert asked_shape("How many phones are there?") is Shape.NUMBER
    assert asked_shape("试用期多久？") is Shape.DURATION


def test_a_sentence_that_refers_back_comes_with_what_it_refers_to() -> None:
    passage = hit("The Meyer lease was signed in 2019. It ends on 31 May 2027. Parking costs extra in the yard behind.")
    assert quotes("When does the Meyer lease end?", passage)[0].startswith("The Meyer lease")
    assert "31 May 2027" in quotes("When does the Meyer lease end?", passage)[0]


TABLE = (
    "In euros:\n\n| Item | Amount | Owner |\n|---|---|---|\n| Travel | 52,000 | Ann |\n| Training | 18,000 | Bob |\n"
)


def shown(question: str, *hits: Hit) -> list[str]:
    return [each.shown for each in quote(question, hits)]


def test_a_row_of_a_table_is_quoted_alone_and_shown_with_the_table_s_head() -> None:
    head = "| Item | Amount | Owner |\n|---|---|---|"
    assert quotes("What is the amount for training?", hit(TABLE)) == ["| Training | 18,000 | Bob |"]
    assert shown("What is the amount for training?", hit(TABLE)) == [f"{head}\n| Training | 18,000 | Bob |"]


def test_a_row_far_from_the_head_is_shown_with_it_and_without_those_between() -> None:
    head = "| Item | Amount | Owner |\n|---|---|---|\n"
    rows = "".join(f"| Item number {number} of the list | {number * 100} | Owner {number} |\n" for number in range(40))
    passage = hit(f"{head}{rows}| Training | 18,000 | Bob |\n")
    assert quotes("What is the amount for training?", passage) == ["| Training | 18,000 | Bob |"]
    assert shown("What is the amount for training?", passage) == [f"{head}| Training | 18,000 | Bob |"]


def test_the_row_of_one_model_says_nothing_of_the_others() -> None:
    passage = hit("Prices:\n\n| Model | Price |\n|---|---|\n| BW-100 | 19.90 |\n| BW-200 | 29.90 |\n| BW-300 | 39.90 |")
    assert quotes("How much is the BW-200?", passage) == ["| BW-200 | 29.90 |"]


def test_rows_that_hold_the_same_of_the_question_are_quoted_together() -> None:
    passage = hit(
        "| Country | City | Rate |\n|---|---|---|\n| France | Paris | 58 |\n| Japan | Tokyo | 66 |\n"
        "| Japan | Osaka | 33 |\n| Spain | Madrid | 42 |"
    )
    assert quotes("What is the rate in Japan?", passage) == ["| Japan | Tokyo | 66 |\n| Japan | Osaka | 33 |"]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "Which discounts are there?",
            "## Conditions\n\n| Quantity from | Discount |\n|---|---|\n| 10 | 3% |\n| 50 | 7% |",
            "7%",
        ),
        (
            "What should happen when a student falls ill?",
            "**Student falls ill**\n\nThe teacher calls the parents and stays with the child.",
            "calls the parents",
        ),
        ("What about leave at short notice?", "__Leave at short notice__\nAsk your lead by phone.", "Ask your lead"),
        ("交通怎么报销？", "第一章 交通\n\n出租车凭发票实报实销。\n\n第二章 住宿\n\n每晚不超过四百元。", "凭发票"),
        ("第3条 保密义务是什么？", "第3条 保密义务\n双方不得泄露商业秘密。", "不得泄露"),
        ("What is the scope of insurance?", "## Scope of insurance\n\n" + "It covers " + "a, " * 200 + "b.", "a, b."),
    ],
)
def test_what_only_leads_to_an_answer_comes_with_what_follows(question: str, text: str, expected: str) -> None:
    assert expected in quotes(question, hit(text))[0]


@pytest.mark.parametrize("last", ["**Parking**", "第四章 停车", "## Parking", "| Parking | Cost |\n|---|---|"])
def test_what_leads_to_nothing_is_no_quote(last: str) -> None:
    passage = hit(f"The parking of cars costs 5 euros a day. The canteen is downstairs.\n\n{last}")
    for question in ("What does parking cost?", "停车"):
        assert all(last.split("\n")[0] not in text for text in quotes(question, passage))


def page(number: int, text: str, name: str = "report.pdf") -> Hit:
    made = hit(text, name)
    return replace(made, passage=replace(made.passage, number=number, page=number))


def test_running_heads_and_feet_are_no_quotes() -> None:
    said = ["The canteen is downstairs.", "Plants are watered weekly.", "Notice periods are two months."]
    pages = [
        page(number, f"Notice period report 2024, page {number + 2}\n\n{text}\n\nNotice period of Acme Ltd")
        for number, text in enumerate(said, start=1)
    ]
    found = quotes("What is the notice period in the Acme report?", *pages)
    assert found and all("page" not in text and "Ltd" not in text for text in found)
    assert any("Notice periods are two months." in text for text in found)


def test_what_stands_on_two_pages_or_tells_different_values_is_no_running_head() -> None:
    same = [page(number, f"The notice period is long.\n\nText {number} on plants.") for number in (1, 2)]
    assert quotes("What is the notice period?", *same)[0].startswith("The notice period is long.")
    values = [
        page(number, f"The notice period is {days} days.\n\nMore.") for number, days in ((1, 90), (2, 14), (3, 30))
    ]
    assert len(quotes("What is the notice period?", *values)) == 3


def test_a_table_head_that_is_said_again_before_a_passage_is_no_part_of_a_quote() -> None:
    head, row = "| Item | Amount |\n|---|---|\n", "| Training | 18,000 |"
    whole = hit(head + row)
    passage = replace(whole, passage=replace(whole.passage, start=500, end=500 + len(row)))
    quoted = quote("What is the amount for training?", [passage])[0]
    assert quoted.text == row
    assert quoted.shown == head + row
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
