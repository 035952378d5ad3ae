"""HTML, XML, mails and notebooks."""

from __future__ import annotations

import email
import email.message
import email.policy
import io
import json
import re
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser

import lxml.etree
from bs4 import BeautifulSoup, Tag
from markitdown import StreamInfo
from markitdown.converters import HtmlConverter, IpynbConverter

from ingest.parts import Converted, Part, Refused
from ingest.readers.text import WORD_FOR_WORD, decode, fenced, with_headers

_LOGIN = re.compile(
    r"<input[^>]{0,200}type\s*=\s*[\"']?password|<form[^>]{0,300}action\s*=\s*[\"']?[^\"'>]{0,200}"
    r"(?:log[-_]?in|sign[-_]?in|/auth|saml|sso)\b",
    re.IGNORECASE,
)
_EMBEDDED = re.compile(r"data:[a-z0-9.+/-]{1,60};base64,[A-Za-z0-9+/=%\s]{64,}", re.IGNORECASE)
_LOGIN_PAGE = "it is a sign-in page, not the file itself: open it in a browser, download the file and post that"
_ATTACHED_TEXT = 1_000_000


def read_html(content: bytes, must_be_file: bool = False) -> Converted:
    """`must_be_file`: by its name it should be something else, so that a login page isn't taken for it."""
    source = decode(content)
    if must_be_file and _LOGIN.search(source[:500_000]):
        raise Refused(_LOGIN_PAGE)
    return Converted((Part(None, "", html_to_markdown(source)),))


def html_to_markdown(source: str) -> str:
    source = _EMBEDDED.sub("", source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a document that is too deep is read as plain text
        markdown = _markdown(_content(source)) or _markdown(source)
    return with_headers(markdown) if markdown else _words(source)


def _markdown(source: str) -> str:
    stream = io.BytesIO(source.encode("utf-8", "replace"))
    return HtmlConverter().convert(stream, StreamInfo(charset="utf-8"), **WORD_FOR_WORD).markdown.strip()


_FURNITURE = (
    "nav, header, footer, aside, select, input[role=button], [role=navigation], [role=banner], [role=contentinfo], "
    "[role=search], sup.reference, .mw-editsection, .nav, .navbar, .navigation, .breadcrumb, .breadcrumbs, .footer, "
    ".site-footer, .page-footer, .noprint, .no-print, .d-print-none, .catlinks"
)
_PART_OF_TEXT = ("main", "article", "section")  # a header, footer or aside in one of these belongs to it
_SKIPS = re.compile(r"\s*(?:skip|jump) to \w[\w ]{0,30}\s*", re.IGNORECASE)
_EDITS = re.compile(r"\s*\[\s*(?:edit|bearbeiten|编辑|編輯)(?:\s*\|[^\]]{0,40})?\s*\]\s*", re.IGNORECASE)
_REFERENCE = re.compile(r"\s*\[?\w{1,4}\]?\s*")
_FEW_LANGUAGES = 3


def _content(source: str) -> str:
    """The page without what surrounds its text on every page of its site, and without targets that lead nowhere."""
    soup = BeautifulSoup(source, "html.parser")
    for found in soup.select(_FURNITURE):
        if not found.decomposed and _surrounds(found):
            _drop(found)
    for found in soup.find_all(["sup", "span", "ul"]):
        if not found.decomposed and _says_nothing(found):
            found.decompose()
    _leave_words(soup)
    return soup.decode()


def _leave_words(soup: BeautifulSoup) -> None:
    """Of pictures, and of links that only lead anywhere within their site."""
    for image in soup.find_all("img"):
        image.replace_with(" ".join(str(image.get("alt") or "").split()))
    for link in soup.find_all("a"):
        if not _is_relative(link):
            continue
        if link.get("href") and _SKIPS.fullmatch(link.get_text()):
            link.decompose()
        else:
            link.unwrap()


def _is_relative(link: Tag) -> bool:
    return not str(link.get("href") or "").strip().lower().startswith(("http://", "https://"))


def _surrounds(element: Tag) -> bool:
    if element.name in ("header", "footer", "aside"):
        return element.find_parent(_PART_OF_TEXT) is None
    return element.name not in ("html", "body", "main", "article") and element.find(["main", "article"]) is None


def _says_nothing(element: Tag) -> bool:
    """A footnote's mark, a link to edit, a list of the page's other languages."""
    if element.name == "ul":
        return _lists_languages(element)
    if element.name == "span":
        return _EDITS.fullmatch(element.get_text()) is not None
    marks = element.find_all("a", href=re.compile(r"^[^:]*#"))
    return bool(marks) and _REFERENCE.fullmatch(element.get_text()) is not None


def _lists_languages(element: Tag) -> bool:
    items = element.find_all("li", recursive=False)
    return len(items) >= _FEW_LANGUAGES and all(item.find("a", hreflang=True) for item in items)


def _drop(element: Tag) -> None:
    """A header that has the page's title leaves that."""
    title = element.find("h1") if element.name == "header" or element.get("role") == "banner" else None
    if title is not None:
        element.replace_with(title.extract())
    else:
        element.decompose()


class _Words(HTMLParser):
    """The words of a page that is too broken for its markup to be trusted."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def _words(source: str) -> str:
    source = re.sub(r"<(script|style)\b.*?</\1\s*>", " ", source, flags=re.IGNORECASE | re.DOTALL)
    words = _Words()
    words.feed(re.sub(r"</?(?:script|style|template|noscript)\b[^>]*>?", " ", source, flags=re.IGNORECASE))
    words.close()
    return "\n".join(line for line in "".join(words.found).splitlines() if line.strip())


def read_xml(content: bytes) -> Converted:
    """The text between the tags; where there is none, or it isn't well formed, the file as it is."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = lxml.etree.fromstring(content, parser)
    except (lxml.etree.XMLSyntaxError, ValueError):
        return Converted((Part(None, "", fenced(decode(content), "xml")),))
    text = "\n\n".join(_paragraphs(root))
    return Converted((Part(None, "", text if text.strip() else fenced(decode(content), "xml")),))


def _paragraphs(root: lxml.etree._Element) -> Iterator[str]:
    """One for each element that has text of its own: what is inside it belongs to its sentence."""
    for element in _outermost_with_text(root):
        words = " ".join("".join(element.itertext("*")).split())
        if words:
            yield f"# {words}" if element.tag.rpartition("}")[2] in ("title", "article-title") else words


def _outermost_with_text(root: lxml.etree._Element) -> Iterator[lxml.etree._Element]:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if not isinstance(element.tag, str):
            continue
        own = [element.text, *(child.tail for child in element)]
        if any(text and text.strip() for text in own):
            yield element
        else:
            waiting.extend(reversed(element))


def read_notebook(content: bytes) -> Converted:
    try:
        json.loads(content)
        stream = io.BytesIO(content)
        text = IpynbConverter().convert(stream, StreamInfo(charset="utf-8")).markdown
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = fenced(decode(content), "json")
    return Converted((Part(None, "", text),))


def read_mail(content: bytes) -> Converted:
    message = email.message_from_bytes(content, policy=email.policy.default)
    lines = [f"# {subject}" if (subject := _header(message, "subject")) else ""]
    lines += [f"{name}: {value}" for name in ("From", "To", "Cc", "Date") if (value := _header(message, name))]
    return Converted((Part(None, "", "\n\n".join([*lines, *_bodies(message)])),))


def _header(message: email.message.EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _bodies(message: email.message.EmailMessage) -> Iterator[str]:
    body = message.get_body(("plain", "html"))
    if body is not None:
        yield _mail_text(body)
    for attached in message.walk():
        if attached is body or attached.is_multipart() or not attached.get_filename():
            continue
        yield f"## {' '.join(str(attached.get_filename()).split())}"
        if attached.get_content_maintype() == "text":
            yield _mail_text(attached)[:_ATTACHED_TEXT]


def _mail_text(part: email.message.Message) -> str:
    content = part.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    charset = part.get_content_charset()
    try:
        text = raw.decode(charset) if charset else decode(raw)
    except (LookupError, UnicodeError):
        text = decode(raw)
    return html_to_markdown(text) if part.get_content_subtype() == "html" else text
