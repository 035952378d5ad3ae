"""Greetings, thanks and questions about the bot itself, in English, German and Chinese, and what to say to them."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Talk(NamedTuple):
    pattern: re.Pattern[str]
    reply: str


def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{words})", re.I)


_TO_WHOM = (
    r"(?:[ ,]+(?:there|all|everyone|everybody|team|folks|bot|threadlore|again|to you(?: all)?|zusammen|ihr|alle))*"
)
_MUCH = (
    r"(?:[ ,]+(?:a lot|a ton|so much|very much|again|everyone|all|bot|threadlore|man|mate|you|for (?:the|your|"
    r"that|this|all)[\w ]{0,30}|"
    r"(?:that|this|it) (?:helps?|helped|is all|was (?:helpful|great|it|quick))[\w ]{0,20}|that's (?:all|it|"
    r"great|perfect|helpful)|"
    r"in advance|sehr|schön|dir|euch|vielmals|im voraus|für (?:die|deine|eure)[\w ]{0,30}))*"
)
_NICE = (
    r"(?:ok(?:ay)?|great|perfect|super|nice|cool|awesome|excellent|wonderful|alright|good|very good|got it|"
    r"prima|toll|alles klar)"
)

_TALKS = (
    _Talk(
        _whole(
            r"(?:hi+|hello|hey+|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|morning)" + _TO_WHOM
            + r"(?:[ ,.!]+how are you(?: doing)?(?: today)?)?"
        ),
        "Hello! Ask me anything about the files posted here: I answer with the place where it stands.",
    ),
    _Talk(
        _whole(r"(?:hallo|guten (?:tag|morgen|abend)|moin(?: moin)?|servus|grüezi|grüß gott)" + _TO_WHOM),
        "Hallo! Frag mich etwas zu den Dateien hier: Ich antworte mit der Stelle, an der es steht.",
    ),
    _Talk(
        _whole(r"你好|您好|嗨|哈喽|大家好|早上?好|早安|上午好|中午好|下午好|晚上好|在吗|在不在"),
        "你好！关于这里发布的文件，尽管问我：我会引用原文并标明出处。",
    ),
    _Talk(
        _whole(
            rf"(?:{_NICE}[ ,.!]+)*(?:many thanks|thanks?|thank you|thank u|thx|ty|tysm|cheers|much appreciated|"
            rf"appreciate it){_MUCH}"
        ),
        "You're welcome!",
    ),
    _Talk(
        _whole(rf"(?:{_NICE}[ ,.!]+)*(?:(?:vielen |herzlichen |besten )?dank|danke(?:schön)?|merci){_MUCH}"),
        "Gern geschehen!",
    ),
    _Talk(_whole(r"(?:好的?[，,]?)?(?:谢谢|多谢|感谢|谢了|辛苦了)(?:你|您|大家|啦|了|你的帮助|您的帮助)*"), "不客气！"),
    _Talk(
        _whole(
            r"help|what (?:can|do) you do(?: for (?:me|us))?|who are you|what are you|how do you work|how does "
            r"this (?:bot )?work|"
            r"what can i ask(?: you)?|how (?:can|do) (?:i|we) use (?:you|this|this bot)|what is (?:this bot|"
            r"threadlore)|"
            r"what are you able to do|how can you help(?: me| us)?|can you help(?: me| us)?"
        ),
        "I answer questions from the files that were posted here, each statement with its source. Post a file, "
        "then ask, for "
        "example “What is the notice period for contractors?”. Follow-ups in the thread are understood; if "
        "several documents "
        "fit, I ask which one you mean.",
    ),
    _Talk(
        _whole(r"hilfe|was kannst du(?: alles)?|wer bist du|was bist du|wie funktionierst du|was kann ich "
        r"(?:dich )?fragen"),
        "Ich beantworte Fragen aus den Dateien, die hier gepostet wurden, jede Aussage mit ihrer Quelle. Poste "
        "eine Datei und "
        "frag, zum Beispiel „Wie lang ist die Kündigungsfrist?“.",
    ),
    _Talk(
        _whole(r"帮助|你(?:能|会|可以)(?:做|干|帮我做?)?(?:些?什么|啥)|你是谁|你是什么|怎么(?:用|使用)(?:你|"
        r"这个机器人)?"),
        "我根据这里发布的文件回答问题，每句话都注明出处。先发布文件，再提问，例如“承包商的通知期是多久？”。",
    ),
    _Talk(_whole(r"how are you(?: doing)?(?: today)?|how's it going|what's up|sup|wie geht'?s(?: dir)?|wie "
    r"geht es dir"), "Fine, thank you! What would you like to know?"),
    _Talk(
        _whole(r"(?:good ?)?bye(?: bye)?|see you(?: later| soon| tomorrow)?|good night|have a (?:nice|good|"
        r"great) \w+|tschüss|"
               r"auf wiedersehen|再见|拜拜|晚安"),
        "Goodbye!",
    ),
    _Talk(
        _whole(
            rf"{_NICE}(?:[ ,.!]+{_NICE})*|(?:that(?:'s| is)|this is|very) (?:great|perfect|helpful|fine|good|"
            rf"nice|awesome)|well done|"
            r"good (?:bot|job|work)|(?:i see|understood|makes sense|fair enough|never ?mind|no worries|sorry|"
            r"lol|haha+|wow)|"
            r"verstanden|passt|好的?|明白了?|知道了|了解|不错|太好了|棒"
        ),
        "Glad to help. Ask me whenever you need something from the files.",
    ),
)  # fmt: skip

_LONGEST = 100  # characters of small talk
_EDGES = " \t\r\n!.,;:~-…?？！。，、"
_EMOJI = re.compile(r"[\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F\u200D]|:[a-z0-9_+-]{2,30}:|[:;]-?[)D(P]")


def reply_to(text: str) -> str | None:
    """What to say to small talk; None where the message asks something."""
    words = _bare(text)
    if len(words) > _LONGEST:
        return None
    if not words:
        return "Yes? Ask me anything about the files posted here."
    reply = _said(words)
    return reply if reply is not None or text.rstrip().endswith(("?", "？")) else _several_said(words)


def _said(words: str) -> str | None:
    return next((talk.reply for talk in _TALKS if talk.pattern.fullmatch(words)), None)


_TO_SOMEONE = re.compile(
    r"\b((?i:(?:thanks|thank you|thx|cheers|danke|hi|hello|hey|hallo|good morning|bye|ok|okay|great|perfect)"
    r"(?: a lot| so much| very much| sehr)?)),? +[A-ZÄÖÜ][a-zäöüß'-]+(?=[ ,.!]|$)"
)
_CLOSING = re.compile(
    r"(?i:(?:i )?(?:will|shall) do(?: (?:so|that|it))?|i'll (?:do (?:so|that|it)|try(?: that| it)?|check)|sounds good|"
    r"noted|on it|that (?:works|does it)|mach ich|werde ich(?: machen| tun)?|klingt gut)"
)


def _several_said(words: str) -> str | None:
    """What to say to several words of small talk, to somebody by name or not."""
    parts = [part.strip(_EDGES) for part in re.split(r"[,.!;]+", _TO_SOMEONE.sub(r"\1,", words))]
    parts = [part for part in parts if part]
    replies = [_said(part) for part in parts if not _CLOSING.fullmatch(part)]
    if any(reply is None for reply in replies) or not all(
        _is_pleasant(part) or _CLOSING.fullmatch(part) for part in parts
    ):
        return None
    return next((reply for reply in reversed(replies) if reply), "Glad to help.")


def without_pleasantries(text: str) -> str:
    """The message without the greeting before and the thanks after what it asks."""
    parts = re.split(r"(?<=[!.,;。！，\n])\s*|(?<=\?)\s+|(?<=？)", text)
    kept = [part for part in parts if part.strip()]
    while len(kept) > 1 and _is_pleasant(kept[0]):
        kept.pop(0)
    while len(kept) > 1 and _is_pleasant(kept[-1]):
        kept.pop()
    if len(kept) == len([part for part in parts if part.strip()]):
        return text.strip()
    start = text.find(kept[0])
    end = text.rfind(kept[-1]) + len(kept[-1])
    return text[start:end].strip(" \t\r\n,;，")


def _is_pleasant(part: str) -> bool:
    words = _bare(part)
    return (
        not words
        or any(talk.pattern.fullmatch(words) for talk in _TALKS if not _asks(talk))
        or bool(
            re.fullmatch(
                r"please|pls|bitte|请|请问|quick question|a quick question|one question|eine frage|问一下", words, re.I
            )
        )
    )


def _asks(talk: _Talk) -> bool:
    return talk.pattern.fullmatch("help") is not None or talk.pattern.fullmatch("你是谁") is not None


def _bare(text: str) -> str:
    return re.sub(r"\s+", " ", _EMOJI.sub(" ", text).replace("’", "'")).strip(_EDGES)
