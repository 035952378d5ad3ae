"""Real documents, most of them nasty: what must be in the conversion is in it, and what must be refused is refused."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest.convert import Converter, Refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = Path(__file__).parents[3] / "shared" / "data" / "files"
MANIFEST = FILES / "MANIFEST.tsv"
NOT_READ = ("aud", "doc0", "img", "msg", "odp", "odt", "pages", "ppt0", "rtf", "zip01", "zip02")
FALLS_SHORT = {
    "csv02_semicolon.csv": "the manifest's row goes over two lines of the file",
    "docx24_recursive_embedded.docx": "files within files are not opened",
    "pdf14_arabic_habibi.pdf": "PDFium gives the letters without their marks",
    "pdf21_simfang_chinese.pdf": "a font with a broken map needs text recognition",
    "pdf24_merged_cells.pdf": "needs text recognition",
    "pdf51_redp_2col_sampled.pdf": "tables of a PDF are read as lines",
}


@dataclass(frozen=True)
class Real:
    name: str
    expect: str
    phrases: tuple[tuple[str, ...], ...]
    forbidden: tuple[str, ...]
    row: str


def real_files() -> Iterator[Real]:
    if not MANIFEST.exists():
        return
    with MANIFEST.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            phrases = tuple(tuple(each.split("||")) for each in row["must_contain"].split(" && ") if each)
            forbidden = tuple(each for each in row["must_not_contain"].split(" && ") if each)
            yield Real(row["file"], row["expect"], phrases, forbidden, row["table_row"])


READ = [real for real in real_files() if not real.name.startswith(NOT_READ) and real.name not in FALLS_SHORT]
REFUSED = [real for real in real_files() if real.name.startswith(NOT_READ)]


async def convert(converter: Converter, name: str) -> str:
    async def ignore(done: int, total: int) -> None:
        assert 0 < done <= total

    converted = await converter.convert(FILES / name, name, ignore)
    return "\n".join(part.text for part in converted.parts)


def spaced(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.skipif(not MANIFEST.exists(), reason="the real files are not on this machine")
@pytest.mark.parametrize("real", READ, ids=lambda real: real.name)
async def test_a_real_file_is_read_as_its_manifest_says(converter: Converter, real: Real) -> None:
    try:
        text = await convert(converter, real.name)
    except Refused as refused:
        assert real.expect in ("refuse", "any"), refused.reason
        assert ": " in refused.reason, "it says what it is and what to do"
        return
    assert real.expect != "refuse"
    if real.expect == "any":
        return
    flat = spaced(text)
    assert [each for each in real.phrases if not any(spaced(phrase) in flat for phrase in each)] == []
    assert [phrase for phrase in real.forbidden if phrase in text] == []
    if real.row:
        assert real.row in text


@pytest.mark.skipif(not MANIFEST.exists(), reason="the real files are not on this machine")
@pytest.mark.parametrize("real", REFUSED, ids=lambda real: real.name)
async def test_a_type_that_is_not_read_is_refused_with_advice(converter: Converter, real: Real) -> None:
    with pytest.raises(Refused, match=r"^it is .*: (save|post|unpack|export|remove)"):
        await convert(converter, real.name)
