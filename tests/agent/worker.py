"""A process that runs one turn, for a test that kills it: `python -m tests.agent.worker FOLDER MODEL_URL`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agent.models import Models
from storage.embeddings import BundledEmbedder
from tests.agent.library import Heard, asked, open_agent, open_library
from tests.agent.test_agent import LIMITS, QUESTION


async def main(folder: Path, url: str) -> None:
    models = Models(["first"], url, "secret", LIMITS)
    async with open_library(folder, BundledEmbedder()) as library:
        async with open_agent(library, folder, models=models) as opened:
            await opened.agent.run(asked(QUESTION), Heard())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
