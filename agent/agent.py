"""The agent: one turn in, its outcome out, whatever happened to an earlier attempt at the same turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict

from agent.budget import Budget
from agent.composing import outcome_of, quotations
from agent.context import Context, Parts, Search
from agent.graph import turn_graph
from agent.nodes import usage_of
from agent.outcomes import Answer, Clarification, Emit, Option, Status, Step, Usage
from agent.state import NOTHING_SPENT, SCHEMA, Json, Spent, State, beginning
from agent.state import Choice as StoredChoice
from agent.texts import texts_for
from storage.checkpoints import Checkpoints
from storage.models import Scope
from storage.transcript import Place

_log = logging.getLogger(__name__)


class Choice(BaseModel):
    """The answer to a clarification: an option that was clicked, counted from 0, or words."""

    model_config = ConfigDict(frozen=True)

    text: str = ""
    option: int | None = None


class TurnRequest(BaseModel):
    """`agent_thread` is LangGraph's thread id. `choice` makes the turn the answer to an open clarification."""

    model_config = ConfigDict(frozen=True)

    turn: str
    agent_thread: str
    platform: str
    workspace: str
    channel: str
    thread: str
    message: str
    user: str
    text: str
    scope_audiences: tuple[str, ...]
    model: str = ""
    attached: tuple[str, ...] = ()
    choice: Choice | None = None


class Agent:
    def __init__(self, checkpoints: Checkpoints, parts: Parts) -> None:
        self._checkpoints = checkpoints
        self._parts = parts
        self._graph = turn_graph(checkpoints.saver)

    async def run(self, request: TurnRequest, emit: Emit) -> Answer | Clarification:
        """See this turn to its outcome. A turn that was begun before goes on from its last checkpoint.

        Raises LeaseLost where the worker's lease was taken over, StoreUnavailable where nothing can be searched.
        """
        await emit(Status(text="reading the question"))
        kept = await self._kept(request.agent_thread)
        if not kept.ended(request.turn):
            start, spent = kept.start(request)
            if not await self._timely(start, request.agent_thread, self._context(request, emit, spent)):
                return await self._out_of_time(request, emit)
            kept = await self._kept(request.agent_thread)
        outcome = kept.outcome()
        if isinstance(outcome, Clarification):
            await self._checkpoints.prune(request.agent_thread)
        return outcome

    async def forget(self, agent_thread: str) -> None:
        """Once its answer is on record, nothing of a turn is needed here; what was said is in the transcript."""
        await self._checkpoints.forget(agent_thread)

    async def forget_all_but(self, agent_threads: Collection[str]) -> None:
        """While none begins."""
        await self._checkpoints.forget_all_but(agent_threads)

    async def _kept(self, agent_thread: str) -> _Kept:
        """What the checkpoints know of this thread; nothing where they can't be read any more."""
        try:
            snapshot = await self._graph.aget_state(_config(agent_thread))
        except ValueError:
            _log.warning("the checkpoint of %s can't be read: its turn is begun anew", agent_thread)
            await self._checkpoints.forget(agent_thread)
            return _Kept({}, ())
        if snapshot.values.get("schema") != SCHEMA:
            return _Kept({}, ())
        return _Kept(cast(State, snapshot.values), snapshot.next)

    def _context(self, request: TurnRequest, emit: Emit, spent: Spent) -> Context:
        parts = self._parts
        scope = Scope(request.workspace, frozenset(request.scope_audiences))
        budget = Budget(parts.limits, spent)
        return Context(
            parts=parts,
            place=Place(request.platform, request.workspace, request.channel, request.thread),
            message=request.message,
            scope=scope,
            text=request.text,
            search=Search(parts, scope, request.attached),
            budget=budget,
            calls=parts.models.calls(request.model, budget) if parts.models else None,
            emit=emit,
        )

    async def _timely(self, start: Json | Command[Any] | None, agent_thread: str, context: Context) -> bool:
        """Run the graph to its end or its question back; False where time ran out."""
        try:
            async with asyncio.timeout(self._parts.limits.seconds) as bound:
                await self._drive(start, agent_thread, context)
        except TimeoutError:
            if not bound.expired():
                raise
            return False
        return True

    async def _drive(self, start: Json | Command[Any] | None, agent_thread: str, context: Context) -> None:
        updates = self._graph.astream(
            start, _config(agent_thread), context=context, stream_mode="updates", durability="sync"
        )
        async with aclosing(updates) as steps:  # type: ignore[type-var]
            async for step in steps:
                for update in step.values():
                    for entry in (update.get("trace") or ()) if isinstance(update, dict) else ():
                        await context.emit(Step(name=entry["node"], detail=entry))

    async def _out_of_time(self, request: TurnRequest, emit: Emit) -> Answer:
        """What is known by now, quoted. Nothing is left to go on from."""
        kept = await self._kept(request.agent_thread)
        usage, findings = Usage(), []
        if kept.values.get("turn") == request.turn:
            usage, findings = usage_of(kept.values), kept.values["findings"]
        late = texts_for(request.text).out_of_time
        draft = await quotations(findings, [late], self._context(request, emit, NOTHING_SPENT))
        await self._checkpoints.forget(request.agent_thread)
        return outcome_of(draft, (), usage)


@dataclass(frozen=True)
class _Kept:
    """The newest checkpoint of a thread. `following` are the nodes that come next in it."""

    values: State
    following: tuple[str, ...]

    @property
    def waiting(self) -> bool:
        """At a clarification, asked or about to be, whose answer isn't there yet."""
        held = self.values
        return held.get("pending") is not None and held.get("choice") is None and held.get("outcome") is None

    def ended(self, turn: str) -> bool:
        """An empty `following` doesn't tell: so it is, too, where a node's work is stored and its checkpoint isn't."""
        return self.values.get("turn") == turn and (self.waiting or self.values.get("outcome") is not None)

    def start(self, request: TurnRequest) -> tuple[Json | Command[Any] | None, Spent]:
        """With what the graph is started, and what this turn has spent before."""
        if self.values.get("turn") == request.turn:
            return None, self.values["usage"]
        choice = request.choice
        if choice is None:
            return beginning(request.turn, None), NOTHING_SPENT
        given: StoredChoice = {"text": choice.text, "option": choice.option, "turn": request.turn}
        if not self.waiting:
            return beginning(request.turn, given), NOTHING_SPENT
        was_given = "clarify" not in self.following
        return None if was_given else Command(resume=given), NOTHING_SPENT

    def outcome(self) -> Answer | Clarification:
        trace = tuple(self.values["trace"])
        pending = self.values["pending"]
        if pending is not None and self.waiting:
            options = tuple(Option.model_validate(option) for option in pending["options"])
            return Clarification(text=pending["text"], options=options, usage=usage_of(self.values), trace=trace)
        return Answer.model_validate(self.values["outcome"]).model_copy(update={"trace": trace})


def _config(agent_thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": agent_thread}}
