"""Reranking by Cohere, or by any server with its rerank API."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import httpx
from cohere import AsyncClientV2
from cohere.core import ApiError
from cohere.core.request_options import RequestOptions

from agent.rerank import RerankUnavailable
from storage.models import Hit

_CANDIDATES = 50  # of the first passages, those that are sent
_CHARACTERS = 2000  # of a passage
_MALFORMED = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)  # what a reply can raise


class CohereReranker:
    def __init__(self, api_key: str, model: str, base_url: str | None = None) -> None:
        self._model = model
        self._http = httpx.AsyncClient()
        self._client = AsyncClientV2(
            api_key=api_key,
            base_url=base_url or "https://api.cohere.com",
            httpx_client=self._http,
            log_warning_experimental_features=False,
        )

    async def rerank(self, question: str, hits: Sequence[Hit], seconds: float) -> list[Hit]:
        sent, rest = list(hits[:_CANDIDATES]), list(hits[_CANDIDATES:])
        if len(sent) < 2:
            return [*sent, *rest]
        try:
            async with asyncio.timeout(seconds):
                reply = await self._client.rerank(
                    model=self._model,
                    query=question,
                    documents=[_text(hit) for hit in sent],
                    top_n=len(sent),
                    request_options=RequestOptions(max_retries=0, timeout_in_seconds=max(1, int(seconds))),
                )
            ranking = [_ranked(result.index, result.relevance_score) for result in reply.results]
        except (ApiError, httpx.HTTPError, TimeoutError, *_MALFORMED) as error:
            raise RerankUnavailable from error
        return [*_ordered(sent, ranking), *rest]

    async def close(self) -> None:
        await self._http.aclose()


def _ranked(index: object, score: object) -> tuple[int, float]:
    """The client hands over what the server sent, of whatever type."""
    if type(index) is not int or type(score) not in (int, float):
        raise TypeError(f"a ranking of {type(index).__name__} and {type(score).__name__}")
    value = float(cast(float, score))
    if not math.isfinite(value):
        raise ValueError("a score that is no number")
    return index, value


def _ordered(hits: list[Hit], ranking: list[tuple[int, float]]) -> list[Hit]:
    """By the ranking. What it leaves out follows in its old order; numbers that name nothing are passed over."""
    scores = {index: score for index, score in ranking if 0 <= index < len(hits)}
    ranked = [replace(hits[index], score=score) for index, score in sorted(scores.items(), key=lambda item: -item[1])]
    lowest = min(scores.values(), default=1.0)
    left = [replace(hit, score=min(hit.score, lowest)) for index, hit in enumerate(hits) if index not in scores]
    return ranked + left


def _text(hit: Hit) -> str:
    passage = hit.passage
    return "\n".join(filter(None, (passage.name, " › ".join(passage.headings), passage.text)))[:_CHARACTERS]
