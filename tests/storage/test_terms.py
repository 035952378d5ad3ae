from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.models import Passage
from storage.terms import LONGEST_TERM, STOP_WORDS, content_terms, cut, digest, indexed_text


def whole(text: str, name: str = "x", headings: tuple[str, ...] = ()) -> Passage:
    return Passage("d", 1, 1, "w", "channel:c", name, 1, 0, len(text), headings, None, "", text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Terminating the contracts", "terminate the contract"),
        ("COVID-19", "COVID19"),
        ("COVID\u201119", "covid-19"),
        ("IL-6", "il6"),
        ("The company's rule", "the company rules"),
        ("The company\u2019s rule", "the company's rule"),
        ("1,000,000 euros", "1000000 euro"),
        ("1'000 francs", "1000 franc"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("ﬁle", "file"),
        ("so\u00adlu\u00adtion", "solution"),
        ("STRASSE", "Straße"),
        ("ﾊﾝﾄﾞﾌﾞｯｸ", "ハンドブック"),
        ("مُحَمَّد", "محمد"),
        ("cafe\u0301", "café"),
    ],
)
def test_what_means_the_same_has_the_same_terms(one: str, other: str) -> None:
    assert cut(one) == cut(other)


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("getUserName", {"getusername", "get", "user", "name"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("max_retry_count", {"max_retry_count", "max", "retri", "count"}),
        ("storage.lance.open", {"storage.lance.open", "storag", "lanc", "open"}),
        ("utf8", {"utf8", "utf", "8"}),
        ("v1.2.3", {"v1.2.3", "v1"}),
        ("3.14", {"3.14"}),
        ("10.0.0.1", {"10.0.0.1"}),
        ("state-of-the-art", {"state", "art"}),
    ],
)
def test_identifiers_are_whole_and_in_parts(identifier: str, parts: set[str]) -> None:
    assert parts <= set(cut(identifier))


def test_a_hash_is_whole_alone() -> None:
    assert cut("9f86d081884c7d65") == ["9f86d081884c7d65"]


def test_scripts_without_spaces_are_bigrams_and_single_characters() -> None:
    assert cut("通知期限") == ["通", "通知", "知", "知期", "期", "期限", "限"]
    assert cut("308分") == ["308", "分"]
    assert cut("ดีที่") == ["ดี", "ดีที่", "ที่"]  # a mark stays on its letter
    assert "부서" in cut("부서는")
    assert cut("𠀀𠀁") == ["𠀀", "𠀀𠀁", "𠀁"]


def test_other_scripts_are_words_with_their_marks() -> None:
    assert cut("हिन्दी में") == ["हिन्दी", "में"]
    assert cut("Срок уведомления") == ["срок", "уведомления"]


def test_content_terms_leave_function_words_out() -> None:
    assert content_terms("What is the notice period for contractors?") == ["notic", "period", "contractor"]
    assert content_terms("Wie lange ist die Kündigungsfrist?")[-1] == "kündigungsfrist"
    assert content_terms("通知期限是多少？") == ["通", "通知", "知", "知期", "期", "期限", "限"]
    assert content_terms("what is it?") == []
    assert {"US", "IT"}.isdisjoint(STOP_WORDS)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What is the harbour master called?", ["harbour", "master"]),
        ("What was the old bridge named", ["old", "bridg"]),
        ("What kind of licence do divers need?", ["licenc", "diver", "need"]),
        ("Which bonds were called?", ["bond", "call"]),
        ("Who was named?", ["name"]),
    ],
)
def test_words_that_ask_for_a_name_or_a_kind_are_left_out_where_they_do(question: str, terms: list[str]) -> None:
    assert content_terms(question) == terms


def test_stop_words_may_be_words_of_another_language_only_where_harmless() -> None:
    for word in ("die", "war", "man", "hat", "may", "us"):
        assert content_terms(word), word


@given(st.text())
@settings(max_examples=500, deadline=None)
def test_a_term_is_never_empty_never_long_and_holds_no_space(text: str) -> None:
    for term in cut(text):
        assert term
        assert len(term) <= 2 * LONGEST_TERM
        assert term.split() == [term]
    assert cut(text) == cut(text)


@given(st.text(alphabet="aB1_.-'’,ß漢ท่ \u0301\u200d"))
@settings(max_examples=500, deadline=None)
def test_joints_and_marks_in_any_order_are_cut(text: str) -> None:
    assert all(term.split() == [term] and term[0] not in "_.-'" for term in cut(text))


def test_lone_surrogates_and_controls_are_no_terms() -> None:
    assert cut("\ud800a\udc00 \0\x1f") == ["a"]
    assert len(digest("\ud800")) == 64


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a_" * 100_000, "a.b-" * 50_000, "漢" * 200_000, "aB" * 100_000, "é" * 99_999]
)
def test_cutting_takes_linear_time(text: str) -> None:
    started = time.perf_counter()
    cut(text)
    assert time.perf_counter() - started < 5


def test_threads_cut_alike() -> None:
    text = "Running employees' contracts were terminated in several countries " * 200
    alone = cut(text)
    with ThreadPoolExecutor(4) as threads:
        assert all(terms == alone for terms in threads.map(cut, [text] * 8))


def test_search_sees_the_name_and_the_headings() -> None:
    seen = indexed_text(whole("Thirty days.", "Contract_Berlin-2024.pdf", ("Part II", "Notice")))
    assert seen == "Contract Berlin 2024\nPart II / Notice\nThirty days."


def test_a_heading_that_stands_in_the_text_is_seen_once() -> None:
    assert indexed_text(whole("# Notice\n\nThirty days.", "image.png", ("Notice",))) == "# Notice\n\nThirty days."


@pytest.mark.parametrize("name", ["image.png", "Untitled", "IMG_2041.jpg", "4983", "a3f9c2d8e1b4.pdf", "", "?.txt"])
def test_a_name_that_means_nothing_is_not_seen(name: str) -> None:
    assert indexed_text(whole("Thirty days.", name)) == "Thirty days."


def test_a_name_in_another_script_is_seen() -> None:
    assert indexed_text(whole("三十天。", "员工手册.pdf")) == "员工手册\n三十天。"
