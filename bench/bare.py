"""The peer: a LangGraph graph with as many nodes as a turn has, and nothing in them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

NODES = 11  # recall, analyze, research (rewrite, search, rerank, grade, read, distil), answer, verify
EVIDENCE = 9_000  # characters, from the middle of the turn to its end


class _State(TypedDict, total=False):
    at: int
    evidence: str


def _add(graph: StateGraph[_State], number: int) -> str:
    async def node(state: _State) -> _State:
        if number == NODES // 2:
            return {"at": number, "evidence": "evidence " * (EVIDENCE // 9)}
        return {"at": number}

    name = f"n{number}"
    graph.add_node(name, node)
    return name


@contextlib.asynccontextmanager
async def bare(path: Path) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """Runs one turn in a thread; nothing is pruned."""
    graph = StateGraph(_State)
    names = [START, *(_add(graph, number) for number in range(NODES)), END]
    for before, after in zip(names, names[1:], strict=False):
        graph.add_edge(before, after)
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        compiled = graph.compile(checkpointer=saver)

        async def ask(thread: str) -> None:
            config: RunnableConfig = {"configurable": {"thread_id": thread}}
            await compiled.ainvoke({"at": 0, "evidence": ""}, config)

        yield ask
