"""PDF, page by page, by PDFium."""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from ingest.parts import Converted, Heading, Part, Refused
from ingest.readers.reporting import Report
from ingest.readers.text import clean

_BOOKMARKS = 5000
_HYPHENATED = re.compile("(?<=\\w)[\ufffe\x02]\\s*\n?(?=\\w)")
_IDEOGRAPH = "[\u2e80-\u303f\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60]"
_SPACED_OUT = re.compile(f"{_IDEOGRAPH}(?: {_IDEOGRAPH}){{3,}}")  # set with a space between any two characters
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_LIGATURE = 3  # characters that one drawing stands for, at most
_NOT_READABLE = "it is broken: open it, export it as PDF again and post that"


def read_pdf(path: Path, report: Report) -> Converted:
    document = _open(path)
    bookmarks = _bookmarks(document)
    parts, unreadable = [], []
    total = len(document)
    for number in range(1, total + 1):
        text, is_picture = _page(document, number)
        if text.strip():
            parts.append(_part(number, text, bookmarks[number]))
        elif is_picture:
            unreadable.append(number)
        report(number, total)
    document.close()
    if not parts:
        raise Refused(_why_nothing(unreadable))
    return Converted(tuple(parts), total, _note(unreadable))


def _open(path: Path) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise Refused("it is protected with a password: remove the password and post it again") from error
        raise Refused(_NOT_READABLE) from error
    if len(document) == 0:
        raise Refused(_NOT_READABLE)
    return document


def _page(document: pypdfium2.PdfDocument, number: int) -> tuple[str, bool]:
    """A page's text, and whether it is a picture without any."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return "", True
    with_text = page.get_textpage()
    text = with_text.get_text_bounded()
    for turned in _turned(with_text) if _RIGHT_TO_LEFT.search(text) else ():
        text = text.replace(turned, turned[::-1])
    text = clean(_HYPHENATED.sub("", text))
    text = _SPACED_OUT.sub(lambda match: match[0].replace(" ", ""), text)
    with_text.close()
    text = "\n".join([text.rstrip(), *_form_values(page)]).strip("\n")
    is_picture = not text.strip() and next(page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE]), None) is not None
    page.close()
    return text, is_picture


def _turned(page: pypdfium2.PdfTextpage) -> Iterator[str]:
    """Words that the page gives in letters beside their picture: PDFium turns them from right to left though they are
    no drawing. All their characters stand in one box."""
    run: str = ""
    box: tuple[float, ...] | None = None
    for place in range(page.count_chars()):
        character = page.get_text_range(place, 1)
        here = page.get_charbox(place) if _RIGHT_TO_LEFT.fullmatch(character) else None
        if here is None or here != box:
            if len(run) > _LIGATURE:
                yield run
            run, box = "", here
        run += character if here is not None else ""
    if len(run) > _LIGATURE:
        yield run


def _form_values(page: pypdfium2.PdfPage) -> Iterator[str]:
    """What was filled in; a page's own text doesn't have it."""
    for place in range(min(pdfium.FPDFPage_GetAnnotCount(page), _BOOKMARKS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, place)
        if not annotation:
            continue
        if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_WIDGET:
            name, value = _annotated(annotation, b"T"), _annotated(annotation, b"V")
            if value and value != "Off":
                yield f"{name}: {value}" if name else value
        pdfium.FPDFPage_CloseAnnot(annotation)


def _annotated(annotation: object, key: bytes) -> str:
    size = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return clean(buffer.raw[: size - 2].decode("utf-16-le", "replace"))


def _bookmarks(document: pypdfium2.PdfDocument) -> defaultdict[int, list[tuple[int, str]]]:
    """The outline: for each page the levels and titles of the headings that it has."""
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for place, bookmark in enumerate(document.get_toc(max_depth=6)):
        if place == _BOOKMARKS:
            break
        target = bookmark.get_dest()
        page = target.get_index() if target is not None else None
        if page is not None:
            found[page + 1].append((bookmark.level + 1, bookmark.get_title()))
    return found


def _part(number: int, text: str, bookmarks: list[tuple[int, str]]) -> Part:
    headings: list[Heading] = []
    begin = 0
    for level, title in bookmarks:
        words = title.split()[:40]
        line = re.compile(r"^[^\n]{0,20}?" + r"\s+".join(map(re.escape, words)), re.MULTILINE | re.IGNORECASE)
        match = line.search(text, begin) if words else None
        if match is not None:
            headings.append(Heading(match.start(), level, title))
            begin = match.end()
    return Part(number, f"page {number}", text, markup=False, flows=True, headings=tuple(headings))


def _why_nothing(pictures: list[int]) -> str:
    if pictures:
        return "it is scanned, pictures without text: run text recognition (OCR) over it and post the result"
    return "it has no text: post a version with text"


def _note(unreadable: list[int]) -> str:
    if not unreadable:
        return ""
    shown = ", ".join(str(number) for number in unreadable[:10]) + (" …" if len(unreadable) > 10 else "")
    return f"no text on page {shown}" if len(unreadable) == 1 else f"no text on pages {shown}"
