"""What a message asks, without a model: small talk, questions, follow-ups, and the answer to a clarification."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from agent.followups import AUXILIARIES, PREPOSITIONS, Before, complete, goes_on, names_in, refers_to_nothing
from agent.outcomes import Option
from agent.shapes import has_ideographs
from agent.smalltalk import reply_to, without_pleasantries
from storage.terms import content_terms, cut
from storage.transcript import Said

_REMEMBERED = 16  # messages of the thread that a follow-up may refer to
_LAST_QUESTIONS = 4  # of a message, that a later one may refer to
_READ = 1000  # characters of an answer that are looked at for names


@dataclass(frozen=True, slots=True)
class Understanding:
    """`reply` is what to say: the friendly word of a chat, or the question back where it is open. Of questions it is a
    remark on those that were left out, "" where there are none. `goes_on`: they go on from what the thread spoke of."""

    kind: Literal["chat", "questions", "open"]
    questions: tuple[str, ...] = ()
    reply: str = ""
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """`options` are indices from 0. `question` is what to research now."""

    kind: Literal["options", "words", "new_question"]
    options: tuple[int, ...] = ()
    question: str = ""


def understand(text: str, said: Sequence[Said], attached_names: Sequence[str] = (), limit: int = 4) -> Understanding:
    text = _clean(text)
    reply = reply_to(text)
    if reply is not None:
        return Understanding("chat", reply=reply)
    text = without_pleasantries(text)
    before = _before(said)
    questions: list[str] = []
    parts = split_questions(text)
    for part in parts[:limit]:
        if _dangling(part, before, attached_names) and not questions:
            return Understanding("open", reply=_question_back(part))
        question = part if attached_names else complete(part, before)
        questions.append(question)
        before = _with_names(Before(question, before.answered if len(questions) == 1 else "", before.names))
    follows = bool(questions) and (questions[0] != parts[0] or goes_on(parts[0]))
    return Understanding("questions", tuple(questions), _remark(len(parts), limit, text), follows)


BOT_NAMES = ("threadlore", "bot")  # by which it is mentioned where a mention is plain text
_MENTION = re.compile(rf"<[@#!][^>\s]{{1,40}}>|(?<![\w@.])@(?:{'|'.join(BOT_NAMES)})\b", re.I)
_SPACES = re.compile(r"[^\S\n]+")


def without_mentions(text: str) -> str:
    return _MENTION.sub(" ", text).strip()


def _clean(text: str) -> str:
    """A message without mentions and without runs of spaces."""
    return _SPACES.sub(" ", without_mentions(text))


def _dangling(part: str, before: Before, attached_names: Sequence[str]) -> bool:
    return not attached_names and not before.asked and refers_to_nothing(part)


def _question_back(text: str) -> str:
    if has_ideographs(text):
        return "您指的是什么？请说出主题或文件名，我就去查。"
    if re.search(r"\b(?:was|erzähl|sag|das|die|der|datei|mir|dazu|darüber)\b", text, re.I) and not re.search(
        r"\b(?:what|tell|that|this|it)\b", text, re.I
    ):
        return "Was genau meinst du? Nenn mir das Thema oder das Dokument, dann sehe ich nach."
    return "What do you mean exactly? Name the topic or the document, and I will look it up."


def _remark(count: int, limit: int, text: str) -> str:
    if count <= limit:
        return ""
    if has_ideographs(text):
        return f"我一次最多回答{limit}个问题，其余的请再问一次。"
    return f"I take {limit} questions at a time; please ask the others again."


def _before(said: Sequence[Said]) -> Before:
    """The last question of the thread, made whole with those before it, and what was answered."""
    before = Before()
    clarifying = False
    for entry in said[-_REMEMBERED:]:
        if entry.author == "bot":
            clarifying = entry.kind == "clarification"
            answered = entry.text if entry.kind == "answer" else before.answered
            before = _with_names(Before(before.asked, answered, before.names))
        else:
            before = _with_names(_after(before, _clean(entry.text), clarifying))
            clarifying = False
    return before


def _with_names(before: Before) -> Before:
    names = (*names_in(before.answered[:_READ]), *before.names, *names_in(before.asked))
    return Before(before.asked, before.answered, tuple(dict.fromkeys(names)))


def _after(before: Before, text: str, clarifying: bool) -> Before:
    if reply_to(text) is not None:
        return before
    if clarifying and before.asked and not _is_question(text):
        return Before(_joined(before.asked, text), "", before.names)
    for part in split_questions(without_pleasantries(text))[-_LAST_QUESTIONS:]:
        before = Before(complete(part, before), "", before.names)
    return before


# several questions in one message

_LISTED = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)、:]|[a-hA-H][.)])\s*(?=\S)")
_OPEN_QUOTES, _CLOSE_QUOTES = "“„«「『《", "”“»」』》"
_INTERROGATIVE = (
    r"(?:what|which|who|whom|whose|when|where|why|how|was|welche[rsnm]?|wer|wann|wo|warum|wieso|wie|wieviele?)(?:'s)?"
)
_IMPERATIVE = r"(?:list|show|tell|give|explain|describe|summari[sz]e|compare|find|name|nenne|zeig|erklär|liste)"
_ASKING_AUXILIARY = rf"(?:{'|'.join(map(re.escape, AUXILIARIES))})"
_ASKS = re.compile(
    rf"^(?:(?:and|also|but|or|then|und|in|for|at|on|by|to|since|from|until|of|with|für|seit|"
    rf"bis)\s+)*(?:{_INTERROGATIVE}\b|"
    rf"{_ASKING_AUXILIARY}\s|{_IMPERATIVE}\b)",
    re.I,
)


def split_questions(text: str) -> list[str]:
    """The questions of a message, in order. What introduces a question stays with it."""
    lines = [line for line in text.splitlines() if line.strip()]
    listed = [line for line in lines if _LISTED.match(line)]
    if len(listed) >= 2:
        return _of_list(lines)
    if len(lines) > 1 and all(_is_question(line) for line in lines):
        return [part for line in lines for part in _of_line(line)]
    return _of_line(" ".join(lines)) or [text]


def _of_list(lines: Sequence[str]) -> list[str]:
    """Each item a question; a line before the list that names something goes with each of them."""
    introduction = ""
    questions: list[str] = []
    for line in lines:
        if _LISTED.match(line):
            questions += _of_line(_LISTED.sub("", line).strip())
        elif not questions:
            introduction = _introduction(line) or introduction
        elif _is_question(line):
            questions += _of_line(line.strip())
        else:
            questions[-1] += f" {line.strip()}"
    return [f"{introduction}: {question}" if introduction else question for question in questions]


def _introduction(line: str) -> str:
    """A line before a list, where it says more than "my questions are"."""
    terms = [term for term in content_terms(line) if term not in _NUMBERING]
    return line.strip(" :：?？") if terms else ""


_NUMBERING = frozenset(
    term
    for term in cut(
        "question questions thing things answer answers please two three four five few couple several "
        "following help need know "
        "want ask tell quick some these fragen frage zwei drei bitte 问题 几个 以下 两个 三个 请回答 请问 2 3 4 5"
    )
)


def _of_line(line: str) -> list[str]:
    questions: list[str] = []
    waiting = ""
    for piece in _pieces(line):
        if _is_question(piece):
            questions.append(f"{waiting} {piece}".strip())
            waiting = ""
        else:
            waiting = f"{waiting} {piece}".strip()
    if waiting and questions:
        questions[-1] = f"{questions[-1]} {waiting}"
    elif waiting:
        questions.append(waiting)
    return [part for question in questions for part in _of_conjunction(question)]


def _pieces(line: str) -> list[str]:
    """The line, cut after each question mark or full stop that stands outside quotes and brackets."""
    pieces: list[str] = []
    start = depth = 0
    straight = False
    for place, character in enumerate(line):
        if character == '"':
            straight = not straight
        depth += (character in _OPEN_QUOTES + "(（") - (character in _CLOSE_QUOTES + ")）" and depth > 0)
        if not straight and depth <= 0 and _ends(line, place):
            pieces.append(line[start : place + 1].strip())
            start = place + 1
    pieces.append(line[start:].strip())
    return [piece for piece in pieces if piece]


def _ends(line: str, place: int) -> bool:
    character, following = line[place], line[place + 1 : place + 2]
    if character in "？。！":
        return True
    if character == "?":
        return following in ("", " ") or has_ideographs(following)
    return character in ".!;" and following == " " and _ASKS.match(line[place + 2 :]) is not None


def _is_question(piece: str) -> bool:
    piece = _LISTED.sub("", piece).strip()
    return piece.rstrip("\"”'").endswith(("?", "？")) or _ASKS.match(piece) is not None


def _of_conjunction(question: str) -> Iterable[str]:
    """ "What is the notice period and how many days of leave do I get?" asks two things."""
    parts = _conjoined(question)
    whole = all(content_terms(part) for part in parts) and _ASKS.match(parts[0]) is not None
    if len(parts) == 1 or not whole or re.match(r"(?:do|does) (?:you|anyone) know\b", question, re.I):
        return [question]
    return [part if part.endswith(("?", "？")) else f"{part}?" for part in parts]


_AND = re.compile(r"(?P<comma>[,;])?\s+(?:(?P<also>and also|und auch)|and|also|as well as|und|sowie)\s+", re.I)
_QUESTION_WORD = re.compile(rf"(?:(?:{'|'.join(PREPOSITIONS)})\s+)?{_INTERROGATIVE}\b|{_IMPERATIVE}\b", re.I)
_INVERTED = re.compile(
    r"(?i:(?P<aux>is|are|was|were|do|does|did|can|could|may|must|should|will|has|have|darf|dürfen|kann|können|muss|müssen|"
    r"ist|sind|gibt|gilt|wird|werden))\s+(?P<subject>[^\W\d_][\w'-]*)(?:\s+(?P<next>[\w'-]+))?"
)
_SUBJECTS = frozenset(
    "i we you they he she it there the a an our my your this that these those any anyone somebody someone everyone all "
    "ich wir ihr man er sie es der die das ein eine unser unsere mein meine".split()
)
_NO_SUBJECT = re.compile(
    r"(?:not|also|always|never|ever|still|only|often|then|now|very|too|so|be|been|have|to|nicht|auch|immer|nur|noch|\w+n't|"
    r"\w+(?:ly|ed|en|able|ible|ful|ous|ive))",
    re.I,
)
_NO_PREDICATE = frozenset({*PREPOSITIONS, "and", "or", "to", "und", "oder"})
_PLURAL = re.compile(r"[A-Za-z]{2,}(?<![sui])s", re.I)
_ASKS_IN_INVERSION = re.compile(rf"(?:how|when|where|why|whom|wie|wann|wo|warum|{_ASKING_AUXILIARY})\b", re.I)


def _conjoined(question: str) -> list[str]:
    """The question, cut before each "and" that another one follows."""
    parts: list[str] = []
    start = 0
    for joint in _AND.finditer(question):
        first = question[start : joint.start()]
        if _is_clause(first) and (joint["also"] or _opens(question[joint.end() :], first)):
            parts.append(first.strip(" ,;"))
            start = joint.end()
    return [*parts, question[start:].strip(" ,;")]


def _is_clause(text: str) -> bool:
    """Whether it could stand alone: "on which day" goes on with "and in which place do we meet"."""
    return re.fullmatch(r"\s*(?:\w+\s+)?(?:what|which|welche\w?)\s+\w+\s*", text, re.I) is None


def _opens(text: str, first: str) -> bool:
    """Whether a question begins here, and no second predicate of the first: "and is paid monthly"."""
    if _QUESTION_WORD.match(text):
        return True
    inverted = _INVERTED.match(text)
    if inverted is None:
        return False
    subject, following = inverted["subject"], (inverted["next"] or "").lower()
    if subject.lower() in _SUBJECTS:
        return True
    if _NO_SUBJECT.fullmatch(subject) or not following or following in _NO_PREDICATE:
        return False
    is_thing = inverted["aux"].lower() in ("is", "are", "was", "were", "ist", "sind", "do", "does", "did")
    return is_thing or _ASKS_IN_INVERSION.match(first.strip()) is not None or _PLURAL.fullmatch(subject) is not None


# the answer to a clarification


def understand_choice(text: str, option: int | None, options: Sequence[Option], question: str) -> Chosen:
    if option is not None and 0 <= option < len(options):
        return Chosen("options", (option,), question)
    text = without_pleasantries(_clean(text))
    numbered = _numbered(text, len(options))
    if numbered:
        return Chosen("options", numbered, question)
    asks = _is_question(text)
    named = _named(text, options, question)
    if named and not (asks and _asks_more(text, options, question)):
        return Chosen("options", named, question)
    if asks and not _relates(text, options, question):
        return Chosen("new_question", (), text)
    return Chosen("words", (), text if asks and len(content_terms(text)) > 2 else _joined(question, text))


_FILLER = frozenset(
    "the a an them one ones option options number no nr please pls take choose pick i want mean meant would "
    "like for of that this it's it "
    "is and or , & + with to document file contract from both just only go let's use yes ok okay der die das den dem "
    "bitte option nummer ich meine nehme und von 选 选择 我 要 想 指 的 是 第 个 份 那 这 和 请 项".split()
)
_ALL = re.compile(
    r"\b(?:all|both|every(?:one)?|each|everything|any|alle[ns]?|beide[ns]?|jede[rsn]?)\b|全部|都要|都|所有|"
    r"两个都|两者|每个|全要",
    re.I,
)
_NOT_ALL = re.compile(r"\b(?:not|none|neither|except|but|nicht|keine[srn]?|außer)\b|不|除了", re.I)
_ORDINALS = (
    ("first", "1st", "one", "erste", "ersten", "erster", "erstes", "eins", "一", "头"),
    ("second", "2nd", "two", "zweite", "zweiten", "zweiter", "zweites", "zwei", "二", "两"),
    ("third", "3rd", "three", "dritte", "dritten", "dritter", "drittes", "drei", "三"),
    ("fourth", "4th", "four", "vierte", "vierten", "vierter", "viertes", "vier", "四"),
    ("fifth", "5th", "five", "fünfte", "fünften", "fünfter", "fünftes", "fünf", "五"),
)
_LAST = ("last", "letzte", "letzten", "letzter", "letztes", "最后", "后")
_WORDS = re.compile(r"[#]?\d+(?:st|nd|rd|th)?|[^\W\d_]+(?:'[^\W\d_]+)?|[&,+]")
_CHINESE_CHOICE = re.compile(
    r"(?:我?(?:要|选|选择|想要|指的是|是)?|选项|方案)*(?:第)?([一二两三四五\d]|最后)一?(?:个|份|项|号|"
    r"种)?(?:吧|的|文件|合同)*"
)


def _numbered(text: str, count: int) -> tuple[int, ...]:
    """The options that a text names by their place, where it says nothing else."""
    bare = text.strip(" .!?。！？,，)(#")
    chinese = _CHINESE_CHOICE.fullmatch(bare)
    if chinese:
        place = count - 1 if chinese[1] == "最后" else _place(chinese[1], count)
        return () if place is None else (place,)
    words = _WORDS.findall(bare.lower())
    places = {word: _place(word, count) for word in words}
    others = [word for word in words if places[word] is None and word not in _FILLER and not _ALL.fullmatch(word)]
    if others or not words:
        return _all_in_chinese(bare, count)
    if _ALL.search(bare) and not _NOT_ALL.search(bare) and not re.search(r"\d", bare):
        return tuple(range(count))
    found = {place for word, place in places.items() if place is not None and (word != "one" or len(words) == 1)}
    return tuple(sorted(found))


def _all_in_chinese(bare: str, count: int) -> tuple[int, ...]:
    short = has_ideographs(bare) and len(bare) <= 6
    return tuple(range(count)) if short and _ALL.search(bare) and not _NOT_ALL.search(bare) else ()


def _place(word: str, count: int) -> int | None:
    if word in _LAST:
        return count - 1
    digits = re.fullmatch(r"#?(\d{1,2})", word)
    if digits:
        place = int(digits[1]) - 1
    else:
        place = next((number for number, each in enumerate(_ORDINALS) if word in each), -1)
    return place if 0 <= place < count else None


def _named(text: str, options: Sequence[Option], question: str) -> tuple[int, ...]:
    """The options whose name, or the part of it that tells them apart, stands in the text."""
    if _NOT_ALL.search(text):
        return ()
    own = _distinguishing(options)
    words = [word for word in cut(text) if word not in _FILLER]
    scores = [_share(terms, words) for terms in own]
    best = max(scores, default=0.0)
    if best <= 0:
        return ()
    foreign = [word for word in content_terms(text) if not any(_alike(word, term) for terms in own for term in terms)]
    asked = {*cut(question), *_FILLER, *(term for option in options for term in cut(option.label))}
    if best < 0.5 and [word for word in foreign if word not in asked]:
        return ()
    return tuple(number for number, score in enumerate(scores) if score >= 0.75 * best)


def _distinguishing(options: Sequence[Option]) -> list[frozenset[str]]:
    """The terms of each label that not all labels share."""
    labels = [frozenset(cut(option.label)) for option in options]
    shared = frozenset.intersection(*labels) if labels else frozenset()
    return [label - shared if len(labels) > 1 else label for label in labels]


def _share(terms: frozenset[str], words: Sequence[str]) -> float:
    if not terms:
        return 0.0
    return sum(any(_alike(term, word) for word in words) for term in terms) / len(terms)


def _alike(one: str, other: str) -> bool:
    """The same word, or one with a slip of the finger."""
    if one == other:
        return True
    if min(len(one), len(other)) < 4 or one.isdigit() or other.isdigit():
        return False
    return SequenceMatcher(None, one, other).ratio() >= 0.8


def _asks_more(text: str, options: Sequence[Option], question: str) -> bool:
    """Whether a question that names an option asks something else than the question that was open."""
    known = {*cut(question), *(term for option in options for term in cut(option.label))}
    return len([term for term in content_terms(text) if term not in known]) >= 2


def _relates(text: str, options: Sequence[Option], question: str) -> bool:
    own = {term for terms in _distinguishing(options) for term in terms} | set(content_terms(question))
    terms = content_terms(text)
    shared = [term for term in terms if any(_alike(term, each) for each in own)]
    return bool(shared) and len(shared) * 2 >= len(terms)


def _joined(question: str, text: str) -> str:
    """The question, narrowed by a free sentence."""
    words = re.sub(
        r"^(?:i (?:mean|meant|want)|ich meine|the one(?:s)?|the|that|it's|it is|我(?:指的)?是|是)\s*",
        "",
        text.strip(" .!?。！？"),
        flags=re.I,
    )
    words = re.sub(r"^(?:the )?ones?\s+", "", words, flags=re.I)
    mark = "？" if has_ideographs(question) else "?"
    return f"{question.strip().rstrip('?？ ')} {words}{mark}"
