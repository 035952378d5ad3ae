"""Takes a file in, slowly enough to be killed in the middle. Says how far it is."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ingest.convert import Converter
from ingest.ingestor import Ingestor, Progress
from ingest.limits import FileLimits
from storage.database import open_database, sqlite_url
from storage.documents import Documents
from storage.lance import LanceStore
from tests.ingest.fakes import HashEmbedder, upload_of


async def main(folder: Path, path: Path) -> None:
    async with (
        open_database(sqlite_url(folder / "catalog.db")) as database,
        Converter(FileLimits(), eager=False) as converter,
    ):
        store = await LanceStore.open(folder / "knowledge", "passages")
        ingestor = Ingestor(Documents(database), store, HashEmbedder(seconds=0.05), converter, FileLimits())
        await ingestor.ingest(upload_of(path, "2"), _say)
        await store.close()


async def _say(progress: Progress) -> None:
    sys.stdout.write(f"{progress}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
