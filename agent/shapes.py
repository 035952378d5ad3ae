"""What kind of value a question asks for, and which values a sentence holds: numbers, dates, spans of time, names."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache


class Shape(StrEnum):
    DATE = "date"
    FREQUENCY = "frequency"
    DURATION = "duration"
    NUMBER = "number"
    MONEY = "money"
    PERCENT = "percent"
    PERSON = "person"
    PLACE = "place"
    REASON = "reason"
    ANY = "any"


_QUESTION_SHAPES: tuple[tuple[Shape, re.Pattern[str]], ...] = (
    (
        Shape.PERCENT,
        re.compile(r"\bper ?cent(age)?\b|\bprozent\w*|百分之|百分比|比例|占比|\bwhat (share|proportion|rate)\b", re.I),
    ),
    (
        Shape.FREQUENCY,
        re.compile(
            r"\b(how (often|frequent\w*|regular\w*)|how many times (a|an|per|each|every)|what (interval|frequenc)\w*)\b"
            r"|\bwie (oft|häufig|regelmäßig)\b"
            r"|(多久|多长时间|几(天|年|个月|周|小时)|隔多久).{0,8}次|频率|频次|每(天|年|月|周|个月)\S{0,6}几次|每隔多",
            re.I,
        ),
    ),
    (
        Shape.DURATION,
        re.compile(
            r"\bhow (long|old)\b|\b(notice|probation\w*|trial|retention|warranty|grace) period\b|\bhow many "
            r"(days|weeks|months|"
            r"years|hours|minutes|seconds)\b|\bhow much (time|notice)\b|\bwie (lange|alt)\b|\b\w*(frist|dauer)\b"
            r"|\bwie viele (tage|wochen|monate|jahre|stunden)\b|多久|多长时间|期限|几(天|年|个月|小时|周)"
            r"|多少(天|年|个月|小时|周|日|岁)|通知期|试用期|保修期|有效期",
            re.I,
        ),
    ),
    (
        Shape.MONEY,
        re.compile(
            r"\bhow much (does|do|did|is|are|was|were|will|would|can|money)\b.*\b(cost|pay|paid|spend|earn|fee|"
            r"price|charge|budget"
            r"|worth|salary|rent|claim|expense|allowance)\w*|\b(price|cost|fee|salary|rent|budget|allowance|"
            r"per diem)s?\b"
            r"|\bwas kostet\b|\b(preis|kosten|gehalt|miete|gebühr)\w*|多少钱|价格|费用|租金|工资|预算|补贴",
            re.I,
        ),
    ),
    (
        Shape.DATE,
        re.compile(
            r"\b(when|what (year|date|day|month|time|century|decade)|which (year|date|day|month|century|"
            r"decade)|since when"
            r"|deadline|due date)\b|\b(wann|in welchem jahr|seit wann)\b|什么时候|何时|哪(一)?(年|天|日|月|"
            r"个月)|几(月|号|点)"
            r"|哪个(年份|世纪|月)|什么时间|多会儿|日期|截止",
            re.I,
        ),
    ),
    (
        Shape.NUMBER,
        re.compile(
            r"\bhow (many|much|far|tall|high|large|big|fast|deep|wide|heavy|hot)\b|\bwhat (number|amount|"
            r"size|population)\b"
            r"|\bwie (viel|viele|hoch|groß|weit)\b|多少|几(个|次|人|种|名|位|家|所|条|台|分)|多(高|大|远|"
            r"快|重|深|宽)|上限",
            re.I,
        ),
    ),
    (Shape.PERSON, re.compile(r"\b(who|whom|whose|who's)\b|\b(wer|wem|wen|wessen)\b|谁|哪(位|个人)|什么人", re.I)),
    (
        Shape.PLACE,
        re.compile(
            r"\bwhere\b|\b(what|which) (city|country|town|state|place|county|region|continent|office|room|building)\b"
            r"|\b(wo|wohin|woher)\b|哪里|哪儿|何地|何处|哪个(城市|国家|地方|地区|省)|什么地方|在哪",
            re.I,
        ),
    ),
    (
        Shape.REASON,
        re.compile(
            r"\b(why|what (is|was|were) the (reason|cause)s?)\b|\b(warum|wieso|weshalb)\b|为什么|为何|原因", re.I
        ),
    ),
)

_ASKING_WORDS = re.compile(
    r"\bhow (?:long|old|many|much|often|frequently|far|tall|high|big|large|fast|deep|wide|heavy)\b"
    r"|\b(?:what|which) (?:kind|type|sort|name|number|amount)s? of\b"
    r"|\b(?:wie|wieviele?) (?:lange?|alt|viele?|oft|weit|hoch|groß|schnell)\b"
    r"|\b(?:please|pls|bitte|tell me|show me|list|explain|describe|do you know)\b"
    r"|\b(?:says?|mentions?|get|gets|need|needs|want|wants|happens?|may)\b"
    r"|请问|告诉我|什么时候|什么时间|多长时间|为什么|是什么|什么|多久|多长|多少|何时|何地|哪里|哪儿|哪个|哪些|"
    r"哪位|哪一?"
    r"|怎么样|怎么|怎样|如何|是否|是谁|谁|几(?=[天年个月日小周次人种名位家所条])|多(?=[大高远快重深宽])",
    re.I,
)


def without_asking_words(question: str) -> str:
    """A question without the words that ask, and say nothing of what it is about."""
    return _ASKING_WORDS.sub(" ", question)


_ENGLISH_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half twice"
).split()
_GERMAN_NUMBERS = "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig hundert tausend".split()
_WORD_NUMBER = re.compile(rf"\b({'|'.join(_ENGLISH_NUMBERS + _GERMAN_NUMBERS)})\b", re.I)
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_CJK_NUMBER = re.compile(
    r"[零〇一二三四五六七八九十百千万亿两半]+(?=[个次人种名位家所条台分年月日天周岁倍元块成号点小])"
)
_UNIT = (
    r"(days?|weeks?|months?|years?|hours?|minutes?|seconds?|decades?|centur(?:y|ies)|tagen?|wochen?|"
    r"monaten?|jahren?|stunden?|minuten?)"
)
_DURATION = re.compile(
    rf"(?:\b\d{{1,9}}(?:[.,]\d{{1,9}})?|\b(?:{'|'.join(_ENGLISH_NUMBERS + _GERMAN_NUMBERS)}|an?|eine?n?))"
    r"[\s-]*(?:\(\d+\)\s*)?"
    rf"(?:(?:calendar|business|working|full|more|consecutive)\s+)?{_UNIT}\b"
    r"|(?:\d{1,9}|[一二三四五六七八九十百两半]+)\s*(?:个)?(?:工作日|月|天|年|周|小时|分钟|日|星期|岁|秒)",
    re.I,
)
_FREQUENCY = re.compile(
    rf"\b(?:every|each|once|twice|thrice|per|jede[nrsm]?|alle|pro|einmal|zweimal|dreimal|\d{{1,3}}-?mal)\s+(?:[\w-]+\s+){{0,2}}"
    rf"(?:other|second|third|{_UNIT[1:-1]}|quarters?|night|morning|evening|quartal\w*|monat|tag|jahr|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|july|spring|summer|autumn|winter)\b"
    r"|\b(?:once|twice|thrice|times?) (?:an?|per|each|every|in)\b|\bat (?:regular )?intervals\b"
    rf"|\bmal (?:pro|im|in der|am)\b|\b(?:\d{{1,3}}|{'|'.join(_ENGLISH_NUMBERS)}) times\b|[一二三四五六七八九十两\d]次"
    r"|\b(?:hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annual(?:ly)?|biannual(?:ly)?|biennial(?:ly)?|"
    r"bi-?weekly|bi-?monthly|half-yearly|semi-?annual(?:ly)?|regularly|occasionally|rarely|seldom|frequently|always|never|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b|\b\w*(?:täglich|stündlich|wöchentlich|monatlich|jährlich)\w*"
    r"|每(?:隔)?(?:[一二三四五六七八九十两半\d]{0,3}个?)(?:工作日|天|日|周|星期|月|季度?|年|小时|分钟|半年|次)|次[/／](?:天|日|周|月|年)"
    r"|(?:定期|逐年|逐月|按月|按年|按季|[一两二三四]年一|[一两二三四]个?月一|[一两二三四]周一)",
    re.I,
)
_MONTHS = (
    "january february march april may june july august september october november december "
    "januar februar märz mai juni juli oktober dezember"
).split()
_DATE = re.compile(
    r"\b(?:1[0-9]\d\d|20\d\d)s?\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\b\d{1,2}:\d\d\b|\b\d{1,2}\s?[ap]\.?m\b"
    rf"|\b(?:{'|'.join(_MONTHS)})\b(?<!\bmay)|\bMay\s\d|\d\sMay\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b\d{1,2}(?:st|nd|rd|th) century\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b"
    r"|\d{2,4}\s*年|\d{1,2}\s*月|\d{1,2}\s*[日号]|世纪|\bbc\b|\bad\b|(?:星期|周)[一二三四五六日天]|年代",
    re.I,
)
_MONEY = re.compile(
    r"[$€£¥]\s?\d|\d\s?(?:€|\$|£|usd|eur|chf|rmb|dollars?|euros?|pounds?|cents?|francs?|z[lł]oty|pln|yen|"
    r"rupees?|kr|million|billion)\b|\d\s*[万亿]?元|[百千万亿]元",
    re.I,
)
_PERCENT = re.compile(r"\d\s?%|\bper ?cent\b|\bprozent\b|百分之|％", re.I)
_REASON = re.compile(
    r"\b(because|due to|since|so that|in order to|as a result|caused?|reason|therefore|to avoid|weil|damit|"
    r"wegen)\b|因为|由于|因此|为了|所以|导致",
    re.I,
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][\w’'&-]+(?:\s+(?:of|de|von|van|the|and)?\s*[A-ZÄÖÜ][\w’'&-]+)*")
_ANY_NAME = re.compile(r"\b[A-ZÄÖÜ][\w’'&.-]*[\w]")


@lru_cache(maxsize=2048)
def asked_shape(question: str) -> Shape:
    for shape, pattern in _QUESTION_SHAPES:
        if pattern.search(question):
            return shape
    return Shape.ANY


@lru_cache(maxsize=8192)
def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in one writing: digits, words and CJK numerals before a counter."""
    text = unicodedata.normalize("NFKC", text)
    found = {_plain_number(number) for number in _DIGITS.findall(text)}
    found |= {_WORD_VALUES[word.lower()] for word in _WORD_NUMBER.findall(text) if word.lower() in _WORD_VALUES}
    return frozenset(found | {_cjk_value(number) for number in _CJK_NUMBER.findall(text)})


def _plain_number(number: str) -> str:
    """1,000 and 1.000 → 1000; 2.5 and 2,5 → 2.5; 08 → 8."""
    number = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", number).replace(",", ".")
    return number.lstrip("0") or "0"


_WORD_VALUES = {
    **{word: str(value) for value, word in enumerate(_ENGLISH_NUMBERS[:20], start=1)},
    **{word: str(value) for word, value in zip(_ENGLISH_NUMBERS[20:28], range(30, 110, 10), strict=True)},
    **{word: str(value) for value, word in enumerate(_GERMAN_NUMBERS[:11], start=2)},
    "thousand": "1000",
    "zwanzig": "20",
    "dreißig": "30",
    "hundert": "100",
    "tausend": "1000",
}
_CJK_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CJK_SCALES = {"十": 10, "百": 100, "千": 1000}


def _cjk_value(number: str) -> str:
    total, digit = 0, 0
    for character in number:
        if character in _CJK_DIGITS:
            digit = _CJK_DIGITS[character]
        elif character in _CJK_SCALES:
            total += (digit or 1) * _CJK_SCALES[character]
            digit = 0
        else:
            return number
    return str(total + digit)


@lru_cache(maxsize=8192)
def names(text: str) -> frozenset[str]:
    """Words written with a capital within a sentence, lower-cased: names, in the scripts that have capitals."""
    return frozenset(word.lower() for match in _NAME.findall(text) for word in _ANY_NAME.findall(match))


def holds(shape: Shape, text: str, question: str) -> bool:
    """Whether a text holds a value of this shape that the question doesn't name itself."""
    if shape is Shape.ANY:
        return True
    if shape in (Shape.PERSON, Shape.PLACE):
        return not _has_capitals(text) or bool(names(text) - _words(question))
    if not (_PATTERNS[shape].search(text) or (shape is Shape.DATE and _DURATION.search(text))):
        return False
    return shape in (Shape.REASON, Shape.DATE, Shape.FREQUENCY) or bool(numbers(text) - numbers(question))


_PATTERNS = {
    Shape.DATE: _DATE,
    Shape.FREQUENCY: _FREQUENCY,
    Shape.DURATION: _DURATION,
    Shape.NUMBER: re.compile(rf"{_DIGITS.pattern}|{_WORD_NUMBER.pattern}|{_CJK_NUMBER.pattern}", re.I),
    Shape.MONEY: _MONEY,
    Shape.PERCENT: _PERCENT,
    Shape.REASON: _REASON,
}


def _has_capitals(text: str) -> bool:
    return any(character.isupper() for character in text)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in re.findall(r"[\w’'&-]+", text))


def has_ideographs(text: str) -> bool:
    return _IDEOGRAPH.search(text) is not None


_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
