"""Embeddings of any endpoint that speaks OpenAI's API."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence

import numpy as np
import openai
from openai.types import CreateEmbeddingResponse

from storage.embeddings import FINGERPRINT, Recognise, printable, unit
from storage.errors import EmbeddingChanged, EmbeddingUnavailable
from storage.knowledge import Vector

ANOTHER_MODEL = (
    "another model answers at the embedding endpoint than the one that the stored vectors come from: keyword search "
    "only. Set EMBEDDING_MODEL back, or end the bot and run `python -m bot reembed`."
)

_BATCH = 64
_TOO_LARGE = (400, 413, 422)
_SHORTENINGS = 3  # of a single text that is refused: to an eighth
_LONGEST_PAUSE = 30.0


class EndpointEmbedder:
    """An embedder. A question gives up early: keyword search is there for it."""

    dense_weight = 0.75
    not_found_threshold = 0.5

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        dimension: int = 0,
        patience: float = 60,
        question_patience: float = 8,
    ) -> None:
        self.model = model
        self.dimension = dimension
        self._patience = patience
        self._question_patience = question_patience
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=patience)
        self._was_down = False
        self._recognise: Recognise | None = None

    def recognised_by(self, recognise: Recognise) -> None:
        self._recognise = recognise

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._recognised(list(texts[start : start + _BATCH]), self._patience)
        return vectors

    async def embed_question(self, text: str) -> Vector:
        return (await self._recognised([text], self._question_patience))[0]

    def knows(self, text: str) -> bool:
        return True

    async def close(self) -> None:
        await self._client.close()

    async def _recognised(self, texts: list[str], patience: float) -> list[Vector]:
        deadline = time.monotonic() + patience
        try:
            if self._was_down and self._recognise is not None:
                await self._recognise((await self._embed([FINGERPRINT], deadline))[0])
            vectors = await self._embed(texts, deadline)
        except EmbeddingChanged as error:
            raise EmbeddingUnavailable(ANOTHER_MODEL) from error
        except EmbeddingUnavailable:
            self._was_down = True
            raise
        self._was_down = False
        return vectors

    async def _embed(self, texts: list[str], deadline: float, shortenings: int = _SHORTENINGS) -> list[Vector]:
        try:
            return await self._ask(texts, deadline)
        except _TooLarge as error:
            if len(texts) > 1:
                middle = len(texts) // 2
                first = await self._embed(texts[:middle], deadline)
                return first + await self._embed(texts[middle:], deadline)
            if shortenings == 0 or len(texts[0]) < 2:
                raise EmbeddingUnavailable(str(error)) from error
            return await self._embed([texts[0][: len(texts[0]) // 2]], deadline, shortenings - 1)

    async def _ask(self, texts: list[str], deadline: float) -> list[Vector]:
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0.001)):
                    return self._checked(texts, await self._request(texts))
            except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as error:
                pause = _pause(error, attempt)
                if time.monotonic() + pause > deadline:
                    raise EmbeddingUnavailable(f"the embedding endpoint doesn't answer ({_brief(error)})") from error
            except TimeoutError as error:
                raise EmbeddingUnavailable("the embedding endpoint doesn't answer (time-out)") from error
            attempt += 1
            await asyncio.sleep(pause)

    async def _request(self, texts: list[str]) -> CreateEmbeddingResponse:
        try:
            return await self._client.embeddings.create(
                model=self.model, input=[printable(text) or " " for text in texts], encoding_format="float"
            )
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError):
            raise
        except openai.APIStatusError as error:
            if error.status_code in _TOO_LARGE:
                raise _TooLarge(f"the embedding endpoint refuses a text ({_brief(error)})") from error
            raise EmbeddingUnavailable(f"the embedding endpoint refuses to answer ({_brief(error)})") from error
        except (openai.OpenAIError, ValueError) as error:  # a body that isn't JSON is a ValueError
            raise EmbeddingUnavailable("the embedding endpoint's answer can't be read") from error

    def _checked(self, texts: list[str], response: CreateEmbeddingResponse) -> list[Vector]:
        try:
            ordered = sorted(response.data, key=lambda item: item.index)
            vectors = np.array([item.embedding for item in ordered], dtype=np.float32)
        except (AttributeError, TypeError, ValueError) as error:
            raise EmbeddingUnavailable("the embedding endpoint's answer can't be read") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise EmbeddingUnavailable(f"the embedding endpoint gave {len(vectors)} vectors for {len(texts)} texts")
        if self.dimension not in (0, vectors.shape[1]):
            raise EmbeddingUnavailable(
                f"the embedding endpoint gave vectors of {vectors.shape[1]} dimensions instead of {self.dimension}"
            )
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise EmbeddingUnavailable("the embedding endpoint gave vectors that aren't numbers")
        self.dimension = vectors.shape[1]
        return list(unit(vectors))


class _TooLarge(Exception):
    """A batch, or a single text, that the endpoint refuses for its size."""


def _pause(error: openai.APIError, attempt: int) -> float:
    """As long as the endpoint asks for, else longer each time."""
    if isinstance(error, openai.APIStatusError):
        asked = error.response.headers.get("retry-after", "")
        if re.fullmatch(r"\d+(\.\d+)?", asked):
            return float(asked)
    return min(0.25 * 2.0**attempt, _LONGEST_PAUSE) * random.uniform(0.75, 1.25)


def _brief(error: openai.APIError) -> str:
    return f"status {error.status_code}" if isinstance(error, openai.APIStatusError) else type(error).__name__
