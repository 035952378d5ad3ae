"""What a file is: its first bytes decide, its name only where they say nothing."""

from __future__ import annotations

import zipfile
from enum import StrEnum
from pathlib import Path, PurePosixPath

from ingest.limits import FileLimits
from ingest.parts import Refused

BROKEN = "it is broken or was cut short: open it, save it again and post that"
PASSWORD = "it is protected with a password: remove the password and post it again"
_SAVE_AS = "it is {what}, which can't be read: {advice}"


class Kind(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLS = "xls"
    HTML = "html"
    CSV = "csv"
    NOTEBOOK = "notebook"
    MAIL = "mail"
    XML = "xml"
    CODE = "code"
    TEXT = "text"


_PAGES = frozenset(("html", "htm", "xhtml"))
_BY_NAME = {
    **dict.fromkeys(_PAGES, Kind.HTML),
    **dict.fromkeys(("csv", "tsv", "tab"), Kind.CSV),
    **dict.fromkeys(("xml", "nxml", "xsd", "rss", "atom"), Kind.XML),
    "ipynb": Kind.NOTEBOOK,
    "eml": Kind.MAIL,
}
_CODE = {
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("json", "ndjson", "jsonl", "geojson"), "json"),
    **dict.fromkeys(("sh", "bash", "zsh"), "sh"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "cc", "cxx", "hpp"), "cpp"),
    **dict.fromkeys(("ini", "cfg", "conf", "properties", "env"), "ini"),
    **dict.fromkeys(("log",), ""),
    **{
        name: name
        for name in (
            "java kt swift go rs rb php pl lua r jl scala cs sql css scss less toml tex bat ps1 diff patch"
            " proto graphql tf hcl gradle dart ex exs erl hs clj vue svelte makefile dockerfile"
        ).split()
    },
}

_SIGNATURES = (
    (b"{\\rtf", "a rich text file", "save it as .docx or PDF and post that"),
    (b"\x89PNG", "a picture", "post its text, or a PDF with text"),
    (b"\xff\xd8\xff", "a picture", "post its text, or a PDF with text"),
    (b"GIF8", "a picture", "post its text, or a PDF with text"),
    (b"BM", "a picture", "post its text, or a PDF with text"),
    (b"II*\x00", "a picture", "post its text, or a PDF with text"),
    (b"MM\x00*", "a picture", "post its text, or a PDF with text"),
    (b"ID3", "a sound recording", "post a transcript"),
    (b"fLaC", "a sound recording", "post a transcript"),
    (b"OggS", "a sound recording", "post a transcript"),
    (b"\xff\xfb", "a sound recording", "post a transcript"),
    (b"\x1aE\xdf\xa3", "a video", "post a transcript"),
    (b"\x1f\x8b", "an archive", "unpack it and post the files in it"),
    (b"7z\xbc\xaf", "an archive", "unpack it and post the files in it"),
    (b"Rar!", "an archive", "unpack it and post the files in it"),
    (b"BZh", "an archive", "unpack it and post the files in it"),
    (b"\xfd7zXZ", "an archive", "unpack it and post the files in it"),
    (b"\x28\xb5\x2f\xfd", "an archive", "unpack it and post the files in it"),
    (b"SQLite format 3", "a database", "export the tables as CSV and post those"),
    (b"PAR1", "a database", "export the tables as CSV and post those"),
    (b"\x7fELF", "a program", "post its documentation"),
    (b"MZ", "a program", "post its documentation"),
)
_BINARY_MARKS = frozenset((b"BM", b"MZ", b"ID3", b"BZh", b"PAR1", b"GIF8", b"Rar!", b"OggS", b"fLaC"))
_LARGE = 32 * 1024 * 1024  # of an entry, from where on a ratio beyond that of any real file is a bomb's
_RATIO = 200
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STREAMS = (  # of an OLE file, by name: what it is and what to do
    ("PowerPoint Document", "an old PowerPoint file", "save it as .pptx and post that"),
    ("WordDocument", "an old Word file", "save it as .docx and post that"),
    ("__substg1.0_", "an Outlook message", "save it as .eml or PDF and post that"),
)
_PACKAGES = (
    ("wordprocessingml", Kind.DOCX),
    ("presentationml", Kind.PPTX),
    ("spreadsheetml", Kind.XLSX),
)


def extension(name: str) -> str:
    """In lower case without its dot; the whole name where it has none, as in `Makefile`."""
    return (PurePosixPath(name).suffix.lstrip(".") or name).lower()


def language(name: str) -> str:
    return _CODE.get(extension(name), "")


def is_page(name: str) -> bool:
    """Whether a file calls itself a web page."""
    return extension(name) in _PAGES


def identify(path: Path, name: str, limits: FileLimits) -> Kind:
    """The kind of a file. Raises Refused with what else it is, and what to do."""
    with path.open("rb") as stream:
        head = stream.read(4096)
    if not head.strip(b"\x00\t\n\r \xef\xbb\xbf\xff\xfe"):
        raise Refused("it is empty: post it again with its content")
    if b"%PDF-" in head[:1024]:
        return Kind.PDF
    if head.startswith(b"PK"):
        return _in_package(path, limits)
    if head.startswith(_OLE):
        return _in_compound(path)
    _refuse_media(head)
    return _by_words(head, name)


def _refuse_media(head: bytes) -> None:
    for mark, what, advice in _SIGNATURES:
        if head.startswith(mark) and (mark not in _BINARY_MARKS or b"\x00" in head):
            raise Refused(_SAVE_AS.format(what=what, advice=advice))
    if head.startswith(b"RIFF") and b"\x00" in head:
        is_picture = head[8:12] == b"WEBP"
        what, advice = (
            ("a picture", "post its text") if is_picture else ("a sound or video recording", "post a transcript")
        )
        raise Refused(_SAVE_AS.format(what=what, advice=advice))
    if head[4:8] == b"ftyp":
        raise Refused(_SAVE_AS.format(what="a picture or video", advice="post its text or a transcript"))


def _by_words(head: bytes, name: str) -> Kind:
    ending = extension(name)
    if ending in _BY_NAME:
        return _BY_NAME[ending]
    start = head.replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe\t\n\r ")[:512].lower()
    if ending in _CODE:
        return Kind.CODE
    if start.startswith((b"<!doctype html", b"<html")) or (start.startswith(b"<") and b"<html" in start):
        return Kind.HTML
    return Kind.XML if start.startswith(b"<?xml") else Kind.TEXT


def _in_package(path: Path, limits: FileLimits) -> Kind:
    try:
        with zipfile.ZipFile(path) as package:
            check_package(package, limits)
            names = set(package.namelist())
            types = package.read("[Content_Types].xml") if "[Content_Types].xml" in names else b""
            kind = package.read("mimetype")[:100] if "mimetype" in names else b""
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError, LookupError) as error:
        raise Refused(BROKEN) from error
    for mark, found in _PACKAGES:
        if b"officedocument." + mark.encode() in types and b"main+xml" in types and _has_main(names, found):
            return found
    raise Refused(_other_package(names, kind))


def _has_main(names: set[str], kind: Kind) -> bool:
    folder = {Kind.DOCX: "word/", Kind.PPTX: "ppt/", Kind.XLSX: "xl/"}[kind]
    return any(name.lstrip("/").startswith(folder) for name in names)


def _other_package(names: set[str], mimetype: bytes) -> str:
    if b"opendocument" in mimetype:
        what, advice = "an OpenDocument file", "save it as .docx, .pptx, .xlsx or PDF and post that"
    elif b"epub" in mimetype:
        what, advice = "an e-book", "convert it to PDF and post that"
    elif any(name.startswith(("Index/", "Index.zip", "index.apxl", "buildVersionHistory")) for name in names):
        what, advice = "an Apple document", "export it as .docx, .pptx, .xlsx or PDF and post that"
    elif "xl/workbook.bin" in names:
        what, advice = "a binary Excel file", "save it as .xlsx and post that"
    else:
        what, advice = "an archive", "unpack it and post the files in it"
    return _SAVE_AS.format(what=what, advice=advice)


def check_package(package: zipfile.ZipFile, limits: FileLimits) -> None:
    """Raises Refused for a zip bomb. `zipfile` never unpacks more of an entry than the size that was summed here."""
    entries = package.infolist()
    if len(entries) > limits.entries:
        raise Refused(
            f"it has {len(entries):,} entries inside, more than {limits.entries:,}: split it and post the parts"
        )
    if sum(entry.file_size for entry in entries) > limits.unpacked:
        megabytes = limits.unpacked // (1024 * 1024)
        raise Refused(f"it unpacks to more than {megabytes:,} MB, like a zip bomb: split it and post the parts")
    if any(entry.file_size > _LARGE and entry.file_size > _RATIO * entry.compress_size for entry in entries):
        raise Refused("it unpacks to hundreds of times its size, like a zip bomb: save it again and post that")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Refused(PASSWORD)


def _in_compound(path: Path) -> Kind:
    content = path.read_bytes()
    if _names(content, "EncryptedPackage"):
        raise Refused(PASSWORD)
    for stream, what, advice in _STREAMS:
        if _names(content, stream):
            raise Refused(_SAVE_AS.format(what=what, advice=advice))
    if _names(content, "Workbook") or _names(content, "Book"):
        return Kind.XLS
    raise Refused(_SAVE_AS.format(what="an old Office file", advice="save it as .docx, .pptx, .xlsx or PDF"))


def _names(content: bytes, stream: str) -> bool:
    """Whether an OLE file's directory has this stream."""
    return stream.encode("utf-16-le") in content
