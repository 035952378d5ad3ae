from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from storage.checkpoints import Checkpoints, fence, open_checkpoints
from storage.errors import DatabaseDamaged, LeaseLost


class State(TypedDict, total=False):
    turn: str
    notes: Annotated[list[str], lambda known, new: [] if new is None else [*(known or []), *new]]
    choice: dict[str, Any]


async def first(state: State) -> dict[str, Any]:
    return {"notes": [f"{state['turn']} evidence {'x' * 4000}"]}


async def ask(state: State) -> dict[str, Any]:
    return {"choice": interrupt({"text": "which?"})}


async def last(state: State) -> dict[str, Any]:
    return {"notes": None}


def graph(checkpoints: Checkpoints, *, asking: bool = False) -> Any:
    graph = StateGraph(State)
    graph.add_node(first)
    graph.add_node(ask)
    graph.add_node(last)
    graph.add_edge(START, "first")
    graph.add_edge("first", "ask" if asking else "last")
    graph.add_edge("ask", "last")
    graph.add_edge("last", END)
    return graph.compile(checkpointer=checkpoints.saver)


def thread(name: str = "t") -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


async def run(turns: Any, given: Any, name: str = "t") -> None:
    await turns.ainvoke(given, thread(name), durability="sync")


@pytest.fixture
async def checkpoints(tmp_path: Path) -> AsyncIterator[Checkpoints]:
    async with open_checkpoints(tmp_path / "checkpoints.sqlite") as opened:
        yield opened


def rows(path: Path) -> tuple[int, int]:
    with sqlite3.connect(path) as connection:
        count = connection.execute("SELECT (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM writes)")
        checkpoints, writes = count.fetchone()
        return checkpoints, writes


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


async def test_pruning_leaves_one_checkpoint_and_the_thread_goes_on(checkpoints: Checkpoints, tmp_path: Path) -> None:
    turns = graph(checkpoints)
    for turn in range(20):
        await run(turns, {"turn": str(turn), "notes": None})
        await checkpoints.prune("t")
        assert rows(tmp_path / "checkpoints.sqlite") == (1, 0)
    assert (await turns.aget_state(thread())).values == {"turn": "19", "notes": []}
    assert (tmp_path / "checkpoints.sqlite").stat().st_size < 150_000


async def test_pruned_text_is_on_the_disk_no_more(checkpoints: Checkpoints, tmp_path: Path) -> None:
    await run(graph(checkpoints), {"turn": "one", "notes": None})
    assert b"one evidence" in on_disk(tmp_path)
    await checkpoints.prune("t")
    assert b"one evidence" not in on_disk(tmp_path)


async def test_pruning_leaves_other_threads_alone(checkpoints: Checkpoints, tmp_path: Path) -> None:
    turns = graph(checkpoints)
    await run(turns, {"turn": "a"}, "a")
    before = rows(tmp_path / "checkpoints.sqlite")
    await run(turns, {"turn": "b"}, "b")
    await checkpoints.prune("b")
    assert rows(tmp_path / "checkpoints.sqlite") == (before[0] + 1, before[1])


async def test_a_pending_interrupt_outlives_pruning_and_reopening(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpoints(path) as opened:
        await run(graph(opened, asking=True), {"turn": "1", "notes": None})
        await opened.prune("t")
    async with open_checkpoints(path) as opened:
        turns = graph(opened, asking=True)
        assert (await turns.aget_state(thread())).interrupts[0].value == {"text": "which?"}
        await run(turns, Command(resume={"text": "this"}))
        assert (await turns.aget_state(thread())).values["choice"] == {"text": "this"}


async def test_forgetting_removes_the_thread(checkpoints: Checkpoints, tmp_path: Path) -> None:
    await run(graph(checkpoints), {"turn": "one"})
    await checkpoints.forget("t")
    assert rows(tmp_path / "checkpoints.sqlite") == (0, 0)
    await checkpoints.forget("never seen")
    await checkpoints.prune("never seen")


async def test_a_lost_lease_writes_nothing(checkpoints: Checkpoints, tmp_path: Path) -> None:
    async def lost() -> None:
        raise LeaseLost

    await checkpoints.prune("t")  # makes the tables
    token = fence.set(lost)
    with pytest.raises(LeaseLost):
        await run(graph(checkpoints), {"turn": "one"})
    with pytest.raises(LeaseLost):
        await checkpoints.prune("t")
    fence.reset(token)
    assert rows(tmp_path / "checkpoints.sqlite") == (0, 0)


@pytest.mark.parametrize("allowed", [1, 2, 3, 4, 5])
async def test_a_lease_lost_in_the_middle_ends_the_run(checkpoints: Checkpoints, tmp_path: Path, allowed: int) -> None:
    passed = 0

    async def soon_lost() -> None:
        nonlocal passed
        passed += 1
        if passed > allowed:
            raise LeaseLost

    token = fence.set(soon_lost)
    with pytest.raises(LeaseLost):
        await run(graph(checkpoints), {"turn": "one"})
    fence.reset(token)
    assert sum(rows(tmp_path / "checkpoints.sqlite")) <= 2 * allowed


@pytest.mark.parametrize("damage", ["text", "middle", "header"])
async def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoints.sqlite"
    async with open_checkpoints(path) as opened:
        for number in range(20):
            await run(graph(opened), {"turn": "one"}, str(number))
        await opened.prune("0")
    broken = bytearray(path.read_bytes())
    if damage == "text":
        broken = bytearray(b"this is no database, " * 500)
    elif damage == "middle":
        broken[4096 : len(broken) - 4096] = b"\xff" * (len(broken) - 8192)
    else:
        broken[:16] = b"\0" * 16
    path.write_bytes(broken)
    with pytest.raises(DatabaseDamaged, match="checkpoints.sqlite.*Move the file away"):
        async with open_checkpoints(path):
            pass
    assert path.read_bytes() == broken


@dataclass(frozen=True)
class Unlisted:
    """A type that no checkpoint should bring to life."""

    text: str


async def test_unknown_types_come_back_as_plain_values(checkpoints: Checkpoints) -> None:
    serde = checkpoints.saver.serde
    assert serde.loads_typed(serde.dumps_typed({"a": [1, "b", None]})) == {"a": [1, "b", None]}
    assert not isinstance(serde.loads_typed(serde.dumps_typed(Unlisted("x"))), Unlisted)
