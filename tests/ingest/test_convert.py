"""One file can't leave anything to the next, can't outlive its limits, and every refusal says why."""

from __future__ import annotations

import asyncio
import csv
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import openpyxl
import psutil
import pytest
import pytest_asyncio

from ingest.convert import Converter, Part, Refused
from ingest.limits import MEGABYTE, FileLimits

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHINESE = "合同期限为三年，自签字之日起计算。任何一方可以提前三十天书面通知对方解除合同。"
TEXTS = {
    "utf-8": CHINESE,
    "utf-8-sig": CHINESE,
    "utf-16": CHINESE,
    "utf-16-le": "The notice period is thirty days.",
    "utf-16-be": "The notice period is thirty days.",
    "utf-32-le": "The notice period is thirty days.",
    "gb18030": CHINESE,
    "big5": "合約期限為三年，自簽字之日起計算。任何一方可以提前三十天書面通知對方解除合約。",
    "cp932": "契約期間は三年とし、署名の日から起算する。いずれの当事者も三十日前に通知することができる。",
    "euc_jp": "契約期間は三年とし、署名の日から起算する。いずれの当事者も三十日前に通知することができる。",
    "cp949": "계약 기간은 서명일로부터 삼 년으로 한다. 당사자는 삼십 일 전에 통지하여야 한다.",
    "cp1251": "Срок договора составляет три года с даты подписания. Любая сторона может расторгнуть его.",
    "cp1252": "Die Kündigungsfrist beträgt dreißig Tage für alle Beschäftigten; die Prämie wird jährlich geprüft.",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hurried(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Converter]:
    async with Converter(FileLimits(seconds=0.4, unpacked=MEGABYTE, entries=20, passages=100)) as converter:
        yield converter


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cramped() -> AsyncIterator[Converter]:
    async with Converter(FileLimits(memory=64 * MEGABYTE)) as converter:
        yield converter


async def convert(converter: Converter, path: Path, content: bytes) -> tuple[Part, ...]:
    async def ignore(done: int, total: int) -> None:
        return None

    path.write_bytes(content)
    return (await converter.convert(path, path.name, ignore)).parts


async def text_of(converter: Converter, path: Path, content: bytes) -> str:
    return "\n".join(part.text for part in await convert(converter, path, content))


async def refusal(converter: Converter, path: Path, content: bytes) -> str:
    with pytest.raises(Refused) as refused:
        await convert(converter, path, content)
    return refused.value.reason


@pytest.mark.parametrize("charset", TEXTS)
async def test_text_in_any_charset_is_read(converter: Converter, tmp_path: Path, charset: str) -> None:
    assert await text_of(converter, tmp_path / "a.txt", TEXTS[charset].encode(charset)) == TEXTS[charset]


async def test_a_charset_is_found_out_over_the_whole_file(converter: Converter, tmp_path: Path) -> None:
    for charset in ("gb18030", "cp1251", "cp1252"):
        text = "All of this is plain. " * 20_000 + TEXTS[charset]
        assert await text_of(converter, tmp_path / "a.txt", text.encode(charset)) == text


async def test_markdown_stays_as_it_is_and_code_is_fenced(converter: Converter, tmp_path: Path) -> None:
    markdown = "# Title\n\n- one\n- two | three\n\n```\ncode\n```"
    assert await text_of(converter, tmp_path / "a.md", markdown.encode()) == markdown
    code = await text_of(converter, tmp_path / "a.py", b"# no heading\nprint('```')\n")
    assert code == "````python\n# no heading\nprint('```')\n````"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
async def test_a_csv_becomes_a_table(converter: Converter, tmp_path: Path, delimiter: str) -> None:
    target = io.StringIO()
    csv.writer(target, delimiter=delimiter).writerows(
        [["name", "city"], ["Ann, the first", "Paris; France"], ["a|b", "two\nlines"], ["short"], ["x", "y", "z"]]
    )
    text = await text_of(converter, tmp_path / "a.csv", target.getvalue().encode())
    assert text.splitlines() == [
        "| name | city |  |",
        "|---|---|---|",
        "| Ann, the first | Paris; France |",
        "| a\\|b | two lines |",
        "| short |",
        "| x | y | z |",
    ]


async def test_a_workbook_is_read_by_sheet_without_the_hidden_ones(converter: Converter, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Budget"
    for row in [["Quarterly budget"], ["Item", "Share"], ["Licences", 0.25], ["Total", 1200.0]]:
        first.append(row)
    first["B3"].number_format = "0%"
    book.create_sheet("Secret").append(["hidden words"])
    book["Secret"].sheet_state = "hidden"
    book.create_sheet("Staff").append(["Ann", "Bob"])
    target = io.BytesIO()
    book.save(target)
    parts = await convert(converter, tmp_path / "a.xlsx", target.getvalue())
    assert [(part.page, part.place) for part in parts] == [(1, "sheet Budget"), (2, "sheet Staff")]
    assert parts[0].text == "Quarterly budget\n\n| Item | Share |\n|---|---|\n| Licences | 25% |\n| Total | 1200 |"


async def test_a_web_page_is_read_without_its_scripts(converter: Converter, tmp_path: Path) -> None:
    page = b"<html><head><style>p {}</style><script>secret()</script></head><body><h1>Leave</h1><p>Thirty days.</p>"
    assert await text_of(converter, tmp_path / "a.html", page) == "# Leave\n\nThirty days."


async def test_a_name_with_marks_of_markdown_is_read_as_it_is_written(converter: Converter, tmp_path: Path) -> None:
    page = b"<html><body><p>Set MAX_OPEN_FILES to 2 * 512.</p>"
    assert await text_of(converter, tmp_path / "a.html", page) == "Set MAX_OPEN_FILES to 2 * 512."


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<nav><a href='/'>Home</a></nav><p>Thirty days.</p>", "Thirty days."),
        ("<header><p>Acme Wiki</p></header><p>Thirty days.</p><footer>Imprint</footer>", "Thirty days."),
        ("<header><a href='/'>Home</a><h1>Leave</h1></header><p>Thirty days.</p>", "# Leave\n\nThirty days."),
        ("<main><header><h1>Leave</h1><p>By Ann.</p></header><p>Days.</p></main>", "# Leave\n\nBy Ann.\n\nDays."),
        ("<article><p>Days.</p><aside>Ask first.</aside></article><aside>News</aside>", "Days.\n\nAsk first."),
        ("<div role=navigation>a</div><div role=banner>b</div><div role=search>c</div><p>Days.</p>", "Days."),
        ("<div role='contentinfo'>Imprint</div><p>Days.</p>", "Days."),
        ("<div class='navigation'><main><p>Days.</p></main></div>", "Days."),
        ("<p>Founded by <a href='/wiki/Bill_Gates' title='Bill'>Bill Gates</a>.</p>", "Founded by Bill Gates."),
        ("<p>See <a href='#terms'>the terms</a> and <a href='../a.html'>A</a>.</p>", "See the terms and A."),
        ("<p>See <a href='https://example.org/a'>A</a>.</p>", "See [A](https://example.org/a)."),
        ("<p>Days<sup class='reference'><a href='#cite_note-71'>[71]</a></sup>.</p>", "Days."),
        ("<p>Days<sup id=r><a href='/p#fn1'>1</a></sup>. 5 m<sup>2</sup></p>", "Days. 5 m2"),
        ("<h2>Leave<span class='mw-editsection'>[<a href='/e'>edit</a>]</span></h2><p>Days.</p>", "## Leave\n\nDays."),
        ("<h2>Leave <span>[<a href='/e'>edit</a>]</span></h2><p>Days.</p>", "## Leave\n\nDays."),
        ("<p>Days <img src='/a.png' alt='a chart of\ndays'> here. <img src='b.png'></p>", "Days a chart of days here."),
        ("<a href='#content'>Skip to content</a><p>Days.</p>", "Days."),
        (
            "<ul><li><a hreflang=de href='//de'>Deutsch</a></li><li><a hreflang=fr href='//fr'>Français</a></li>"
            "<li><a hreflang=zh href='//zh'>中文</a></li></ul><p>Days.</p>",
            "Days.",
        ),
        ("<ul><li>Leave</li><li>Travel</li><li><a href='/p'>Phones</a></li></ul>", "* Leave\n* Travel\n* Phones"),
        ("<nav><p>Nothing but this.</p></nav>", "Nothing but this."),
    ],
)
async def test_a_web_page_is_read_without_what_surrounds_it(
    converter: Converter, tmp_path: Path, page: str, expected: str
) -> None:
    text = await text_of(converter, tmp_path / "a.html", f"<html><body>{page}</body></html>".encode())
    assert text.strip() == expected


async def test_a_login_page_in_the_place_of_a_file_is_refused(converter: Converter, tmp_path: Path) -> None:
    page = b"<!doctype html><html><form action='/login'><input type='password' name='p'></form></html>"
    assert "sign-in page" in await refusal(converter, tmp_path / "report.pdf", page)


async def test_a_table_without_a_header_gets_its_first_row(converter: Converter, tmp_path: Path) -> None:
    page = b"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
    text = await text_of(converter, tmp_path / "a.html", page)
    assert text.splitlines()[0] == "| a | b |"


async def test_a_mail_is_read_with_its_text_attachments(converter: Converter, tmp_path: Path) -> None:
    mail = (
        b"From: ann@example.org\nSubject: =?utf-8?q?K=C3=BCndigung?=\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain\n\nSee below.\n'
        b'--x\nContent-Type: text/plain\nContent-Disposition: attachment; filename="terms.txt"\n\nThirty days.\n--x--\n'
    )
    text = await text_of(converter, tmp_path / "a.eml", mail)
    assert text.startswith("# Kündigung\n\nFrom: ann@example.org")
    assert "See below." in text
    assert "## terms.txt\n\nThirty days." in text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b"\xff\xfe\n\x00", "empty"),
        ("a.bin", bytes(range(256)) * 40, "type can't be read"),
        ("a.pdf", b"%PDF-1.7\n" + b"x" * 100, "broken"),
        ("a.docx", b"PK\x03\x04" + b"x" * 100, "broken"),
        ("a.png", b"\x89PNG\r\n\x1a\n\x00", "picture"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "old Word file"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "password"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "Workbook".encode("utf-16-le"), "broken"),
        ("a.html", b"<html><body><script>only()</script></body></html>", "no text"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_its_reason(
    converter: Converter, tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    reason = await refusal(converter, tmp_path / name, content)
    assert expected in reason
    assert reason.startswith("it")
    assert ": " in reason


def package(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return target.getvalue()


async def test_zip_bombs_are_refused_before_they_are_unpacked(
    converter: Converter, hurried: Converter, tmp_path: Path
) -> None:
    many = package({f"word/{number}.xml": b"x" for number in range(30)})
    assert "entries" in await refusal(hurried, tmp_path / "a.docx", many)
    large = package({"word/document.xml": b"x" * 2 * MEGABYTE})
    assert "unpacks to more than" in await refusal(hurried, tmp_path / "b.docx", large)
    flat = package({"word/document.xml": b"x" * 40 * MEGABYTE})
    assert "zip bomb" in await refusal(converter, tmp_path / "c.docx", flat)
    lying = bytearray(package({"[Content_Types].xml": b"x" * 40 * MEGABYTE}))
    place = lying.rfind((40 * MEGABYTE).to_bytes(4, "little"))
    lying[place : place + 4] = (100).to_bytes(4, "little")
    assert "broken" in await refusal(converter, tmp_path / "d.docx", bytes(lying))


async def test_a_file_that_takes_too_long_is_refused(hurried: Converter, tmp_path: Path) -> None:
    deep = b"<div>" * 100_000 + b"needle"
    assert "longer than 0.4 seconds" in await refusal(hurried, tmp_path / "a.html", deep)


async def test_a_file_with_too_much_text_is_refused(hurried: Converter, tmp_path: Path) -> None:
    assert "more text" in await refusal(hurried, tmp_path / "a.txt", b"word " * 100_000)


async def test_a_file_that_needs_too_much_memory_is_refused(cramped: Converter, tmp_path: Path) -> None:
    rows = b"a,b,c,d,e,f,g\n" * 1_000_000
    assert "memory" in await refusal(cramped, tmp_path / "a.csv", rows)


async def test_an_entity_bomb_is_no_bomb(converter: Converter, tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "lol">{entities}]><x>kept &e11;</x>'
    assert len(await text_of(converter, tmp_path / "a.xml", bomb.encode())) < 2000


async def test_a_file_cannot_make_the_child_read_another(converter: Converter, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret words")
    xml = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><x>kept &e;</x>'
    assert "secret words" not in await text_of(converter, tmp_path / "a.xml", xml.encode())


async def test_files_are_converted_side_by_side(converter: Converter, tmp_path: Path) -> None:
    texts = [f"number {number}" for number in range(20)]
    found = await asyncio.gather(
        *(text_of(converter, tmp_path / f"{number}.txt", text.encode()) for number, text in enumerate(texts))
    )
    assert found == texts


async def test_conversion_goes_on_when_the_warm_parent_is_killed(converter: Converter, tmp_path: Path) -> None:
    before = warm_parents()
    for parent in before:
        parent.kill()
    assert await text_of(converter, tmp_path / "a.txt", b"still here") == "still here"
    assert not set(before) & set(warm_parents())


async def test_a_child_dies_with_its_parent_and_the_parent_with_the_bot(tmp_path: Path) -> None:
    others = set(warm_parents())
    async with Converter(FileLimits()) as converter:
        await text_of(converter, tmp_path / "a.txt", b"words")
        (parent,) = set(warm_parents()) - others
        slow = asyncio.create_task(text_of(converter, tmp_path / "b.html", b"<div>" * 100_000 + b"x"))
        children = await eventually(parent)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
    gone, alive = psutil.wait_procs([parent, *children], timeout=5)
    assert alive == []
    assert len(gone) >= 2


async def eventually(parent: psutil.Process) -> list[psutil.Process]:
    for _ in range(200):
        if children := parent.children():
            return children
        await asyncio.sleep(0.02)
    raise AssertionError("no child was forked")


def warm_parents() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "ingest.warm" in child.cmdline()]
