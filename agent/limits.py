"""The bounds of one turn."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnLimits:
    seconds: float = 180  # the whole turn, clarifications apart
    model_calls: int = 12
    searches: int = 24
    tokens: int = 60_000  # read and written, all calls together
    silent_seconds: float = 30  # without a word from a model
    rerank_seconds: float = 60
    questions: int = 4  # researched in parallel for one message
    passages: int = 8  # that the answer is written from
    options: int = 5  # of a clarification
