"""The nodes of a turn."""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from agent.composing import Composing, outcome_of, quotations
from agent.context import Context
from agent.evidence import without_dead
from agent.outcomes import Answer, Nearest, Usage
from agent.reading import plan_of
from agent.state import Draft, Json, State, said_as_json
from agent.tracing import traced
from agent.writing import Writing
from storage.models import Living, Version

_REMEMBERED = 20  # messages of the thread that a turn knows


@traced
async def recall(state: State, runtime: Runtime[Context]) -> Json:
    said = await runtime.context.recall()
    return {"said": [said_as_json(each) for each in said[-_REMEMBERED:]], "trace": [{"said": len(said)}]}


@traced
async def analyze(state: State, runtime: Runtime[Context]) -> Json:
    """Decide what is asked. It alone needs the thread, which leaves the state with it."""
    account = runtime.context.budget.account()
    plan = await plan_of(state, runtime.context, account)
    counts = {"questions": len(plan.questions), "asked_back": plan.pending is not None}
    return {**plan.update(), **account.update(), "said": [], "choice": None, "trace": [counts]}


def after_analyze(state: State, runtime: Runtime[Context]) -> str | list[Send]:
    if state["reply"]:
        return "chat"
    if state["pending"]:
        return "clarify"
    questions = state["questions"]
    passages = max(3, runtime.context.parts.limits.passages // max(1, len(questions)))
    return [
        Send(
            "research",
            {
                "order": order,
                "question": question["text"],
                "documents": question["documents"],
                "chosen": question["chosen"],
                "passages": passages,
            },
        )
        for order, question in enumerate(questions)
    ]


@traced
async def chat(state: State, runtime: Runtime[Context]) -> Json:
    writing = Writing(runtime.context.emit)
    await writing.add(state["reply"])
    return {"outcome": Answer(kind="chat", text=writing.text, usage=usage_of(state)).model_dump(mode="json")}


async def clarify(state: State) -> Json:
    """Wait for the choice. What comes with it is a turn of its own, counted from here."""
    choice = interrupt(state["pending"])
    return {"choice": choice, "turn": choice["turn"], "usage": None, "degraded": None, "trace": None}


@traced
async def answer(state: State, runtime: Runtime[Context]) -> Json:
    context = runtime.context
    account = context.budget.account()
    await context.status("writing the answer")
    composing = Composing(context, account, context.emit)
    draft = await composing.compose(state["findings"], state["notes"])
    counts = {"citations": len(draft["citations"]), "dropped": composing.dropped}
    return {"draft": draft, **account.update(), "trace": [counts]}


@traced
async def verify(state: State, runtime: Runtime[Context]) -> Json:
    """Hold the draft against the catalog of now. The evidence leaves the state with it."""
    context = runtime.context
    draft = state["draft"] or await quotations(state["findings"], state["notes"], context)
    living = await _living(draft, context)
    if any(_version(each) not in living for each in draft["citations"]):
        findings = [without_dead(finding, living) for finding in state["findings"]]
        draft = await quotations(findings, state["notes"], context)
        living = await _living(draft, context)
    nearest = [
        Nearest.model_validate({**each, "link": living[_version(each)].link})
        for each in draft["nearest"]
        if _version(each) in living
    ]
    outcome = outcome_of(draft, nearest, usage_of(state))
    return {"outcome": outcome.model_dump(mode="json"), "draft": None, "findings": None}


async def _living(draft: Draft, context: Context) -> dict[Version, Living]:
    named = {_version(each) for each in [*draft["citations"], *draft["nearest"]]}
    return await context.parts.documents.living(context.scope.workspace, named)


def _version(named: Json) -> Version:
    return Version(named["document"], named["version"])


def usage_of(state: State) -> Usage:
    spent = state["usage"]
    return Usage(
        model=spent["model"],
        model_calls=spent["calls"],
        tokens_in=spent["tokens_in"],
        tokens_out=spent["tokens_out"],
        degraded=tuple(dict.fromkeys(state["degraded"])),
    )
