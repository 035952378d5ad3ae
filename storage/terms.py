"""Text as the stores search it: cut into terms here, once, for every store and for the question alike.

A term never contains whitespace: a store joins terms with spaces and tokenises at whitespace.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import unicodedata
from collections.abc import Iterator

import Stemmer

from storage.documents import means_nothing
from storage.models import Passage

TERMS_VERSION = 1  # counts up whenever `cut` or `indexed_text` gives something else for the same input
LONGEST_TERM = 64
_MOST_PIECES = 4  # of letters and digits in turn: what has more is a hash

# Han, kana, Hangul, Thai, Lao, Khmer, Myanmar: no spaces between words, or endings glued to them
_SPACELESS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff\u0e01-\u0e2f\u0e30-\u0e33\u0e40-\u0e46\u0e50-\u0e59"
    "\u0e81-\u0eb3\u0ebd-\u0ec6\u0ed0-\u0edf\u1780-\u17b3\u17d7\u17dc\u17e0-\u17e9\u1000-\u1049\u1050-\u109d"
    "\ua9e0-\ua9fe\uaa60-\uaa7f"
)
_UNSEEN = re.compile("[\u00ad\u200c\u200d\u2060\ufeff\u0640\u064b-\u0652\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7]")
_THOUSANDS = re.compile(r"\d(?<![\d.,']\d)\d{0,2}(?:(?:,\d{3})+|(?:'\d{3})+)(?![\d,'])")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+(?:(?:[.'-]|_+)[A-Za-z0-9]+)*")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_JOINT = re.compile(r"[._]+")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\d']+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_WORD = re.compile(r"[^\W_]+")
_TELLING = re.compile(r"^[^\W\d]{3,}$|^(?:19|20)\d\d$|[\u0900-\uffff]")
_ASKED_FOR = re.compile(
    r"\b(?:what|which)\s+(?:kind|type|sort)s?\s+of\b|\bthe\s+names?\s+of\b"
    r"|(?P<what>\bwhat(?:['’]s|\s+(?:is|are|was|were))\b[^?.!]*)\b(?:called|named)\s*\?*\s*$",  # not: who was called?
    re.IGNORECASE,
)
_LAST_PRINTED_PLANE = 0x1FFFF

STOP_CHARACTERS = frozenset(
    "的了是在和有吗呢吧啊么什哪谁怎几我你您他她它们这那个与及或也都就被把从对于其之为以而请问はがをにでともの"
)

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could did do does doing done down during each else few for from further had has have having he her here
    hers him his how i if in into is it its itself just let like many me more most much my no nor not of off on once
    only or other our ours out over own per please same she should so some such tell than that the their theirs them
    then there these they this those through to too under until up upon very was we were what when where which while
    who whom whose why will with within without would yes yet you your yours
    don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't i'm it's what's that's there's
    aber als auch auf aus bei beim bis da damit dann das dass dein dem der des dich dir doch du durch ein eine einem
    einen einer eines er es etwas für gibt haben hatte hier ich ihm ihn ihr ihre im ist ja jede jeder kann kein keine
    können mein mich mir mit muss nach nicht noch nur ob oder ohne sein seine sich sie sind soll über um und uns
    unser unter vom von vor wann warum was weil welche welchem welchen welcher welches wem wen wenn wer werden wie
    wieviel wir wird wo wurde zu zum zur zwischen
    什么 多少 如何 怎么 怎样 为什么 哪些 哪个 哪里 是否 可以 我们 你们 他们 这个 那个 以及 です ます から まで
    """.split()
)


def cut(text: str) -> list[str]:
    """The terms of a text in its order, repeated as often as they stand there."""
    return list(_terms(_clean(text)))


@functools.lru_cache(maxsize=1000)
def normalized(text: str) -> str:
    """The text that terms are cut from, in small letters."""
    return _clean(text).casefold()


def content_terms(question: str) -> list[str]:
    """The terms of a question that say what it is about: without function words, and without those that ask for a kind
    or a name."""
    terms = cut(_ASKED_FOR.sub(lambda found: found["what"] or " ", question))
    return [term for term in terms if term not in _stop_terms() and not STOP_CHARACTERS.intersection(term)]


def digest(text: str) -> str:
    """Names a text by its content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def indexed_text(passage: Passage) -> str:
    """A passage as search sees it, for its terms and its vector alike."""
    headings = " / ".join(heading for heading in passage.headings if heading not in passage.text)
    return "\n".join(part for part in (_title(passage.name), headings, passage.text) if part)


@functools.lru_cache(maxsize=50_000)
def _title(name: str) -> str:
    """The words of a document's name, and its year; "" for a name that means nothing."""
    if means_nothing(name):
        return ""
    stem = _EXTENSION.sub("", unicodedata.normalize("NFKC", name))
    return " ".join(word for word in _WORD.findall(stem) if _TELLING.search(word))


def _clean(text: str) -> str:
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).replace("\u2019", "'").replace("\u2010", "-")
    return _THOUSANDS.sub(lambda match: match[0].replace(",", "").replace("'", ""), text)


def _terms(text: str) -> Iterator[str]:
    if text.isascii():  # by a simpler expression, in a third of the time
        for word in _ASCII_TOKEN.findall(text):
            yield from _word(word)
        return
    for match in _token().finditer(text):
        if match.lastgroup == "spaceless":
            yield from _characters(match[0])
        else:
            yield from _word(match[0])


@functools.cache
def _token() -> re.Pattern[str]:
    """A run of a spaceless script, or a word or identifier of any other."""
    marks = _marks()
    letter = rf"(?:(?![{_SPACELESS}])[^\W_])"
    word = rf"{letter}(?:{letter}|[{marks}])*"
    return re.compile(
        rf"(?P<spaceless>[{_SPACELESS}](?:[{_SPACELESS}]|[{marks}])*)|(?P<word>{word}(?:(?:[.'-]|_+){word})*)"
    )


@functools.cache
def _cluster() -> re.Pattern[str]:
    """A character with the marks that are written on it."""
    return re.compile(rf"[^{_marks()}][{_marks()}]*")


@functools.cache
def _marks() -> str:
    """The combining marks as the inside of a character class; Python's \\w leaves them out."""
    marks = {number for number in range(_LAST_PRINTED_PLANE) if unicodedata.category(chr(number)).startswith("M")}
    starts = sorted(number for number in marks if number - 1 not in marks)
    ends = sorted(number for number in marks if number + 1 not in marks)
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


def _characters(run: str) -> Iterator[str]:
    clusters: list[str] = _cluster().findall(run)
    for place, cluster in enumerate(clusters):
        yield cluster
        if place + 1 < len(clusters):
            yield cluster + clusters[place + 1]


@functools.lru_cache(maxsize=50_000)
def _word(word: str) -> tuple[str, ...]:
    return tuple(_parts(word))


def _parts(word: str) -> Iterator[str]:
    hyphened = word.split("-")
    if len(hyphened) > 1 and _DIGIT.search(word):
        yield "".join(hyphened).casefold()[:LONGEST_TERM]  # IL-6 is IL6
    for part in hyphened:
        yield from _identifier(part)


def _identifier(word: str) -> Iterator[str]:
    if _NUMBER.fullmatch(word):
        yield word[:LONGEST_TERM]
        return
    parts = [part for joined in _JOINT.split(word) for part in _HUMP.split(joined)]
    if len(parts) > 1:
        yield word.casefold()[:LONGEST_TERM]
    for part in parts:
        yield _stem(part)
        if _DIGIT.search(part) and not part.isdigit():
            pieces = _LETTERS_OR_DIGITS.findall(part)
            yield from map(_stem, pieces if len(pieces) <= _MOST_PIECES else ())


def _stem(word: str) -> str:
    return _stemmer().stemWord(word.casefold()[:LONGEST_TERM]).replace("'", "") or word


_of_thread = threading.local()


def _stemmer() -> Stemmer.Stemmer:
    """One for each thread: a stemmer isn't safe to share."""
    if not hasattr(_of_thread, "stemmer"):
        _of_thread.stemmer = Stemmer.Stemmer("english", 0)
    stemmer: Stemmer.Stemmer = _of_thread.stemmer
    return stemmer


@functools.cache
def _stop_terms() -> frozenset[str]:
    return STOP_WORDS | frozenset(term for word in STOP_WORDS for term in cut(word))
