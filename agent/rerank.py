"""The port of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.models import Hit


class RerankUnavailable(Exception):
    """The order of the search stays."""


class Reranker(Protocol):
    async def rerank(self, question: str, hits: Sequence[Hit], seconds: float) -> list[Hit]:
        """The same hits in a better order. Raises RerankUnavailable."""

    async def close(self) -> None: ...
