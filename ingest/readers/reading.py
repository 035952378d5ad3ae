"""One file, whatever its kind, as parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ingest.limits import FileLimits
from ingest.parts import Converted, Refused
from ingest.readers import office, pdf, text, web
from ingest.readers.broken import MALFORMED
from ingest.readers.kinds import BROKEN, Kind, identify, is_page, language
from ingest.readers.reporting import Report

_NO_TEXT = "it has no text: post a version with text"
_OF_CONTENT: dict[Kind, Callable[[bytes, str], Converted]] = {
    Kind.HTML: lambda content, name: web.read_html(content, must_be_file=not is_page(name)),
    Kind.CSV: lambda content, _: text.read_csv(content),
    Kind.NOTEBOOK: lambda content, _: web.read_notebook(content),
    Kind.MAIL: lambda content, _: web.read_mail(content),
    Kind.XML: lambda content, _: web.read_xml(content),
    Kind.CODE: lambda content, name: text.read_code(content, language(name)),
    Kind.TEXT: lambda content, _: text.read_text(content),
}
_OF_FILE: dict[Kind, Callable[[Path, Report], Converted]] = {
    Kind.PDF: pdf.read_pdf,
    Kind.DOCX: lambda path, _: office.read_docx(path),
    Kind.PPTX: office.read_pptx,
    Kind.XLSX: office.read_xlsx,
    Kind.XLS: office.read_xls,
}


def read(path: Path, name: str, limits: FileLimits, report: Report) -> Converted:
    """Raises Refused. MemoryError comes out as it is."""
    try:
        kind = identify(path, name, limits)
        reader = _OF_FILE.get(kind)
        converted = reader(path, report) if reader is not None else _OF_CONTENT[kind](path.read_bytes(), name)
    except MALFORMED as error:
        raise Refused(BROKEN) from error
    if not any(part.text.strip() for part in converted.parts):
        raise Refused(_NO_TEXT)
    return converted
