"""From findings to the reply: each question under its heading, written by a model or quoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent import prompts
from agent.budget import Account
from agent.context import Context
from agent.evidence import nearest_of
from agent.outcomes import Answer, Citation, Emit, Event, Nearest, Usage
from agent.outline import write_outline
from agent.state import Draft, Finding
from agent.texts import Texts, telling, texts_for
from agent.writing import Statements, Writing, write_not_found, write_quotes

if TYPE_CHECKING:
    from agent.models import ModelCalls


class Composing:
    def __init__(self, context: Context, account: Account | None, emit: Emit) -> None:
        self._context = context
        self._account = account  # None: no model is asked
        self._writing = Writing(emit)
        self._nearest: dict[str, dict[str, object]] = {}
        self.dropped = 0

    async def compose(self, findings: Sequence[Finding], notes: Sequence[str]) -> Draft:
        writing = self._writing
        for note in notes:
            await writing.paragraph(note)
        for finding in sorted(findings, key=lambda finding: finding["order"]):
            if len(findings) > 1:
                await writing.paragraph(f"**{' '.join(finding['question'].replace('*', '').split())}**")
            await self._answer(finding)
        return {
            "kind": "answer" if writing.citations else "not_found",
            "text": writing.text,
            "citations": [citation.model_dump() for citation in writing.citations],
            "nearest": list(self._nearest.values()),
        }

    async def _answer(self, finding: Finding) -> None:
        texts = texts_for(finding["question"])
        if await self._context.search.is_empty():
            await self._writing.paragraph(texts.no_documents)
        elif not finding["found"] or not await self._found(finding, texts):
            await self._not_found(finding, texts)

    async def _found(self, finding: Finding, texts: Texts) -> bool:
        """Whether there was something to say."""
        calls, account = self._context.calls, self._account
        if calls is not None and account is not None:
            statements = await self._stated(finding, calls, account)
            if statements.begun or statements.denied:
                return statements.begun
            account.degraded.append(texts.quotations)
        if finding.get("doubtful"):
            return False
        if "left_out" in finding:
            return await write_outline(self._writing, finding, texts)
        return await write_quotes(self._writing, finding)

    async def _stated(self, finding: Finding, calls: ModelCalls, account: Account) -> Statements:
        statements = Statements(self._writing, finding["evidence"])
        model = await calls.write(prompts.answer(finding["question"], statements.hits), statements, account)
        if model is not None:
            await statements.end()
        if statements.begun:
            account.model = model
        self.dropped += statements.dropped
        return statements

    async def _not_found(self, finding: Finding, texts: Texts) -> None:
        nearest = finding["nearest"] or nearest_of(finding["evidence"])
        self._nearest |= {near["document"]: near for near in nearest}
        await write_not_found(
            self._writing, {**finding, "question": telling(finding["question"]), "nearest": nearest}, texts
        )


async def quotations(findings: Sequence[Finding], notes: Sequence[str], context: Context) -> Draft:
    """The reply without a model, all at once."""
    return await Composing(context, None, _unheard).compose(findings, notes)


def outcome_of(draft: Draft, nearest: Sequence[Nearest], usage: Usage) -> Answer:
    return Answer(
        kind="answer" if draft["kind"] == "answer" else "not_found",
        text=draft["text"],
        citations=tuple(Citation.model_validate(each) for each in draft["citations"]),
        nearest=tuple(nearest),
        usage=usage,
    )


async def _unheard(event: Event) -> None:
    """Shown with the reply, not on the way."""
