"""A worker with a core of its own, for a test that stops it: `python -m tests.crashes.worker FOLDER`.

What it posts are lines of a file, `{message, turn, part, text}`: as a chat platform does, it keeps what it was sent
whatever becomes of the bot. While FOLDER/hold names a step, `tell` or `send`, it stands still there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.outcomes import Event
from bot.messages import Posted, Reply
from bot.platform import Turn
from storage.embeddings import BundledEmbedder
from tests.agent.library import open_library
from tests.bot.core import MemoryPlatform, open_core

CHARACTERS = 60  # so that a reply has parts


@dataclass
class FilePlatform(MemoryPlatform):
    characters: int = CHARACTERS
    folder: Path = field(default_factory=Path)

    async def tell(self, turn: Turn, event: Event) -> None:
        await self._hold("tell")

    async def send(self, turn: Turn, part: int, reply: Reply) -> str:
        message = f"r{turn.row}.{part}"
        line = {"to": turn.message, "message": message, "turn": turn.row, "part": part, "text": reply.text}
        with (self.folder / "posted").open("a") as file:
            file.write(json.dumps(line) + "\n")
        await self._hold("send")
        return message

    async def _hold(self, step: str) -> None:
        hold, held = self.folder / "hold", self.folder / "held"
        while hold.exists() and hold.read_text() == step:
            held.touch()
            await asyncio.sleep(0.02)

    async def find(self, turn: Turn) -> list[Posted]:
        return [
            Posted(message=line["message"], part=line["part"])
            for line in posted(self.folder)
            if line["turn"] == turn.row
        ]


def posted(folder: Path) -> list[dict[str, Any]]:
    path = folder / "posted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def main(folder: Path) -> None:
    logging.basicConfig(level=logging.INFO)
    embedder = BundledEmbedder()
    async with open_library(folder, embedder) as library:
        async with open_core(library, folder, embedder, FilePlatform(folder=folder)):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
