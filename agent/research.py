"""Research for one self-contained question: from the question to the passages that an answer may cite.

It calls no model and keeps no checkpoint of its own: what it found is stored as the turn's finding, the rest is done
again after a crash.
"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.context import Context
from agent.evidence import as_finding, as_nearest, chosen_passages, read_sections
from agent.outline import outline, wish_of
from agent.rerank import RerankUnavailable
from agent.state import Asked, Json, Researched, ResearchState, Wish
from agent.tracing import traced

READ_BY_MODEL = 0.1  # confidence from which on a model reads for itself what the grade doubts


async def research(state: Asked, runtime: Runtime[Context]) -> Json:
    found: Json = await _RESEARCH.ainvoke(state, _UNSTORED, context=runtime.context)
    return {**found, "trace": [{**entry, "question": state["order"] + 1} for entry in found["trace"]]}


def _research_graph() -> CompiledStateGraph[Any, Context, Any, Any]:
    graph = StateGraph(ResearchState, context_schema=Context, output_schema=Researched)
    graph.add_node(rewrite)
    graph.add_node(sketch)
    graph.add_node(search)
    graph.add_node(rerank)
    graph.add_node(grade)
    graph.add_node(widen)
    graph.add_node(read)
    graph.add_node(distil)

    graph.add_edge(START, "rewrite")
    graph.add_conditional_edges("rewrite", after_rewrite, ["sketch", "search"])
    graph.add_edge("sketch", "distil")
    graph.add_edge("search", "rerank")
    graph.add_edge("rerank", "grade")
    graph.add_conditional_edges("grade", after_grade, ["read", "widen", "distil"])
    graph.add_edge("widen", "search")
    graph.add_edge("read", "distil")
    graph.add_edge("distil", END)
    return graph.compile(checkpointer=False)


def after_rewrite(state: ResearchState) -> str:
    return "sketch" if state["wish"] else "search"


def after_grade(state: ResearchState) -> str:
    if state["found"]:
        return "read"
    return "widen" if _may_widen(state) else "distil"


@traced
async def rewrite(state: ResearchState, runtime: Runtime[Context]) -> Json:
    """Look first where the question points to, unless a person has chosen already."""
    if state["chosen"]:
        return {"query": state["question"], "only": True, "wish": None}
    narrowed = await runtime.context.search.narrowed(state["question"], state["documents"])
    return {
        "query": narrowed.query,
        "documents": list(narrowed.documents),
        "only": narrowed.only,
        "wish": wish_of(narrowed.rest) if narrowed.only else None,
    }


@traced
async def sketch(state: ResearchState, runtime: Runtime[Context]) -> Json:
    """The documents are asked for as they are: nothing is searched."""
    context = runtime.context
    await context.status("reading the document")
    evidence, left_out = await outline(state["documents"], state["wish"] or Wish(), context)
    return {
        "evidence": evidence,
        "left_out": left_out,
        "nearest": as_nearest(await context.search.documents(state["documents"])),
        "confidence": 1.0 if evidence else 0.0,
        "limits": [],
        "trace": [{"parts": len(evidence), "left_out": left_out}],
    }


@traced
async def search(state: ResearchState, runtime: Runtime[Context]) -> Json:
    await runtime.context.status(f"searching: {_short(state['question'])}")
    found = await runtime.context.search.passages(state["query"], state["documents"])
    return {
        "hits": list(found.hits),
        "limits": list(found.limits),
        "degraded": list(found.degraded),
        "trace": [{"hits": len(found.hits)}],
    }


@traced
async def rerank(state: ResearchState, runtime: Runtime[Context]) -> Json:
    parts, left = runtime.context.parts, runtime.context.budget.seconds_left
    if parts.reranker is None or not state["hits"]:
        return {}
    try:
        seconds = min(parts.limits.rerank_seconds, left)
        return {"hits": await parts.reranker.rerank(state["query"], state["hits"], seconds)}
    except RerankUnavailable:
        return {"degraded": ["the reranker could not be reached"]}


@traced
async def grade(state: ResearchState, runtime: Runtime[Context]) -> Json:
    verdict = runtime.context.search.grade(state["query"], state["hits"])
    sure = verdict.found or (state["chosen"] and bool(state["documents"]) and bool(state["hits"]))
    is_read = runtime.context.calls is not None and verdict.confidence >= READ_BY_MODEL and not _may_widen(state)
    return {
        "found": sure or is_read,
        "doubtful": is_read and not sure,
        "confidence": verdict.confidence,
        "trace": [{"found": sure, "confidence": round(verdict.confidence, 3)}],
    }


def _may_widen(state: ResearchState) -> bool:
    return bool(state["documents"]) and not state["chosen"] and not state["only"]


async def widen(state: ResearchState) -> Json:
    """It isn't where the question pointed to: look everywhere."""
    return {"documents": []}


@traced
async def read(state: ResearchState, runtime: Runtime[Context]) -> Json:
    """The sections of the best passages, as the catalog has them now."""
    hits = chosen_passages(state["hits"], state["passages"], each=len(state["documents"]) > 1)
    await runtime.context.status(f"reading {len(hits)} passages")
    evidence = await read_sections(hits, runtime.context)
    return {"evidence": evidence, "trace": [{"passages": len(evidence)}]}


@traced
async def distil(state: ResearchState) -> Json:
    """What is known now, in the form that the answer is written from."""
    return {"findings": [as_finding(state)]}


_RESEARCH = _research_graph()
_UNSTORED: RunnableConfig = {"configurable": {"__pregel_durability": "async"}}
"""A graph without checkpoints fails where it inherits the turn's durability "sync" (langgraph 1.2.24)."""


def _short(question: str) -> str:
    return question if len(question) <= 80 else f"{question[:79]}…"
