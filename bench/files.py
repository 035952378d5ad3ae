"""How fast files are read and embedded: `python -m bench.files`.

PDFs: the project's converter, a child for each file included, beside MarkItDown alone, in a Python of its own that
`uv` makes, without its imports; file by file in turn, over the pages of those that both can read. Then a PDF of a
thousand real pages with the memory that its child takes, a real one from its bytes to passages that answer, and the
bundled model beside the bare ONNX session on the same batches, cut into tokens beforehand.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pypdfium2

from bench.clock import Clock
from bench.stage import knowledge
from bench.table import ROOT, Figure, Options, detail, main
from ingest.convert import Converted, Converter, Refused
from ingest.ingestor import Ingestor, Progress
from ingest.limits import MEGABYTE, FileLimits
from storage.database import open_database, sqlite_url
from storage.documents import Documents
from storage.embeddings import BundledEmbedder, _batches
from storage.lance import LanceStore
from tests.ingest.fakes import upload_of
from tests.scenarios.papers import pdf

LONG = "pdf42_geotopo_de_117p.pdf"
PAGES = 1_000
PATIENCE = 60.0  # for one file of the peer
PASSAGES = 256  # that are embedded
ROUNDS = 5
PEER = """
import json, sys, time
from markitdown import MarkItDown
reader = MarkItDown()
began = time.perf_counter()
text = reader.convert_local(sys.argv[1]).text_content
print(json.dumps({"seconds": time.perf_counter() - began, "characters": len(text)}))
"""


@dataclass(frozen=True)
class Read:
    name: str
    pages: int
    seconds: float
    peer: float


async def _silent(done: int, total: int) -> None: ...


async def _told(progress: Progress) -> None: ...


async def convert(converter: Converter, path: Path) -> tuple[Converted | None, float]:
    """None where it is refused."""
    began = time.perf_counter()
    try:
        return await converter.convert(path, path.name, _silent), time.perf_counter() - began
    except Refused:
        return None, time.perf_counter() - began


async def markitdown(path: Path) -> float | None:
    """Seconds; None where it raises or isn't done in time."""
    needs = f"markitdown[pdf]=={importlib.metadata.version('markitdown')}"
    program = [_uv(), "run", "-q", "--no-project", "--python", sys.executable, "--with", needs, "python", "-c", PEER]
    try:
        run = await asyncio.to_thread(
            subprocess.run, [*program, str(path)], capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    lines = run.stdout.decode().splitlines()
    return float(json.loads(lines[-1])["seconds"]) if run.returncode == 0 and lines else None


def _uv() -> str:
    own = ROOT / ".venv" / "bin" / "uv"
    return str(own) if own.exists() else shutil.which("uv") or "uv"


@asynccontextmanager
async def warm_converter() -> AsyncIterator[Converter]:
    async with Converter(FileLimits()) as converter:
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / "warm.txt"
            first.write_text("warm")
            await convert(converter, first)
        yield converter


async def compare(paths: Sequence[Path]) -> list[Read]:
    found = []
    async with warm_converter() as converter:
        for path in paths:
            converted, seconds = await convert(converter, path)
            peer = await markitdown(path)
            if converted is not None and converted.pages and peer is not None:
                found.append(Read(path.name, converted.pages, seconds, peer))
            shown = "refused" if converted is None else f"{converted.pages} pages"
            detail(f"{path.name}: {shown}, {seconds:.2f} s; MarkItDown {'-' if peer is None else f'{peer:.2f} s'}")
    return found


async def _beside_markitdown(options: Options, folder: Path) -> list[Figure]:
    what = "PDFs without embedding, to MarkItDown alone"
    paths = [_written(folder, 3)] if options.quick else sorted(options.files.glob("*.pdf"))
    if not paths:
        return [Figure(what, None, note="the files are not there")]
    found = await compare(paths)
    if not found:
        return [Figure(what, None, note="MarkItDown could not be run")]
    pages, seconds = sum(each.pages for each in found), sum(each.seconds for each in found)
    peer = sum(each.peer for each in found)
    each = statistics.median(each.peer / each.seconds for each in found)
    note = f"MarkItDown {pages / peer:.1f} pages a second; {each:.0f} × in the median file"
    return [
        Figure(what, peer / seconds, "×", least=10, note=note),
        Figure("PDFs without embedding", pages / seconds, "pages/s", note=f"{pages} pages of {len(found)} files"),
    ]


async def _thousand_pages(options: Options, folder: Path) -> Figure:
    source = options.files / LONG
    path = _written(folder, 30) if options.quick or not source.exists() else _repeated(source, folder)
    async with warm_converter() as converter:
        watch = asyncio.create_task(_peak())
        converted, seconds = await convert(converter, path)
        watch.cancel()
        peak = await watch
    pages = converted.pages if converted else 0
    note = f"{seconds:.1f} s, {pages / seconds:.0f} pages a second"
    return Figure(f"a PDF of {pages:,} pages: resident in its child", peak / MEGABYTE, "MB", most=1024, note=note)


async def _peak() -> int:
    """The most that any of our children held, until it is cancelled."""
    most = 0
    try:
        while True:
            for child in psutil.Process().children(recursive=True):
                try:
                    most = max(most, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        return most


def _written(folder: Path, pages: int) -> Path:
    path = folder / f"written-{pages}.pdf"
    lines = "\n".join(f"Line {number} of a page about the notice period of a contract." for number in range(40))
    path.write_bytes(pdf(path.name, [f"Page {number}\n{lines}" for number in range(pages)]).content)
    return path


def _repeated(source: Path, folder: Path) -> Path:
    """The source's pages again and again, until they are a thousand."""
    path = folder / "thousand.pdf"
    with pypdfium2.PdfDocument(source) as once, pypdfium2.PdfDocument.new() as many:
        while len(many) < PAGES:
            many.import_pages(once, list(range(min(len(once), PAGES - len(many)))))
        many.save(path)
    return path


async def _with_embedding(options: Options, folder: Path) -> Figure:
    source = options.files / LONG
    path = _written(folder, 3) if options.quick or not source.exists() else source
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(sqlite_url(folder / "app.sqlite")))
        converter = await stack.enter_async_context(warm_converter())
        embedder = BundledEmbedder()
        await embedder.embed(["warm"])
        store = await LanceStore.open(folder / "lance", "bench")
        ingestor = Ingestor(Documents(database), store, embedder, converter, FileLimits())
        began = time.perf_counter()
        verdict = await ingestor.ingest(upload_of(path), _told)
        seconds = time.perf_counter() - began
        await store.close()
        await embedder.close()
    note = f"{verdict.pages} pages, {verdict.passages} passages in {seconds:.1f} s, to the passages that answer"
    return Figure("PDFs with embedding", verdict.pages / seconds, "pages/s", note=note)


async def _beside_onnx(options: Options) -> Figure:
    what = "the bundled model's passages a second, to the bare ONNX session"
    known = knowledge(options)
    if known is None:
        return Figure(what, None, note="the question sets are not there")
    texts = [text[start : start + 900] for _, text in known.files for start in range(0, len(text), 900)]
    texts = texts[: 16 if options.quick else PASSAGES]
    embedder = BundledEmbedder()
    tokenizer, model = embedder._load()
    batches = [_inputs(tokenizer, [texts[place] for place in places]) for places in _batches(texts)]
    pairs = []
    for _ in range(1 if options.quick else ROUNDS):
        ours, bare = Clock(), Clock()
        with ours.running():
            await embedder.embed(texts)
        with bare.running():
            await asyncio.to_thread(_run, model, batches)
        pairs.append((bare.wall / ours.wall, bare.processor / ours.processor))
        detail(f"embedded {len(texts) / ours.wall:.1f} passages a second, {pairs[-1][0]:.2f} of the bare session's")
    await embedder.close()
    wall, processor = (statistics.median(column) for column in zip(*pairs, strict=True))
    note = f"{len(texts) / ours.wall:.0f} passages a second; by processor time {processor:.2f}; {len(pairs)} pairs"
    return Figure(what, wall, "×", least=0.9, note=note)


def _inputs(tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    encodings = tokenizer.encode_batch(texts)
    ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
    mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _run(model: Any, batches: Sequence[dict[str, Any]]) -> None:
    for batch in batches:
        model.run(None, batch)


async def measure(options: Options) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        return [
            *await _beside_markitdown(options, folder),
            await _thousand_pages(options, folder),
            await _with_embedding(options, folder),
            await _beside_onnx(options),
        ]


if __name__ == "__main__":
    main("files", __doc__, measure)
