"""What the bot says by itself, in the language of the question: English, or Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.shapes import without_asking_words
from storage.terms import content_terms

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Texts:
    no_documents: str
    not_found: str  # {terms}
    nearest: str  # {names}
    unknown_script: str
    which: str
    open_question: str
    gone: str
    out_of_time: str
    quotations: str
    left_out: str  # {count}
    separator: str


ENGLISH = Texts(
    no_documents="I don't know any documents here yet. Post a file in this channel, and I will answer from it.",
    not_found="I didn't find an answer to this in the files that I may search here. I looked for: {terms}.",
    nearest="The nearest documents are {names}.",
    unknown_script="The search by meaning doesn't know this script: only the words themselves were looked for.",
    which="Several documents answer this. Which one do you mean? Pick one, or just type it.",
    open_question="I'm not sure what you mean. Which document or topic is it about?",
    gone="What you chose is no longer there. This is from the other documents.",
    out_of_time="I ran out of time before I could answer this. Please ask again, or ask for less at once.",
    quotations="the model could not be used: these are quotations",
    left_out="… and {count} more sections.",
    separator=", ",
)

CHINESE = Texts(
    no_documents="这里还没有任何文档。请在这个频道发送文件，我就能根据它回答。",
    not_found="在我可以搜索的文件中没有找到答案。我搜索了：{terms}。",
    nearest="最接近的文档是{names}。",
    unknown_script="语义搜索不支持这种文字：只按字词本身进行了搜索。",
    which="有几份文档都能回答这个问题。您指的是哪一份？请选择，或直接输入。",
    open_question="我不确定您的意思。您问的是哪份文档或哪个主题？",
    gone="您选择的文档已不存在。以下内容来自其他文档。",
    out_of_time="时间不够，没能回答完。请再问一次，或一次少问一些。",
    quotations="无法使用模型：以下为原文摘录",
    left_out="……另有{count}个部分。",
    separator="、",
)


def texts_for(text: str) -> Texts:
    """Chinese where the text is Chinese; Japanese and Korean are answered in English."""
    return CHINESE if _CHINESE.search(text) and not _KANA_OR_HANGUL.search(text) else ENGLISH


def plain(name: str) -> str:
    """A document's name, which anyone may choose, as text that no renderer takes for markup."""
    return "`" + " ".join(name.replace("`", "'").split()) + "`"


def telling(question: str) -> str:
    """The words of a question that say what was looked for; the question where none does."""
    if texts_for(question) is CHINESE:
        parts = _CHINESE_JOINTS.split(without_asking_words(_COUNTED.sub(" ", question)))
        words = [part.strip() for part in parts if content_terms(part)]
    else:
        words = [word for word in question.split() if word.strip(_EDGES).casefold() not in _ASKING]
    return " ".join(words) or question


_CHINESE_JOINTS = re.compile(r"[\s，。？！、；：“”《》?!,;:]+|[的了吗呢吧啊么是和与在]+")
_COUNTED = re.compile("(?:多少|几)[个位名家份]")
_EDGES = " .,;:!?\"'()„“”"
_ASKING = frozenset(
    "viel viele vielen habe hat hatte hast haben hätte hätten bin bist war waren wäre sei würde würden wurden worden "
    "sollte sollten solle könnte könnten kannst könnt darf darfst dürfen dürfte müssen musst müsste will willst wollen "
    "wollte möchte möchten mag gilt gelten gab gäbe gehe geht gehen mache macht machen lang lange hoch oft denn mal "
    "bitte "
    "unsere unseren unserem unserer unseres deine deinen euer eure seinen seiner ihren ihrem ihrer dieser diese dieses "
    "diesem diesen alle allen aller jeden jedem alles man sehr schon wieso weshalb worin wofür womit darin dazu dafür "
    "damit gegen pro ins am ans vom beim hinter neben während seit wessen".split()
)


def listed(texts: Texts, words: Iterable[str]) -> str:
    return texts.separator.join(words)
