"""Plain text in any charset, Markdown, code, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import charset_normalizer

from ingest.parts import Converted, Part, Refused

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_EAST_ASIAN = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
_SAMPLE = 200_000
WORD_FOR_WORD: dict[str, Any] = {"escape_asterisks": False, "escape_underscores": False}  # `a_b` stays `a_b`
_ODD_SHARE = 0.02  # of characters that no text has, above which bytes aren't text

_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|\x0c|\x85|\u2028|\u2029")
_NAMELESS = re.compile(r"^[|\t ]*\|[|\t ]*\n(\|[-:| ]*-[-:| ]*\n)(\|[^\n]*\n?)", re.MULTILINE)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_ASCII_RUN = re.compile(rb"[\x00-\x7f]{64,}")
_META_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)

# The hundreds of characters that make up most of what is written: a wrong charset gives rare ones.
_COMMON_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种"
    "事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公"
    "此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特"
    "代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数"
    "安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达"
    "光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运姓名部门"
    "個們來為國說時會對後經學現當動還進樣實軍無與長機業問關點將兩間體產話應戰開門員論處義條氣題變總電數報結務場計統區隊決書"
    "則聽強難權設記類據邊張該規萬術領確傳師觀讓識帶導爭運日本月年人大会社用者的方法場合部分前後上下中出入時間同事行見思言語"
)


def decode(content: bytes) -> str:
    """The text of a file, whatever its charset. Refused where it is no text at all."""
    text = _decoded(content)
    sample = text[:_SAMPLE]
    odd = len(_CONTROL.findall(sample)) + sample.count("\ufffd")
    if odd > 4 and odd > len(sample) * _ODD_SHARE:
        raise Refused("its type can't be read: post it as PDF, Word, Excel, PowerPoint, Markdown or plain text")
    return clean(text)


def clean(text: str) -> str:
    """Text without what no text needs: control characters, half surrogates, other systems' line ends."""
    return _CONTROL.sub("", _NEWLINE.sub("\n", text)).replace("\ufeff", "")


def _decoded(content: bytes) -> str:
    for mark, charset in _BOMS:
        if content.startswith(mark):
            return content.decode(charset, "replace")
    if b"\x00" in content[:4096] and (wide := _wide(content)):
        return content.decode(wide, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(content) - 4 or _nearly_utf8(content):
            return content.decode("utf-8", "replace")
    return content.decode(_legacy(content), "replace")


def _wide(content: bytes) -> str:
    """UTF-16 or UTF-32 without a mark, by where its zero bytes stand."""
    sample = content[: 4096 - 4096 % 4]
    zeros = [sample[place::4].count(0) for place in range(4)]
    quarter = max(len(sample) // 4, 1)
    full = [count > quarter * 0.3 for count in zeros]
    shapes = {
        (False, True, True, True): "utf-32-le",
        (True, True, True, False): "utf-32-be",
        (False, True, False, True): "utf-16-le",
        (True, False, True, False): "utf-16-be",
    }
    return shapes.get((full[0], full[1], full[2], full[3]), "")


def _nearly_utf8(content: bytes) -> bool:
    """Whether a few bytes alone are no UTF-8, as in a file that was cut or patched."""
    text = content.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return broken * 20 < len(_BEYOND_ASCII.findall(text))


def _legacy(content: bytes) -> str:
    declared = _META_CHARSET.search(content[:2048])
    if declared and _decodes(content, name := declared[1].decode("ascii", "ignore")):
        return name
    scores = {charset: _han_share(content, charset) for charset in _EAST_ASIAN}
    best = max(scores, key=lambda charset: scores[charset])
    if scores[best] >= 0.3:
        return best
    telling = _ASCII_RUN.sub(b" ", content)
    guess = charset_normalizer.from_bytes(telling[:_SAMPLE]).best()
    return guess.encoding if guess is not None else "cp1252"


def _decodes(content: bytes, charset: str) -> bool:
    try:
        content.decode(charset)
    except (LookupError, UnicodeError):
        return False
    return True


def _han_share(content: bytes, charset: str) -> float:
    """How much of what isn't ASCII is common in the languages that use this charset; 0 where it doesn't fit."""
    if not _decodes(content, charset):
        return 0
    beyond = _BEYOND_ASCII.findall(content.decode(charset))[:_SAMPLE]
    good = sum(1 for character in beyond if character in _COMMON_HAN or _is_kana_or_hangul(character, charset))
    return good / max(len(beyond), 1)


def _is_kana_or_hangul(character: str, charset: str) -> bool:
    if charset == "cp949":
        return "\uac00" <= character <= "\ud7a3"
    return charset in ("cp932", "euc_jp") and "\u3041" <= character <= "\u30fe"


def read_text(content: bytes) -> Converted:
    return Converted((Part(None, "", decode(content)),))


def read_code(content: bytes, language: str) -> Converted:
    return Converted((Part(None, "", fenced(decode(content), language)),))


def fenced(text: str, language: str = "") -> str:
    """Text as fenced code, whatever fences are in it."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}" if text.strip() else ""


def read_csv(content: bytes) -> Converted:
    text = decode(content)
    csv.field_size_limit(max(len(text), 1))
    rows = csv.reader(io.StringIO(text), delimiter=_delimiter(text))
    return Converted((Part(None, "", "\n".join(table(list(rows)))),))


def _delimiter(text: str) -> str:
    """The delimiter that gives the most rows of one width."""
    lines = text[:65536].splitlines()[:100]
    return max(",;\t|", key=lambda delimiter: _agreement(lines, delimiter))


def _agreement(lines: list[str], delimiter: str) -> float:
    try:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
    except csv.Error:
        return 0
    width, rows = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(0, 0))
    return rows / max(sum(widths.values()), 1) + min(width, 20) / 100 if width > 1 else 0


def table(rows: list[list[str]]) -> Iterator[str]:
    """Rows as the lines of a Markdown table; the first one with more than one cell is the header.

    What stands alone in a row above it is a title: a paragraph of its own.
    """
    rows = [row for row in (_trimmed(row) for row in rows) if row]
    begins = next((number for number, row in enumerate(rows) if len(row) - row.count("") > 1), len(rows))
    for row in rows[:begins]:
        yield from (" ".join(cell.split()) for cell in row if cell)
        yield ""
    if begins < len(rows):
        width = max(len(row) for row in rows[begins:])
        header = rows[begins]
        yield _line(header + [""] * (min(width, 256) - len(header)))
        yield "|" + "---|" * max(min(width, 256), len(header))
        yield from (_line(row) for row in rows[begins + 1 :])


def with_headers(markdown: str) -> str:
    """Tables whose header is empty, as Word's are, get their first row as one."""
    return _NAMELESS.sub(lambda table: table[2].rstrip("\n") + "\n" + table[1], markdown)


def _trimmed(row: list[str]) -> list[str]:
    row = [cell.strip() for cell in row]
    while row and not row[-1]:
        row.pop()
    return row


def _line(row: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in row) + " |"
