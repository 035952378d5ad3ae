"""However long the journal and however many the files: what a turn asks of the database is found by an index."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from storage.embeddings import BundledEmbedder
from tests.agent.library import open_library
from tests.bot.core import MemoryPlatform, open_core

GROWING = ("journal", "messages", "changes", "documents", "sections", "clarifications", "tombstones")
SCANNED = re.compile(rf"SCAN (?:{'|'.join(GROWING)}|earlier|file)\b(?! USING INDEX (?:waiting|one_at_a_time|one_open))")


@pytest.fixture
def statements() -> Iterator[list[tuple[str, Any]]]:
    """What is asked of any database meanwhile, with its parameters."""
    made: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if not many and statement.startswith(("SELECT", "UPDATE", "DELETE")):
            made.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield made
    event.remove(Engine, "before_cursor_execute", note)


async def test_no_statement_of_a_turn_reads_a_growing_table(
    tmp_path: Path, embedder: BundledEmbedder, statements: list[tuple[str, Any]]
) -> None:
    async with (
        open_library(tmp_path, embedder) as library,
        open_core(library, tmp_path, embedder, MemoryPlatform()) as core,
    ):
        await library.add("leave.md", {"Leave": "Employees have 28 days of annual leave."})
        statements.clear()
        await core.say("How many days of annual leave do employees have?", "m1")
        await core.say("and for contractors?", "m2")
        await core.settled("m1", "m2")
    made = list(statements)
    assert len(made) > 40
    (database,) = tmp_path.glob("app.sqlite")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        read_whole = {
            statement: [line for *_, line in plan if SCANNED.search(line) and "max(" not in statement]
            for statement, parameters in made
            for plan in [connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()]
        }
    assert {statement: lines for statement, lines in read_whole.items() if lines} == {}
