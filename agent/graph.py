"""The graph of a turn. Each model decision and each finding is a checkpoint of its own."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.context import Context
from agent.nodes import after_analyze, analyze, answer, chat, clarify, recall, verify
from agent.research import research
from agent.state import State

Turns = CompiledStateGraph[State, Context, Any, Any]


def turn_graph(saver: BaseCheckpointSaver[Any]) -> Turns:
    graph = StateGraph(State, context_schema=Context)
    graph.add_node(recall)
    graph.add_node(analyze)
    graph.add_node(chat)
    graph.add_node(clarify)
    graph.add_node(research)
    graph.add_node(answer)
    graph.add_node(verify)

    graph.add_edge(START, "recall")
    graph.add_edge("recall", "analyze")
    graph.add_conditional_edges("analyze", after_analyze, ["chat", "clarify", "research"])
    graph.add_edge("chat", END)
    graph.add_edge("clarify", "analyze")
    graph.add_edge("research", "answer")
    graph.add_edge("answer", "verify")
    graph.add_edge("verify", END)
    return graph.compile(checkpointer=saver)
