"""One file, whatever its kind, as parts. Readers that take more than a second to import wait for a file of theirs."""

from __future__ import annotations

import importlib
from pathlib import Path

from ingest.limits import FileLimits
from ingest.parts import Converted, Refused
from ingest.readers import pdf, text
from ingest.readers.broken import MALFORMED
from ingest.readers.kinds import BROKEN, Kind, identify, is_page, language
from ingest.readers.reporting import Report

_OFFICE = frozenset((Kind.DOCX, Kind.PPTX, Kind.XLSX, Kind.XLS))
_NO_TEXT = "it has no text: post a version with text"


def import_all() -> None:
    for name in ("office", "web"):
        importlib.import_module(f"ingest.readers.{name}")


def _of_content(kind: Kind, content: bytes, name: str) -> Converted:
    match kind:
        case Kind.CSV:
            return text.read_csv(content)
        case Kind.CODE:
            return text.read_code(content, language(name))
        case Kind.TEXT:
            return text.read_text(content)
    from ingest.readers import web

    match kind:
        case Kind.HTML:
            return web.read_html(content, must_be_file=not is_page(name))
        case Kind.NOTEBOOK:
            return web.read_notebook(content)
        case Kind.MAIL:
            return web.read_mail(content)
    return web.read_xml(content)


def _of_office(kind: Kind, path: Path, report: Report) -> Converted:
    from ingest.readers import office

    match kind:
        case Kind.DOCX:
            return office.read_docx(path)
        case Kind.PPTX:
            return office.read_pptx(path, report)
        case Kind.XLSX:
            return office.read_xlsx(path, report)
    return office.read_xls(path, report)


def read(path: Path, name: str, limits: FileLimits, report: Report) -> Converted:
    """Raises Refused. MemoryError comes out as it is."""
    try:
        kind = identify(path, name, limits)
        if kind is Kind.PDF:
            converted = pdf.read_pdf(path, report)
        elif kind in _OFFICE:
            converted = _of_office(kind, path, report)
        else:
            converted = _of_content(kind, path.read_bytes(), name)
    except MALFORMED as error:
        raise Refused(BROKEN) from error
    if not any(part.text.strip() for part in converted.parts):
        raise Refused(_NO_TEXT)
    return converted
