"""Question sets of a few lines, in the forms of the real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

TOWNS = {
    "Lund": "The old library of Lund was built in 1907 and holds two million books.",
    "Graz": "The clock tower of Graz stands on a hill and shows the hours with its long hand.",
    "Porto": "The iron bridge of Porto was opened in 1886 and carries trains over the river Douro.",
}
QUESTIONS = {
    "Lund": ("When was the library of Lund built?", "1907"),
    "Graz": ("What shows the hours on the clock tower of Graz?", "long hand"),
    "Porto": ("What does the iron bridge of Porto carry?", "trains"),
}
ANSWER = "The harbour master is called Ingrid Solberg."


def write_sets(data: Path) -> None:
    _write_documents(data / "xquad_en")
    _write_answers(data / "covidqa_longdoc")
    _write_excerpts(data / "chroma_chunking")


def _write_documents(folder: Path) -> None:
    _write(folder / "corpus.jsonl", [{"_id": id, "title": id, "text": text} for id, text in TOWNS.items()])
    asked = [{"_id": f"q{id}", "text": text, "answers": [answer]} for id, (text, answer) in QUESTIONS.items()]
    _write(folder / "queries.jsonl", asked)
    _write_judgements(folder, {f"q{id}": id for id in QUESTIONS})


def _write_answers(folder: Path) -> None:
    text = f"{_pages(6)}\n\n{ANSWER}\n\n{_pages(6)}"
    _write(folder / "corpus.jsonl", [{"_id": "harbour", "title": "The harbour", "text": text}])
    start = text.index(ANSWER)
    question = {"_id": "q", "text": "Who is the harbour master?", "doc": "harbour", "answer": ANSWER}
    _write(folder / "queries.jsonl", [{**question, "answer_start": start}])
    _write_judgements(folder, {"q": "harbour"})


def _write_excerpts(folder: Path) -> None:
    text = f"{_pages(4)}\n\n{ANSWER}"
    (folder / "corpora").mkdir(parents=True)
    (folder / "corpora" / "harbour.md").write_text(text)
    first, last = text.index("Crane 0"), text.index(ANSWER)
    ranges = [
        {"start_index": first, "end_index": first + 20, "content": text[first : first + 20]},
        {"start_index": last, "end_index": last + len(ANSWER), "content": ANSWER},
    ]
    question = "Who is the harbour master, and what does crane 0 lift?"
    _write(folder / "queries.jsonl", [{"_id": "q", "text": question, "corpus_id": "harbour", "references": ranges}])


def _pages(many: int) -> str:
    """Some 200 tokens each."""
    lines = [f"Crane {number} lifts boxes of tin and copper from the ships at berth {number}." for number in range(10)]
    return "\n\n".join(" ".join(lines) for _ in range(many))


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_judgements(folder: Path, relevant: Mapping[str, str]) -> None:
    lines = [f"{question}\t{document}\t1" for question, document in relevant.items()]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
