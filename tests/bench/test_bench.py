"""Each measurement runs on little; what its figures are, only a whole run tells."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import ambiguity, answers, files, growth, retrieval, search, start, turn
from bench.clock import percentile
from bench.table import ROOT, Figure, Options, markdown
from storage.models import Hit
from tests.bench.sets import write_sets


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Nothing of what is measured on is there."""
    return Options(tmp_path / "qa", tmp_path / "files", tmp_path / "vectors.npz", quick=True, sets=())


@pytest.fixture
def with_sets(options: Options) -> Options:
    write_sets(options.data)
    return options


def named(figures: list[Figure], what: str) -> Figure:
    (found,) = [figure for figure in figures if what in figure.what]
    return found


async def test_retrieval_looks_for_documents_for_answers_and_for_excerpts(with_sets: Options) -> None:
    sets = ["xquad_en", "covidqa_longdoc", "chroma_chunking"]
    figures = await retrieval.measure(with_sets.of(sets))
    assert [figure.value for figure in figures if "hybrid" in figure.what] == [1.0, 1.0, 1.0]
    assert all(figure.holds for figure in figures if "hybrid" in figure.what)


async def test_an_answer_beyond_the_first_five_passages_is_no_hit(with_sets: Options) -> None:
    judged = retrieval.load_judged("covidqa_longdoc", with_sets.data / "covidqa_longdoc")
    hits = [Hit(passage, 1.0) for passage in judged.passages]
    (question,) = judged.questions
    holding = [hit for hit in hits if question.judge([hit])]
    assert holding, "a passage holds the answer"
    others = [hit for hit in hits if hit not in holding]
    assert question.judge([*others[:4], *holding]) == 1.0
    assert question.judge([*others[:5], *holding]) == 0.0


async def test_of_an_excerpt_the_share_that_was_found_counts(with_sets: Options) -> None:
    judged = retrieval.load_judged("chroma_chunking", with_sets.data / "chroma_chunking")
    (question,) = judged.questions
    parts = [question.judge([Hit(passage, 1.0)]) for passage in judged.passages]
    assert 0 < max(parts) < 1
    assert question.judge([Hit(passage, 1.0) for passage in judged.passages[:5]]) == pytest.approx(1.0)


async def test_answers_are_looked_for_with_and_without_their_document(with_sets: Options) -> None:
    figures = await answers.measure(with_sets.of(["xquad_en"]))
    assert named(figures, "found where the answer is there").value == 1.0
    assert named(figures, "quotations that hold the answer").value == 1.0


async def test_a_set_that_is_not_there_is_left_out_with_the_reason(options: Options) -> None:
    for module in (retrieval, answers):
        (figure,) = await module.measure(options.of(["xquad_en"]))
        assert (figure.value, figure.holds) == (None, None)
        assert figure.note == "the set is not there"


async def test_ambiguity_is_measured(options: Options) -> None:
    figures = await ambiguity.measure(options)
    assert named(figures, "precision").value == 1.0


async def test_a_turn_is_measured_beside_a_bare_graph(options: Options) -> None:
    figures = await turn.measure(options)
    whole, beside = named(figures, "passages, p50"), named(figures, "beside search and embedding")
    assert whole.value and beside.value and 0 < beside.value < whole.value
    assert named(figures, "to bare LangGraph").value


async def test_what_a_turn_leaves_is_measured_beside_a_bare_graph(options: Options) -> None:
    figures = await growth.measure(options)
    assert all(figure.value for figure in figures)


async def test_files_are_read_and_embedded(options: Options) -> None:
    figures = await files.measure(options)
    assert named(figures, "resident in its child").value
    assert named(figures, "PDFs with embedding").value
    assert named(figures, "to the bare ONNX session").value


async def test_search_is_measured_at_each_size(options: Options) -> None:
    figures = await search.measure(options)
    assert [figure.what.split(",")[1] for figure in figures] == [" p50", " p95", " p50", " p95"]
    assert all(figure.value for figure in figures)


async def test_a_start_is_measured_beside_its_imports(options: Options) -> None:
    figures = await start.measure(options)
    assert named(figures, "to bare import").value
    assert named(figures, "`--help`").value == 0


def test_all_of_it_is_one_table(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "bench", "--quick", "--json", "--only", "retrieval", f"--data={tmp_path}"]
    run = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert {line["command"] for line in lines} == {"python -m bench.retrieval"}
    assert len(lines) == len(retrieval.SETS)


def test_a_module_that_ends_badly_is_a_row_too(tmp_path: Path) -> None:
    broken = tmp_path / "vectors.npz"
    broken.write_text("not a file of vectors")
    program = [sys.executable, "-m", "bench", "--quick", "--json", "--only", "ambiguity", f"--cache={broken}"]
    run = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = [json.loads(line) for line in run.stdout.splitlines()]
    assert (line["what"], line["value"], line["note"]) == ("ambiguity", None, "ended with exit status 1")


def test_a_figure_holds_within_its_limits_alone() -> None:
    assert Figure("a", 1.0, least=1.0).holds is True
    assert Figure("a", 0.9, least=1.0).holds is False
    assert Figure("a", 1.1, most=1.0).holds is False
    assert Figure("a", 1.0).holds is None
    assert Figure("a", None, least=1.0).holds is None
    table = markdown([("python -m bench.a", Figure("what", 0.9, "KB", least=1.0, note="beside"))])
    assert table.splitlines()[-1] == "| what | 0.900 KB | ≥ 1.00 | **no** | beside | `python -m bench.a` |"


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([5.0, 1.0, 4.0, 2.0, 3.0], 95) == 5.0
    assert percentile([5.0, 1.0, 4.0, 2.0, 3.0], 50) == 3.0
    assert percentile([1.0], 95) == 1.0


def test_a_slope_is_what_one_turn_adds() -> None:
    assert growth.slope([(0, 8192.0), (10, 12288.0), (20, 16384.0)]) == pytest.approx(409.6)


def test_a_ranking_scores_by_where_the_right_document_stands() -> None:
    assert retrieval.mrr_at_10(["b", "a"], {"a": 1}) == 0.5
    assert retrieval.ndcg_at_10(["b", "a"], {"a": 1}) == pytest.approx(0.6309, abs=1e-4)
    assert retrieval.recall_at_20(["b", "a"], {"a": 1, "c": 1}) == 0.5
    assert answers.area_under_curve([0.9, 0.5], [0.5, 0.1]) == 0.875
