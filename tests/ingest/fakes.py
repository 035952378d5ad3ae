"""What the ingestion tests use in the place of a model."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ingest.ingestor import Upload
from storage.errors import EmbeddingUnavailable
from storage.knowledge import Vector
from storage.models import channel_audience


class HashEmbedder:
    """Vectors from a hash of the text: as fast as can be, and the same for the same text."""

    model = "hash"
    dimension = 32
    dense_weight = 0.5
    not_found_threshold = 0.5

    def __init__(self, *, seconds: float = 0) -> None:
        self.embedded: list[str] = []
        self.down = False
        self._seconds = seconds

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.sleep(self._seconds)
        if self.down:
            raise EmbeddingUnavailable("the endpoint is down")
        self.embedded += texts
        return [self._vector(text) for text in texts]

    async def embed_question(self, text: str) -> Vector:
        return self._vector(text)

    def knows(self, text: str) -> bool:
        return not any("\u4e00" <= character <= "\u9fff" for character in text)

    async def close(self) -> None:
        return None

    def _vector(self, text: str) -> Vector:
        numbers = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8).astype(np.float32) + 1
        vector: Vector = numbers / np.linalg.norm(numbers)
        return vector


def upload_of(path: Path, message: str = "1", *, name: str = "", attachment: str = "f") -> Upload:
    return Upload(
        workspace="w",
        channel="c",
        audience=channel_audience("c"),
        name=name or path.name,
        path=path,
        size=path.stat().st_size,
        posted_by="ann",
        posted_at=float(message),
        message=message,
        attachment=attachment,
        link=f"https://chat/{message}",
    )
