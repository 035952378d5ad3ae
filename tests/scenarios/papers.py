"""The files that people post: small documents beside this file, and formats that are written here as needed."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from openpyxl import Workbook
from PIL import Image, ImageDraw
from pptx import Presentation
from pptx.util import Inches

from tests.scenarios.stage import File

DOCUMENTS = Path(__file__).parent / "documents"
MEGABYTE = 1024 * 1024
CONTRACTS = ("contract_aldgate.md", "contract_birchwood.md", "contract_corvane.md")


def paper(name: str) -> File:
    """A document of the folder."""
    return File(name, (DOCUMENTS / name).read_bytes())


def changed(file: File, before: str, after: str) -> File:
    """The file as its author has changed it."""
    text = file.content.decode()
    assert before in text
    return File(file.name, text.replace(before, after).encode())


def note(name: str, text: str) -> File:
    return File(name, text.encode())


def pdf(name: str, pages: Sequence[str]) -> File:
    """A PDF with these lines of text on its pages."""
    return File(name, _pdf([_text_page(page) for page in pages]))


def scanned_pdf(name: str, text: str) -> File:
    """A PDF of one picture, without a letter of text."""
    picture = Image.new("L", (620, 877), 255)
    ImageDraw.Draw(picture).text((60, 80), text, fill=0)
    jpeg = io.BytesIO()
    picture.save(jpeg, "JPEG")
    image = _stream(
        jpeg.getvalue(),
        "/Type /XObject /Subtype /Image /Width 620 /Height 877 /ColorSpace /DeviceGray"
        " /BitsPerComponent 8 /Filter /DCTDecode",
    )
    return File(name, _pdf([b"q 595 0 0 842 0 0 cm /Scan Do Q"], image=image))


def locked_pdf(name: str) -> File:
    """A PDF that asks for a password before it shows anything."""
    return File(name, _pdf([_text_page("The safe is opened with 4711.")], password=b"a secret"))


def docx(name: str, paragraphs: Sequence[str]) -> File:
    """A Word file; a paragraph that begins with "# " is a heading."""
    return File(name, _zip({**_WORD, "word/document.xml": _word_body(paragraphs)}))


def exploding_docx(name: str, megabytes: int) -> File:
    """A small Word file that unpacks to this many megabytes."""
    body = _word_body(["Quarterly figures."]).replace(
        b"</w:body>", b"<!--" + b"0" * megabytes * MEGABYTE + b"--></w:body>"
    )
    return File(name, _zip({**_WORD, "word/document.xml": body}))


def xlsx(name: str, sheets: Mapping[str, Sequence[Sequence[str | int]]]) -> File:
    book = Workbook()
    book.remove(book.worksheets[0])
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return File(name, out.getvalue())


def pptx(name: str, slides: Sequence[tuple[str, str]]) -> File:
    """Slides of a title and a text."""
    show = Presentation()
    for title, text in slides:
        slide = show.slides.add_slide(show.slide_layouts[5])
        assert slide.shapes.title is not None
        slide.shapes.title.text = title
        slide.shapes.add_textbox(Inches(1), Inches(2), Inches(8), Inches(4)).text_frame.text = text
    out = io.BytesIO()
    show.save(out)
    return File(name, out.getvalue())


_WORD = {
    "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    b'<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    b'wordprocessingml.document.main+xml"/>'
    b'<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    b'wordprocessingml.styles+xml"/></Types>',
    "_rels/.rels": b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    b' Target="word/document.xml"/></Relationships>',
    "word/_rels/document.xml.rels": b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"'
    b' Target="styles.xml"/></Relationships>',
    "word/styles.xml": b'<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    b'<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>',
}


def _word_body(paragraphs: Sequence[str]) -> bytes:
    def xml(text: str) -> str:
        style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if text.startswith("# ") else ""
        return f"<w:p>{style}<w:r><w:t>{escape(text.removeprefix('# '))}</w:t></w:r></w:p>"

    body = "".join(map(xml, paragraphs))
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'.encode()


def _zip(entries: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def _text_page(text: str) -> bytes:
    lines = (line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.splitlines())
    shown = " ".join(f"({line}) Tj T*" for line in lines)
    return f"BT /Body 11 Tf 14 TL 60 780 Td {shown} ET".encode("latin-1")


def _stream(content: bytes, entries: str = "") -> bytes:
    return f"<< /Length {len(content)} {entries} >>\nstream\n".encode() + content + b"\nendstream"


def _pdf(pages: Sequence[bytes], image: bytes = b"", password: bytes = b"") -> bytes:
    """Objects: 1 catalog, 2 pages, 3 font, 4 image, then a page and its contents in turn."""
    first = 5
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        image or b"null",
    ]
    lock = _Lock(password) if password else None
    for number, content in enumerate(pages):
        at = first + 2 * number + 1
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {at} 0 R"
            " /Resources << /Font << /Body 3 0 R >> /XObject << /Scan 4 0 R >> >> >>".encode()
        )
        objects.append(_stream(lock.encrypt(at, content) if lock else content))
    trailer = f"/Root 1 0 R{lock.trailer if lock else ''}"
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(objects) + 1} {trailer} >>\n"
    return bytes(out) + f"{end}startxref\n{len(out)}\n%%EOF\n".encode()


class _Lock:
    """PDF's standard security handler, revision 2: RC4 with a key of 40 bits."""

    PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
    PERMISSIONS = -4
    ID = b"0123456789abcdef"

    def __init__(self, password: bytes) -> None:
        padded = (password + self.PADDING)[:32]
        owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
        allowed = self.PERMISSIONS.to_bytes(4, "little", signed=True)
        self._key = hashlib.md5(padded + owner + allowed + self.ID).digest()[:5]
        user = _rc4(self._key, self.PADDING)
        self.trailer = (
            f" /ID [<{self.ID.hex()}> <{self.ID.hex()}>] /Encrypt << /Filter /Standard /V 1 /R 2"
            f" /O <{owner.hex()}> /U <{user.hex()}> /P {self.PERMISSIONS} >>"
        )

    def encrypt(self, number: int, content: bytes) -> bytes:
        return _rc4(hashlib.md5(self._key + number.to_bytes(3, "little") + b"\0\0").digest()[:10], content)


def _rc4(key: bytes, content: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in content:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
