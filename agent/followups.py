"""A follow-up made whole: what it leaves out is taken from the question before it, and from the answer to that.

The result need not be pretty. It holds the words that a search needs, and not those that the follow-up replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.followups_chinese import complete_chinese, goes_on_in_chinese, names_nothing
from agent.shapes import has_ideographs
from storage.terms import STOP_WORDS, content_terms


@dataclass(frozen=True, slots=True)
class Before:
    """What a follow-up may refer to: the last question, itself made whole, its answer, and the names in the thread."""

    asked: str = ""
    answered: str = ""
    names: tuple[str, ...] = ()  # those of the questions after those of the answers, the latest last


AUXILIARIES = (
    "is are was were be am do does did can could will would shall should must may might has have had isn't "
    "aren't wasn't "
    "weren't don't doesn't didn't can't couldn't won't wouldn't ist sind war waren wird werden hat haben kann "
    "können muss "
    "müssen darf dürfen soll sollen gilt gelten gibt"
).split()
PREPOSITIONS = (
    "for in at on by with to from of about under within during since until before after between per without against as "
    "für bei mit in im am an auf von vom zu zum zur seit bis unter nach vor"
).split()
_WH = (
    r"(?:what|which|who|whom|whose|when|where|why|how (?:many|much|long|often|old|far|big|high|large|soon|"
    r"early|late)|how|"
    r"was|welche[rsnm]?|wer|wem|wen|wann|wo|warum|wieso|wie (?:viele?|lange?|oft|alt|hoch)|wieviele?|wie)"
)
_AUX = rf"(?:{'|'.join(map(re.escape, AUXILIARIES))})"
_PREPOSITION = rf"(?:{'|'.join(PREPOSITIONS)})"
_POLITE = re.compile(
    r"^(?:(?:please|pls|bitte)[, ]+)?(?:(?:can|could|would) you (?:please )?(?:tell|show|explain|give)(?: to)? "
    r"(?:me|us)(?: about)?|"
    r"(?:do|does) (?:you|anyone|anybody|someone) know(?: about)?|(?:i|we)(?:'d| would) like to know(?: about)?|"
    r"i want to know(?: about)?|"
    r"(?:tell|show|give) (?:me|us)(?: about)?|(?:i|we) (?:wonder|was wondering)(?: about)?|remind me|please|"
    r"pls|list|show|find|"
    r"explain|describe|weißt du|kannst du mir sagen|sag mir|zeig mir|bitte)\b[:, ]*",
    re.I,
)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|and|but|so|then|also|now|well|yes|no|right|und|aber|also|thanks|thank you|danke)\b[,!.]?\s+)+",
    re.I,
)
_ABOUT = re.compile(
    r"^(?:what|how) about\s+|^what of\s+|^(?:is it |is that )?(?:the )?same (?:question |thing )?(?:for|with|"
    r"in)\s+|^was ist mit\s+|"
    r"^wie (?:ist|sieht) (?:es|das)(?: aus)? (?:mit|bei|für)\s+|^what if (?:it's|it is)\s+",
    re.I,
)
_BARE = re.compile(
    rf"^(?:(?:since|until|by|from|for|to|in|at|bis|seit|von|mit) )?{_WH}(?: (?:one|ones|not|exactly|so|then|"
    rf"though|is (?:that|this|it)|"
    r"was (?:that|this|it)|come|else|genau|denn|nicht))*\s*$",
    re.I,
)
_PRONOUN = re.compile(
    r"\b(?:(?P<person>he|she|him|her|his|hers|himself|herself|er|ihm|ihn)|(?P<thing>it|its|they|them|their|theirs|"
    r"(?:this|that|these|those)(?! (?:is|was|are|were) (?:a|an|the)\b)(?: (?:one|ones|thing|things|document|"
    r"file|case|person|group))?|"
    r"dessen|deren|dies(?:e[rsmn]?)?))\b",
    re.I,
)
_EXPLETIVE = re.compile(
    r"\b(?:is|was|does|would|will) it (?:possible|allowed|true|ok|okay|necessary|required|mandatory|safe|take|"
    r"correct|better|worth|"
    r"legal|permitted|matter)\b|\b(?:think|know|say|said|says|means?|believe|sure|so|requires?|ensure|states?) that\b",
    re.I,
)
_NAME = re.compile(r"(?:\b(?:[A-Z][\w'’&.-]*|\d{4})(?:\s+(?:of|the|and|de|van|von|for|in)(?=\s+[A-Z]))?\s*)+")
_CITATION = re.compile(r"\[\d+\]|[*_`>]+")


def complete(text: str, before: Before) -> str:
    """`text` as a question that stands by itself."""
    asked = _POLITE.sub("", before.asked.strip()).strip(" ?？.!")
    if not asked:
        return text
    if has_ideographs(text):
        return complete_chinese(text, asked)
    stripped = _LEAD.sub("", text.strip()).strip(" ?？!.")
    led = len(stripped) < len(text.strip(" ?？!."))
    fragment = _fragment(stripped, led)
    if fragment:
        return _question(_replaced(asked, fragment))
    if _BARE.match(stripped):
        return _question(f"{_bare(stripped)} {topic(asked)}")
    referred = _expanded(_refer(stripped, asked, before), asked, before)
    if referred != stripped:
        return _question(referred)
    return _question(f"{stripped} {topic(asked)}") if _elliptical(stripped) else text


def goes_on(text: str) -> bool:
    """Whether it goes on from what was said before, by its first word or by pointing there."""
    if has_ideographs(text):
        return goes_on_in_chinese(text)
    return _GOES_ON.match(text.strip()) is not None or _THERE.search(text) is not None


_GOES_ON = re.compile(
    r"(?:(?:ok(?:ay)?|well|yes|no|thanks|thank you|danke|ja|nein)\b[,!.]?\s+)*(?:and|but|so|then|also|und|aber|dann)\b",
    re.I,
)
_THERE = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )\bthere\b(?! (?:is|are|was|were|will|be)\b)"
    r"|\b(?:therein|thereof|dort|darin|davon|dafür)\b",
    re.I,
)


def refers_to_nothing(text: str) -> bool:
    """Whether it speaks of a thing that only what was said before could name."""
    if has_ideographs(text):
        return names_nothing(text)
    terms = _telling(text)
    pronoun = _PRONOUN.search(_EXPLETIVE.sub(" ", text))
    return not terms or (pronoun is not None and len(terms) <= 1 and not any(term.isdigit() for term in terms))


def says_nothing(text: str) -> bool:
    """Whether none of its words says what it is about."""
    return names_nothing(text) if has_ideographs(text) else _OF_A_DOCUMENT.issuperset(_telling(text))


def _telling(text: str) -> list[str]:
    return [term for term in content_terms(text) if term not in _VAGUE]


_OF_A_DOCUMENT = frozenset(
    term
    for term in content_terms("key point points attached tl dr takeaways main bullet bullets highlights whole full")
)
_VAGUE = frozenset(
    term
    for word in (
        "thing things stuff something anything everything file files document documents text page topic "
        "subject tell say says "
        "explain show describe mean means meaning summarise summarize summary info information detail details "
        "about content contents "
        "know give want need look talk read work works happen happens long much many old big good question "
        "answer one ones go "
        "interesting important next overview outline gist tldr main short brief briefly quick contain include "
        "sag erzähl erklär zeig datei dokument thema ding sache genau wissen mehr steht drin darin dazu "
        "darüber bedeutet heißt inhalt überblick kurz fasse fass zusammen zusammenfassung zusammenfassen "
    ).split()
    for term in content_terms(word)
)


def topic(asked: str) -> str:
    """What a question is about: without its question word and auxiliary."""
    asked = _POLITE.sub("", asked.strip(" ?？"))
    rest = re.sub(rf"^(?:{_PREPOSITION} )?{_WH}\b(?:'s)?(?: {_AUX}\b)?\s*", "", asked, flags=re.I)
    return re.sub(rf"^{_AUX}\b\s*", "", rest, flags=re.I) or asked


def _question(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" ?") + "?"


def _fragment(stripped: str, led: bool) -> str:
    """What stands in for a part of the question before; "" where this is no such fragment."""
    about = _ABOUT.match(stripped)
    if about:
        return stripped[about.end() :]
    words = stripped.lower().split()
    if not words or re.match(rf"{_WH}\b", stripped, re.I) or any(word in AUXILIARIES for word in words):
        return ""
    if _POLITE.match(stripped) or len(words) > 8:
        return ""
    return stripped if led or words[0] in PREPOSITIONS or len(words) == 1 else ""


def _bare(stripped: str) -> str:
    return re.sub(
        r"\b(?:is|was) (?:that|this|it)\b|\b(?:exactly|so|then|though|genau|denn)\b", "", stripped, flags=re.I
    ).strip()


def _elliptical(stripped: str) -> bool:
    """A question word with hardly more: "how many days", "in which year"."""
    words = stripped.lower().split()
    if not re.match(rf"(?:{_PREPOSITION} )?{_WH}\b", stripped, re.I) or any(word in AUXILIARIES for word in words):
        return False
    return len(content_terms(stripped)) <= 1


# a fragment in place of a part of the question


def _replaced(asked: str, fragment: str) -> str:
    fragment = fragment.strip(" ?.,")
    if (another := _another_one(asked, fragment)) is not None:
        return another
    first, _, rest = fragment.partition(" ")
    if first.lower() in PREPOSITIONS and rest:
        return _replaced_phrase(asked, first.lower(), fragment)
    for slot in (_same_form(asked, fragment), _same_head(asked, fragment), _last_object(asked, fragment)):
        if slot is not None:
            start, end = slot
            return f"{asked[:start]}{fragment}{asked[end:]}"
    return f"{asked} {fragment}" if _is_name(fragment) else f"{_frame(asked)} {fragment}"


_OBJECT = r"((?:(?<!\S)(?!(?:{stop})\b)[^\s,?]+\s*)+)"
_STOP = "|".join(PREPOSITIONS + AUXILIARIES)


def _replaced_phrase(asked: str, preposition: str, fragment: str) -> str:
    """Its phrase with the same preposition is replaced; without one, a phrase at its end with a thing of the "
    "same form."""
    found = [
        match
        for match in re.finditer(rf"\b{preposition}\s+{_OBJECT.format(stop=_STOP)}", asked, re.I)
        if _form_of(match[1]) == _form_of(fragment.split(" ", 1)[1]) or preposition in ("for", "für")
    ]
    if found:
        start, end = found[-1].span()
        return f"{asked[:start]}{fragment} {asked[end:]}"
    thing = fragment.split(" ", 1)[1]
    if _form_of(thing) == "name" and (named := _same_form(asked, thing)) is not None:
        before = re.sub(rf"\b{_PREPOSITION}\s+$", "", asked[: named[0]], flags=re.I)
        return f"{before}{fragment} {asked[named[1] :]}"
    if (doer := _doer(asked, thing)) is not None:
        return f"{asked[: doer[0]]}{thing}{asked[doer[1] :]}"
    return f"{asked} {fragment}"


def _another_one(asked: str, fragment: str) -> str | None:
    """ "The red lamp" gives way to "the blue lamp" for "the blue one"."""
    one = re.fullmatch(r"(?:the\s+)?(?P<which>[\w-]+)\s+ones?", fragment, re.I)
    things = list(re.finditer(r"\b(?P<the>the|an?)\s+(?P<which>[\w-]+)\s+(?=[\w-]+)", asked, re.I))
    if one is None or not things or one["which"].lower() in ("this", "that", "first", "second", "last", "other"):
        return None
    start, end = things[-1].span("which")
    return f"{asked[:start]}{one['which']}{asked[end:]}"


def _doer(asked: str, thing: str) -> tuple[int, int] | None:
    """Who does something in the question, where the thing may stand for them: "do employees have", "contractors"."""
    helps = r"\b(?:do|does|did|can|may|must|should|will)"
    found = re.search(rf"{helps}\s+(?P<doer>(?:the\s+)?[\w-]+)\s+(?!{_PREPOSITION}\b)\w", asked, re.I)
    if found is None or not _plural(thing) or not _plural(found["doer"]):
        return None
    return found.span("doer")


def _form_of(phrase: str) -> str:
    if re.search(r"\d", phrase):
        return "number"
    return "name" if _is_name(phrase) else "word"


def _is_name(phrase: str) -> bool:
    return any(word[:1].isupper() for word in phrase.split())


def _same_form(asked: str, fragment: str) -> tuple[int, int] | None:
    """Where a year, number or name stands that the fragment's year, number or name replaces."""
    if _form_of(fragment) == "number" and len(fragment.split()) <= 2:
        numbers = list(re.finditer(r"\b\d[\d.,/-]*\b", asked))
        return numbers[-1].span() if numbers else None
    if _form_of(fragment) == "name":
        found = [match for match in _NAME.finditer(asked) if match.start() > 0 and not match[0].strip().isdigit()]
        return (found[-1].start(), found[-1].start() + len(found[-1][0].rstrip())) if found else None
    return None


def _same_head(asked: str, fragment: str) -> tuple[int, int] | None:
    """Where a phrase with the same last word stands: "the notice period", for "the probation period"."""
    head = content_terms(fragment)[-1:]
    for match in re.finditer(_OBJECT.format(stop=_STOP), asked):
        if head and content_terms(match[1])[-1:] == head:
            words = re.sub(rf"^{_WH}\s+", "", match[1], flags=re.I)
            return match.end() - len(words), match.start() + len(match[1].rstrip())
    return None


def _last_object(asked: str, fragment: str) -> tuple[int, int] | None:
    """Where the object of its last preposition stands, if that is of the same form and number."""
    found = [
        match
        for match in re.finditer(rf"\b{_PREPOSITION}\s+{_OBJECT.format(stop=_STOP)}", asked, re.I)
        if match.end() >= len(asked) - 1
    ]
    if not found or _form_of(found[-1][1]) != _form_of(fragment) or _plural(found[-1][1]) != _plural(fragment):
        return None
    return found[-1].start(1), found[-1].start(1) + len(found[-1][1].rstrip())


def _plural(phrase: str) -> bool:
    last = phrase.strip().lower()
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def _frame(asked: str) -> str:
    """The question without the thing that it asks about: "what is" of "what is the notice period?"."""
    whole = re.match(rf"(?:{_WH}(?:'s| {_AUX})|how (?:many|much))\b", asked, re.I)
    if whole is None:
        return asked
    after = re.search(rf"\s{_PREPOSITION}\s.*$", asked[whole.end() :], re.I)
    if whole[0].lower().startswith(("how many", "how much")):
        return whole[0]
    return whole[0] if after is None else f"{whole[0]}{after[0]}"


# a pronoun in place of a thing


def _refer(text: str, asked: str, before: Before) -> str:
    shielded = [match.span() for match in _EXPLETIVE.finditer(text)]
    replaced = False

    def stand_in(match: re.Match[str]) -> str:
        nonlocal replaced
        if replaced or any(start <= match.start() < end for start, end in shielded) or _points(match, text):
            return match[0]
        referent = _person(asked, before) if match["person"] else _thing(asked, before)
        replaced = bool(referent)
        possessive = match[0].lower() in ("his", "her", "its", "their")
        if match["thing"] and (possessive or not _is_described(match, text)):
            referent = owner(referent)
        return f"{referent}'s" if referent and possessive else referent or match[0]

    return _PRONOUN.sub(stand_in, text)


def _is_described(match: re.Match[str], text: str) -> bool:
    """Whether it is asked what the thing itself is like: "how long is it"."""
    return re.search(rf"\b{_COPULA}\s+$", text[: match.start()], re.I) is not None


_COPULA = r"(?:is|are|was|were|ist|sind|war|waren)"
_OWNED = re.compile(
    r"(?:(?:the|its|our|die|der|das)\s+)?[^,;?]+?\s+(?:of|von|des)\s+(?=(?:the|this|that|our|my)\s|[A-ZÄÖÜ])(?P<owner>.+)"
    r"|(?:the\s+)?(?P<named>[^,;?]+?)['’]s?\s+\S.*"
)


def owner(thing: str) -> str:
    """Whose attribute it is: "the Birch contract" of "the notice period of the Birch contract"; else the thing."""
    found = _OWNED.fullmatch(thing.strip())
    if found is None:
        return thing
    return found["owner"] or f"the {found['named']}"


def _points(match: re.Match[str], text: str) -> bool:
    """Whether "this" or "that" only points at the word that follows: "this year"."""
    if match[0].lower() not in ("this", "that", "these", "those"):
        return False
    following = re.match(r"\s+([\w'-]+)", text[match.end() :])
    preceding = re.search(r"([\w'-]+)\s+$", text[: match.start()])
    if following is None or following[1].lower() in {*AUXILIARIES, *PREPOSITIONS, "and", "or", "too", "also", "yet"}:
        return False
    return preceding is None or preceding[1].lower() not in AUXILIARIES


def _person(asked: str, before: Before) -> str:
    answered = names_in(before.answered)
    if re.match(r"(?:who|whom|wer|wem|wen)\b", asked, re.I) and answered:
        return answered[0]
    found = names_in(asked) or answered or list(reversed(before.names))
    return _full_name(found[0], before.names) if found else ""


def _full_name(name: str, names: Sequence[str]) -> str:
    """The longer form of a name, where the thread has one: "Frank Zappa" for "Zappa"."""
    longer = [each for each in names if len(each) > len(name) and name.lower() in each.lower().split()]
    return longer[0] if longer else name


def names_in(text: str) -> list[str]:
    """The names of a text: words with a capital that no sentence begins with, or several of them together."""
    text = _CITATION.sub("", text)
    found = (_without_function_words(match[0]) for match in _NAME.finditer(text))
    return [name for name in found if name and (" " in name or _stands_inside(name, text))]


def _without_function_words(name: str) -> str:
    words = re.sub(r"['’]s\b", "", name).split()
    while words and (words[0].lower().strip(".") in _NO_NAMES or words[0].isdigit()):
        words.pop(0)
    while words and words[-1].lower() in _NO_NAMES:
        words.pop()
    return " ".join(words)


_NO_NAMES = frozenset(
    {
        *STOP_WORDS,
        *AUXILIARIES,
        *PREPOSITIONS,
        "however",
        "except",
        "yes",
        "no",
        "ok",
        "although",
        "list",
        "show",
        "explain",
    }
)


def _stands_inside(name: str, text: str) -> bool:
    """Whether it stands where no sentence begins, so that its capital is its own."""
    place = text.find(name)
    while place >= 0:
        before = text[max(0, place - 3) : place].rstrip()
        if before and before[-1] not in '.!?:\n“"':
            return True
        place = text.find(name, place + 1)
    return False


def _expanded(text: str, asked: str, before: Before) -> str:
    """ "The contract" becomes "the Meyer contract", where that is what was spoken of."""
    for match in re.finditer(r"\b(?:the|this|that|der|die|das|den|dem) ([a-zäöüß-]{3,})\b", text):
        for spoken in (asked, _CITATION.sub("", before.answered)):
            whole = re.search(rf"\b((?:[A-ZÄÖÜ0-9][\w’'&-]*\s+){{1,4}}){re.escape(match[1])}\b", spoken)
            named = _without_function_words(whole[1]) if whole else ""
            if named:
                return f"{text[: match.start(1)]}{named} {text[match.start(1) :]}"
    return text


def _thing(asked: str, before: Before) -> str:
    answer = subject_of_answer(before.answered)
    if (
        answer
        and re.match(r"(?:which|who|what)\b(?!'s)", asked, re.I)
        and not re.match(rf"(?:which|who|what) {_AUX}\b", asked, re.I)
    ):
        return answer
    return subject(asked)


def subject(asked: str) -> str:
    """The thing that a question asks about."""
    lead = re.match(rf"(?P<wh>{_WH})?\s*(?:[\w-]+ ){{0,3}}?(?P<aux>'s|{_AUX})\b\s*(?P<rest>.+)", asked, re.I)
    if lead is None:
        predicate = re.match(r"(?:who|what|wer)\s+\w+\s+(?P<object>.+)", asked, re.I)
        return predicate["object"] if predicate else topic(asked)
    rest = lead["rest"].strip()
    if (lead["wh"] or "").lower() in ("what", "which", "who", "was") and lead["aux"].lower() in (
        "is",
        "are",
        "was",
        "were",
        "'s",
        "ist",
        "sind",
    ):
        return rest
    clause = re.split(rf"\s(?:{'|'.join(word for word in PREPOSITIONS if word != 'of')})\s", rest, maxsplit=1)[0]
    names = names_in(clause) or names_in(f"x {clause}")
    if names:
        return names[0]
    words = clause.split()
    return " ".join(words[:-1]) if content_terms(" ".join(words[:-1])) else clause


def subject_of_answer(answered: str) -> str:
    """What the answer's first sentence begins with, up to its verb."""
    text = _CITATION.sub("", answered).strip().strip("“”\"'")
    match = re.match(rf"((?:[^\s.!?,;:]+\s+){{1,6}}?){_AUX}\b", text)
    return match[1].strip() if match and content_terms(match[1]) else ""
