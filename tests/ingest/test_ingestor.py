from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import lancedb
import pytest
import pytest_asyncio

from ingest.convert import Converter
from ingest.ingestor import KEYWORDS_ONLY, POST_DELETED, Ingestor, Progress, Upload, Verdict
from ingest.limits import FileLimits
from storage.database import open_database, sqlite_url
from storage.documents import Documents
from storage.knowledge import Entry, Mode, Query
from storage.lance import LanceStore
from storage.models import Scope, Version, channel_audience
from storage.terms import cut
from tests.ingest.fakes import HashEmbedder, upload_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCOPE = Scope("w", frozenset({channel_audience("c")}))
ROOT = Path(__file__).parents[2]


@dataclass
class House:
    """An ingestor and what stands around it."""

    documents: Documents
    store: LanceStore
    embedder: HashEmbedder
    ingestor: Ingestor
    folder: Path
    told: list[Progress]

    async def take_in(self, upload: Upload) -> Verdict:
        return await self.ingestor.ingest(upload, self.tell)

    async def tell(self, progress: Progress) -> None:
        self.told.append(progress)

    def write(self, text: str, name: str = "notes.md") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    async def search(self, words: str) -> list[str]:
        found = await self.store.search(Query(SCOPE, cut(words), None, mode=Mode.KEYWORD, limit=100))
        living = await self.documents.living("w", {hit.passage.key for hit in found})
        return [hit.passage.text for hit in found if hit.passage.key in living]

    async def count(self, verdict: Verdict) -> int:
        return await self.store.count("w", Version(verdict.document, verdict.version))


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path, converter: Converter) -> AsyncIterator[House]:
    async with open_database(sqlite_url(tmp_path / "catalog.db")) as database:
        documents, embedder = Documents(database), HashEmbedder()
        store = await LanceStore.open(tmp_path / "knowledge", "passages")
        limits = FileLimits(size=500_000, passages=500)
        yield House(documents, store, embedder, Ingestor(documents, store, embedder, converter, limits), tmp_path, [])
        await store.close()


def long_text(words: str, paragraphs: int = 300) -> str:
    return "\n\n".join(f"Paragraph {number} says that {words} in many words. " * 6 for number in range(paragraphs))


async def test_a_posted_file_is_found(house: House) -> None:
    path = house.write("# Leave\n\nThe notice period is thirty days.\n")
    verdict = await house.take_in(upload_of(path))
    assert (verdict.verdict, verdict.version, verdict.sections, verdict.passages) == ("indexed", 1, 1, 1)
    assert verdict.seconds > 0
    assert await house.search("notice") == ["# Leave\n\nThe notice period is thirty days."]


async def test_progress_is_told_by_page_and_by_passage(house: House) -> None:
    await house.take_in(upload_of(house.write(long_text("it rains"))))
    embedding = [told for told in house.told if told.stage == "embedding"]
    assert [told.done for told in embedding] == [0, 64, embedding[-1].total]
    assert {told.total for told in embedding} == {embedding[-1].total}


async def test_the_same_content_again_is_unchanged(house: House) -> None:
    path = house.write("The notice period is thirty days.")
    first = await house.take_in(upload_of(path))
    again = await house.take_in(upload_of(path, "2"))
    assert (again.verdict, again.document, again.version) == ("unchanged", first.document, 1)
    assert len(house.embedder.embedded) == 1


async def test_a_changed_file_supersedes_and_the_old_one_answers_no_more(house: House) -> None:
    path = house.write("The notice period is thirty days.")
    first = await house.take_in(upload_of(path))
    house.write("The notice period is sixty days.")
    second = await house.take_in(upload_of(path, "2"))
    assert (second.verdict, second.version, second.replaces, second.replaces_version) == ("superseded", 2, 1.0, 1)
    assert await house.search("notice") == ["The notice period is sixty days."]
    assert await house.count(first) == 0
    assert await house.documents.dead("w") == []


async def test_the_same_text_is_embedded_once_in_a_workspace(house: House) -> None:
    house.write("The notice period is thirty days.", "a.md")
    house.write("The notice period is thirty days.", "b.md")
    await house.take_in(upload_of(house.folder / "a.md"))
    await house.take_in(upload_of(house.folder / "b.md", "2"))
    assert len(house.embedder.embedded) == 1
    assert len(await house.search("notice")) == 2


async def test_ingesting_twice_comes_to_the_same(house: House) -> None:
    path = house.write(long_text("the tide is high"))
    first = await house.take_in(upload_of(path))
    again = await house.take_in(upload_of(path))
    assert again == first.model_copy(update={"seconds": again.seconds})
    assert await house.count(first) == first.passages


async def test_a_script_that_the_model_does_not_know_is_found_by_its_words(house: House) -> None:
    await house.take_in(upload_of(house.write("合同期限为三年，自签字之日起计算。")))
    assert house.embedder.embedded == []
    assert await house.search("合同期限") == ["合同期限为三年，自签字之日起计算。"]
    assert await house.documents.unembedded() == [], "what can have no vector isn't waited for"


async def test_with_the_endpoint_down_a_file_is_found_by_keywords_and_embedded_later(house: House) -> None:
    house.embedder.down = True
    path = house.write(long_text("the sun sets", 100))
    verdict = await house.take_in(upload_of(path))
    assert (verdict.verdict, verdict.reason) == ("indexed", KEYWORDS_ONLY)
    assert await house.search("sun") != []
    assert await house.ingestor.embed_missing() == 0

    house.embedder.down = False
    assert await house.ingestor.embed_missing() == verdict.passages
    assert await house.documents.unembedded() == []
    assert await house.count(verdict) == verdict.passages
    assert await house.ingestor.embed_missing() == 0


async def test_reembedding_covers_every_current_document(house: House, tmp_path: Path) -> None:
    verdict = await house.take_in(upload_of(house.write(long_text("the wind blows", 20))))
    other = await LanceStore.open(tmp_path / "knowledge", "another_model")
    ingestor = Ingestor(house.documents, other, house.embedder, house.ingestor._converter, FileLimits())
    told: list[tuple[int, int]] = []

    async def report(done: int, total: int) -> None:
        told.append((done, total))

    assert await ingestor.reembed(report) == verdict.passages
    assert told == [(0, verdict.passages), (verdict.passages, verdict.passages)]
    assert await other.count("w", Version(verdict.document, 1)) == verdict.passages
    await other.close()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "it is empty"),
        (" \n\n", "it is empty"),
        ("x" * 500_001, "it is larger than"),
        ("word. " * 80_000, "passages, more than 500"),
        ("%PDF-1.4 and no more", "it is broken"),
        ("PK\x03\x04 cut", "it is broken"),
    ],
)
async def test_a_file_that_cannot_be_taken_in_is_refused_with_its_reason(
    house: House, content: str, expected: str
) -> None:
    verdict = await house.take_in(upload_of(house.write(content)))
    assert verdict.verdict == "refused"
    assert expected in verdict.reason
    listed = await house.documents.listed("w")
    assert [(document.verdict, document.reason) for document in listed] == [("refused", verdict.reason)]
    assert await house.count(verdict) == 0


async def test_a_refused_file_leaves_the_version_before_it_in_place(house: House) -> None:
    path = house.write("The notice period is thirty days.")
    await house.take_in(upload_of(path))
    house.write("")
    assert (await house.take_in(upload_of(path, "2"))).verdict == "refused"
    assert len(await house.search("notice")) == 1


@pytest.mark.parametrize("stage", ["first", "converting", "embedding", "last"])
async def test_a_post_deleted_at_any_stage_leaves_nothing(house: House, stage: str) -> None:
    path = house.write(long_text("the moon rises", 120), "moon.md")
    upload = upload_of(path)

    async def delete_then(progress: Progress) -> None:
        is_now = progress.stage == stage or (stage == "last" and progress.done == progress.total)
        if is_now:
            await house.documents.delete_post("w", "c", upload.message)

    if stage == "first":
        await house.documents.delete_post("w", "c", upload.message)
    if stage == "converting":
        upload = replace(upload, name="moon.pdf")
        path.write_bytes(a_pdf())
    verdict = await house.ingestor.ingest(upload, delete_then)
    assert (verdict.verdict, verdict.reason) == ("refused", POST_DELETED)
    assert await house.search("moon") == []
    assert await house.documents.dead("w") == []
    assert await house.documents.listed("w") == []


def a_pdf() -> bytes:
    content = b"BT /F1 12 Tf 20 100 Td (the moon rises) Tj ET"
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"
        b"4 0 obj<</Length " + str(len(content)).encode() + b">>stream\n" + content + b"\nendstream endobj\n"
        b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
    )


async def test_cleaning_removes_what_was_deleted_from_the_disk(house: House) -> None:
    verdict = await house.take_in(upload_of(house.write("The xylophone is in the cellar.")))
    await house.documents.delete_post("w", "c", "1")
    assert await house.search("xylophone") == []
    for _ in range(2):
        await house.ingestor.clean()
    assert await house.count(verdict) == 0
    files = [path for path in (house.folder / "knowledge").rglob("*") if path.is_file()]
    assert not any(b"xylophone" in path.read_bytes() for path in files)


async def test_a_file_whose_ingestion_is_killed_again_and_again_is_there_once(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = house.write("# Old\n\n" + long_text("the old tide", 40))
    old = await house.take_in(upload_of(path))
    house.write("# New\n\n" + long_text("the new tide", 150))
    upload = upload_of(path, "2")
    for _ in range(2):
        await ingest_and_kill(tmp_path, path, after=random.uniform(0.0, 0.3))
        assert {"old" in text for text in await house.search("tide")} in ({True}, {False})
    verdict = await house.take_in(upload)
    assert (verdict.verdict, verdict.version, verdict.replaces) == ("superseded", 2, 1.0)
    await house.ingestor.clean()
    assert await house.count(verdict) == verdict.passages
    assert await house.count(old) == 0
    assert not any("old" in text for text in await house.search("tide"))


async def ingest_and_kill(folder: Path, path: Path, after: float) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.ingest.ingest_slowly",
        str(folder),
        str(path),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    await child.stdout.readline()
    await asyncio.sleep(after)
    if child.returncode is None:
        child.send_signal(signal.SIGKILL)
    await child.wait()


@pytest.fixture
def long_pdf(real_file: Callable[[str], bytes], tmp_path: Path) -> Path:
    path = tmp_path / "geotopo.pdf"
    path.write_bytes(real_file("pdf42_geotopo_de_117p.pdf"))
    return path


async def test_a_long_pdf_is_told_page_by_page_and_cited_by_page(house: House, long_pdf: Path) -> None:
    upload = upload_of(long_pdf)
    generous = Ingestor(house.documents, house.store, house.embedder, house.ingestor._converter, FileLimits())
    verdict = await generous.ingest(upload, house.tell)
    assert (verdict.verdict, verdict.pages) == ("indexed", 117)
    converting = [told for told in house.told if told.stage == "converting"]
    assert converting[-1] == Progress("converting", 117, 117)
    found = await house.store.search(Query(SCOPE, cut("Isotopie nachgelesen werden"), None, mode=Mode.KEYWORD, limit=3))
    assert any("Definition einer Isotopie" in hit.passage.text for hit in found)
    assert all(hit.passage.page and hit.passage.place.startswith("page ") for hit in found)


async def test_what_the_store_lost_is_stored_again(house: House) -> None:
    whole = await house.take_in(upload_of(house.write(long_text("it rains"), "long.md")))
    gone = await house.take_in(upload_of(house.write("The notice period is thirty days.", "short.md"), "2"))
    intact = await house.take_in(upload_of(house.write("The canteen opens at noon.", "canteen.md"), "3"))
    await house.store.remove("w", [Version(gone.document, 1)])
    connection = await lancedb.connect_async(house.folder / "knowledge")
    table = await connection.open_table("passages")
    await table.delete("number > 70")
    house.embedder.embedded.clear()
    await house.ingestor.restore()
    assert [await house.count(each) for each in (whole, gone, intact)] == [whole.passages, 1, 1]
    assert await house.search("notice") == ["The notice period is thirty days."]
    assert len(house.embedder.embedded) == whole.passages - 70 + 1, "what was there is not embedded again"
    house.embedder.embedded.clear()
    await house.ingestor.restore()
    assert house.embedder.embedded == [] and house.ingestor.restoring == 0


async def test_what_the_catalog_does_not_know_leaves_the_store(house: House) -> None:
    path = house.write("The notice period is thirty days.")
    first = await house.take_in(upload_of(path))
    house.write("The notice period is sixty days.")
    second = await house.take_in(upload_of(path, "2"))
    (hit,) = await house.store.search(Query(SCOPE, cut("notice"), None, mode=Mode.KEYWORD))
    for stray in (replace(hit.passage, version=first.version), replace(hit.passage, document="unknown")):
        await house.store.add([Entry(stray, "digest", cut(stray.text), None)])
    await house.ingestor.restore()
    assert await house.store.counts("w") == {Version(second.document, second.version): 1}


async def test_what_is_being_taken_in_is_left_alone(house: House) -> None:
    path = house.write(long_text("the tide is high"))

    async def restore(progress: Progress) -> None:
        if progress.stage == "embedding" and progress.done:
            await house.ingestor.restore()

    verdict = await house.ingestor.ingest(upload_of(path), restore)
    assert await house.count(verdict) == verdict.passages


async def test_what_is_given_up_leaves_nothing_and_can_be_posted_again(house: House) -> None:
    path = house.write(long_text("the ice is thin"))

    async def fail(progress: Progress) -> None:
        if progress.stage == "embedding" and progress.done:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await house.ingestor.ingest(upload_of(path, "1"), fail)
    assert await house.store.counts("w") != {}
    upload = upload_of(path, "1")
    await house.ingestor.give_up("w", "c", upload.message, upload.attachment, "again and again")
    assert await house.store.counts("w") == {} and await house.documents.pending("w") == []
    (listed,) = await house.documents.listed("w")
    assert (listed.verdict, listed.reason) == ("refused", "again and again")
    assert (await house.take_in(upload_of(path, "2"))).verdict == "indexed"
