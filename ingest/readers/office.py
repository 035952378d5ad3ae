"""Word, PowerPoint and Excel files."""

from __future__ import annotations

import datetime
import io
import posixpath
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lxml.etree
import mammoth
import openpyxl
import xlrd
from markitdown import StreamInfo
from markitdown.converters import DocxConverter, HtmlConverter, PptxConverter

from ingest.parts import Converted, Part, Refused
from ingest.readers.broken import MALFORMED
from ingest.readers.reporting import Report
from ingest.readers.text import WORD_FOR_WORD, clean, table, with_headers

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_STRICT = (
    (b"http://purl.oclc.org/ooxml/officeDocument/", b"http://schemas.openxmlformats.org/officeDocument/2006/"),
    (b"http://purl.oclc.org/ooxml/spreadsheetml/main", b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"),
    (b"http://purl.oclc.org/ooxml/drawingml/", b"http://schemas.openxmlformats.org/drawingml/2006/"),
)
_ASIDE_OF_DOCUMENT = ("header", "footer", "diagramData", "chart", "comments")
_ASIDE_OF_SLIDE = ("diagramData", "chart")
_ASIDE_OF_SHEET = ("comments", "drawing", "chart", "diagramData")
_CHART_DATA = ("cat", "val", "xVal", "yVal", "bubbleSize")  # a chart of a workbook shows what its sheets say better
_TEXT_TAGS = frozenset(("t", "v"))
_PARAGRAPH_TAGS = frozenset(("p", "comment", "ser", "pt"))


def read_docx(path: Path) -> Converted:
    with zipfile.ZipFile(path) as package:
        main = _main_part(package)
        text = _plain_docx(path) if b"oMath" not in package.read(main) else ""
        text = with_headers(text or _any_docx(path))
        text = "\n\n".join([text, *_not_yet_in(text, _asides(package, main, _ASIDE_OF_DOCUMENT))])
    return Converted((Part(None, "", text),))


def _plain_docx(path: Path) -> str:
    """What MarkItDown does, in half the time: without looking for formulas. "" where a file needs its repairs."""
    try:
        with path.open("rb") as stream:
            html = mammoth.convert_to_html(stream, style_map=mammoth.read_embedded_style_map(stream) or "").value
        return HtmlConverter().convert_string(html, **WORD_FOR_WORD).markdown
    except MALFORMED:
        return ""


def _any_docx(path: Path) -> str:
    with path.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter = DocxConverter()  # type: ignore[no-untyped-call]
        return converter.convert(stream, StreamInfo(extension=".docx"), **WORD_FOR_WORD).markdown


def read_pptx(path: Path, report: Report) -> Converted:
    with zipfile.ZipFile(path) as package:
        slides = _slides(package)
        texts = _marked_slides(path, len(slides)) or [_raw_text(package, slide) for slide in slides]
        parts = []
        for number, (slide, text) in enumerate(zip(slides, texts, strict=True), 1):
            beside = _not_yet_in(text, _asides(package, slide, _ASIDE_OF_SLIDE))
            parts.append(Part(number, f"slide {number}", "\n\n".join([text, *beside]).strip()))
            report(number, len(slides))
    return Converted(tuple(parts), len(slides))


def _marked_slides(path: Path, slides: int) -> list[str]:
    """MarkItDown's text of each slide; nothing where it can't read the file."""
    try:
        with path.open("rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converter = PptxConverter()  # type: ignore[no-untyped-call]
            text = converter.convert(stream, StreamInfo(extension=".pptx"), **WORD_FOR_WORD).markdown
    except MALFORMED:
        return []
    kept: list[re.Match[str]] = []
    for mark in _SLIDE.finditer(text):
        if int(mark[1]) == len(kept) + 1:  # a slide may itself say such a thing
            kept.append(mark)
    ends = [*(mark.start() for mark in kept[1:]), len(text)]
    found = [text[mark.end() : end].strip() for mark, end in zip(kept, ends, strict=True)]
    return found if len(found) == slides else []


def _slides(package: zipfile.ZipFile) -> list[str]:
    """The slides' parts in the order in which they are shown."""
    main = _main_part(package)
    related = _relations(package, main)
    order = [
        related[name][1]
        for element in _xml(package, main).iter("{*}sldId")
        for key, name in element.attrib.items()
        if key.endswith("}id") and name in related
    ]
    return [slide for slide in order if slide in package.namelist()]


def read_xlsx(path: Path, report: Report) -> Converted:
    with zipfile.ZipFile(path) as package:
        content = _transitional(package) or io.BytesIO(path.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(content, read_only=True, data_only=True, keep_links=False)
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    parts = []
    with zipfile.ZipFile(content) as package:
        asides = _sheet_asides(package)
        for number, sheet in enumerate(visible, 1):
            sheet.reset_dimensions()
            rows = [[_cell(cell) for cell in row] for row in sheet.iter_rows()]
            text = "\n".join(table(rows))
            beside = _not_yet_in(text, asides.get(sheet.title, []))
            parts.append(Part(number, f"sheet {sheet.title}", "\n\n".join([text, *beside])))
            report(number, len(visible))
    return Converted(tuple(parts), len(visible))


def _cell(cell: Any) -> str:
    value = cell.value
    if isinstance(value, float) and "%" in (cell.number_format or ""):
        return f"{value * 100:.10g}%"
    return _shown(value)


def _shown(value: object) -> str:
    """A cell's value as a person would read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ", "minutes")
    return clean(str(value))


def read_xls(path: Path, report: Report) -> Converted:
    try:
        book = xlrd.open_workbook(str(path), on_demand=True, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        if "encrypted" in str(error).lower():
            raise Refused("it is protected with a password: remove the password and post it again") from error
        raise
    names = [name for place, name in enumerate(book.sheet_names()) if _is_visible(book, place)]
    parts = []
    for number, name in enumerate(names, 1):
        sheet = book.sheet_by_name(name)
        rows = [
            [_xls_cell(sheet.cell(row, column), book.datemode) for column in range(sheet.ncols)]
            for row in range(sheet.nrows)
        ]
        parts.append(Part(number, f"sheet {name}", "\n".join(table(rows))))
        book.unload_sheet(name)
        report(number, len(names))
    return Converted(tuple(parts), len(names))


def _is_visible(book: xlrd.book.Book, place: int) -> bool:
    return bool(book.sheet_by_index(place).visibility == 0)


def _xls_cell(cell: xlrd.sheet.Cell, datemode: int) -> str:
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return _shown(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return _shown(xlrd.xldate_as_datetime(cell.value, datemode))
        except (ValueError, OverflowError):
            return _shown(cell.value)
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    return _shown(cell.value)


def _transitional(package: zipfile.ZipFile) -> io.BytesIO | None:
    """A workbook in the strict form of the standard, rewritten in the form that everybody reads."""
    if b"purl.oclc.org/ooxml/spreadsheetml" not in package.read(_main_part(package)):
        return None
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as rewritten:
        for name in package.namelist():
            content = package.read(name)
            if name.endswith((".xml", ".rels")):
                for strict, transitional in _STRICT:
                    content = content.replace(strict, transitional)
            rewritten.writestr(name, content)
    return target


def _sheet_asides(package: zipfile.ZipFile) -> dict[str, list[str]]:
    """Comments, text boxes and charts of each sheet, by its name."""
    main = _main_part(package)
    related = _relations(package, main)
    found: dict[str, list[str]] = {}
    for sheet in _xml(package, main).iter("{*}sheet"):
        identifier = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
        if identifier in related:
            found[sheet.get("name", "")] = _asides(package, related[identifier][1], _ASIDE_OF_SHEET)
    return found


# the package behind all three


def _main_part(package: zipfile.ZipFile) -> str:
    related = _relations(package, "")
    return next((target for kind, target in related.values() if kind == "officeDocument"), "")


def _relations(package: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """What a part refers to within the package: for each id the kind of relation and the part's name."""
    folder, name = posixpath.split(part)
    listed = posixpath.join(folder, "_rels", f"{name}.rels")
    if listed not in package.namelist():
        return {}
    found = {}
    for relation in _xml(package, listed).iter("{*}Relationship"):
        if relation.get("TargetMode") != "External":
            target = relation.get("Target", "")
            absolute = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], absolute)
    return found


def _xml(package: zipfile.ZipFile, part: str) -> lxml.etree._Element:
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    root = lxml.etree.fromstring(package.read(part), parser)
    return root if root is not None else lxml.etree.Element("nothing")


def _asides(package: zipfile.ZipFile, part: str, kinds: Sequence[str], deep: int = 2) -> list[str]:
    """The text of the parts that this one refers to: it stands beside the main text."""
    found: list[str] = []
    for kind, target in _relations(package, part).values():
        if kind in kinds and target in package.namelist():
            found.append(_raw_text(package, target, without=_CHART_DATA if kinds is _ASIDE_OF_SHEET else ()))
            if deep:
                found += _asides(package, target, kinds, deep - 1)
    return found


def _raw_text(package: zipfile.ZipFile, part: str, without: Sequence[str] = ()) -> str:
    """Every paragraph of a part, whatever it is a part of."""
    root = _xml(package, part)
    for element in list(root.iter(*(f"{{*}}{tag}" for tag in without))) if without else ():
        element.clear()
    return "\n".join(line for line in _paragraphs(root) if line.strip())


def _paragraphs(root: lxml.etree._Element) -> Iterator[str]:
    words: list[str] = []
    for element in root.iter("{*}*"):
        name = element.tag.rpartition("}")[2]
        if name in _PARAGRAPH_TAGS and words:
            yield clean("".join(words))
            words = []
        if name in _TEXT_TAGS and element.text:
            words.append(element.text)
    yield clean("".join(words))


def _not_yet_in(text: str, others: Sequence[str]) -> Iterator[str]:
    """The lines of other texts that this one doesn't have."""
    for other in dict.fromkeys(others):
        missing = [line for line in dict.fromkeys(other.splitlines()) if line.strip() and line.strip() not in text]
        if missing:
            yield "\n".join(missing)
