"""The one place where a turn's seconds, model calls and tokens are counted and bounded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from agent.limits import TurnLimits
from agent.state import NOTHING_SPENT, Json, Spent

_CHARACTERS_A_TOKEN = 3  # where an endpoint doesn't say what a call took; Latin script has about 4, Chinese 1 to 2

_RESERVE_SECONDS = 5  # for quoting what is known when a model has used up its time


class BudgetSpent(Exception):
    """No further call of a model fits into this turn."""


def estimated_tokens(text: str) -> int:
    wide = sum(character > "\u2e80" for character in text)
    return wide + (len(text) - wide) // _CHARACTERS_A_TOKEN + 1


class Budget:
    def __init__(self, limits: TurnLimits, spent: Spent = NOTHING_SPENT) -> None:
        self._limits = limits
        self._calls = spent["calls"]
        self._tokens = spent["tokens_in"] + spent["tokens_out"]
        self._until = time.monotonic() + limits.seconds - min(_RESERVE_SECONDS, limits.seconds / 10)

    @property
    def seconds_left(self) -> float:
        return self._until - time.monotonic()

    @property
    def tokens_left(self) -> int:
        return self._limits.tokens - self._tokens

    def account(self) -> Account:
        """What one node spends."""
        return Account(self)

    def open(self, prompt_tokens: int) -> None:
        """Raises BudgetSpent where a call with such a prompt doesn't fit any more."""
        exhausted = self._calls >= self._limits.model_calls or self.seconds_left <= 0
        if exhausted or self.tokens_left <= prompt_tokens:
            raise BudgetSpent
        self._calls += 1

    def charge(self, tokens: int) -> None:
        self._tokens += tokens


@dataclass
class Account:
    """A node's share of the budget. `degraded` names what was down, in words for a person."""

    budget: Budget
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    model: str | None = None
    degraded: list[str] = field(default_factory=list)

    def open(self, prompt_tokens: int) -> None:
        self.budget.open(prompt_tokens)
        self.calls += 1

    def charge(self, tokens_in: int, tokens_out: int) -> None:
        self.budget.charge(tokens_in + tokens_out)
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out

    def update(self) -> Json:
        """As the node returns it."""
        spent: Spent = {
            "model": self.model,
            "calls": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
        }
        return {"usage": spent, "degraded": self.degraded}
