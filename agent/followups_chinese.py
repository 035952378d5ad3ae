"""A Chinese follow-up made whole: see `agent.followups`."""

from __future__ import annotations

import re

_ENDS = " 　?？。！!，,"
_ASKING = r"(?:什么|多少|多久|多长|多大|多高|怎么|怎样|如何|为什么|为何|谁|哪|几|是否|吗)"
_FRAGMENT = re.compile(r"^(?:那么?|那|还有|以及|如果是|换成|至于|对于)?[，, ]*(.+?)(?:又)?(?:呢|怎么样|的话呢?|如何)$")
_BARE = re.compile(rf"^(?:那|那么|是)?(?:在|从|到|由)?{_ASKING}(?:时候|时间|钱|人|里|个|天|年|地方|是)?(?:呢|啊|的)?$")
_PRONOUN = re.compile(
    r"它们|他们|她们|它|他(?!人)|她|这个|那个|这些|那些|该(?:公司|项目|文件|合同)|这(?=[是有要能])|那(?=[是有要能])"
)
_PREDICATE = re.compile(rf"(?:是|有|为|在|要|需要|可以|能|会)*{_ASKING}.*$|(?:是|有|为)(?=$)|(?:需要|可以|是否).*$")
_NUMBER = re.compile(r"\d[\d.,]*(?:年|月|日|号|%|版|元)?")


def complete_chinese(text: str, asked: str) -> str:
    """`text` as a question that stands by itself, with what it leaves out taken from `asked`."""
    stripped = text.strip(_ENDS)
    fragment = _FRAGMENT.match(stripped)
    if fragment and not re.search(_ASKING, fragment[1]) and len(fragment[1]) <= 16:
        return f"{_replaced(asked, fragment[1].strip(_ENDS))}？"
    if _BARE.match(stripped):
        return f"{topic(asked)}{re.sub(r'^(?:那么?|是)', '', stripped)}？"
    referent = topic(asked)
    if re.search(r"它们?(?:的|多少钱)", stripped) and "的" in referent:
        referent = referent.rpartition("的")[0]
    referred = _PRONOUN.sub(lambda _: referent, stripped, count=1)
    return f"{referred}？" if referred != stripped else text


def goes_on_in_chinese(text: str) -> bool:
    """Whether it goes on from what was said before."""
    return (
        re.match(r"那|还有|另外|此外|以及|而且|然后", text) is not None
        or re.search(r"那里|那边|那儿|其中", text) is not None
    )


def names_nothing(text: str) -> bool:
    """Whether it speaks of a thing that only what was said before could name."""
    return not _VAGUE.sub("", text)


_VAGUE = re.compile(
    r"[\W_]|告诉|解释|介绍|总结|概括|说明|看看|一下|关于|东西|文件|文档|内容|事情|事|资料|意思|情况|问题|里面|里|上面|主要|写|说|讲|指|算|到底|"
    r"为什么|什么|怎么样|怎么办|怎么|如何|怎样|多久|多长|多少|多大|时候|哪里|哪个|哪些|哪|谁|几|它们|他们|她们|它|他|她|这些|那些|这|那|个|"
    r"份|篇|些|样|我们|我|你|您|请问|请|能|可以|会|要|有|是|的|了|吗|呢|吧|啊|呀|又|还|再|更|详细|具体|点|给|对|把|在|帮|想|知道"
)


def topic(asked: str) -> str:
    """What a question is about: without what it asks of it."""
    return _PREDICATE.sub("", asked.strip(_ENDS)).rstrip("的") or asked


def _replaced(asked: str, fragment: str) -> str:
    number = _NUMBER.search(asked)
    if _NUMBER.fullmatch(fragment) and number:
        return asked[: number.start()] + fragment + asked[number.end() :]
    owner, of, rest = asked.partition("的")
    if not of:
        subject = topic(asked)
        return (
            asked.replace(subject, fragment, 1)
            if subject != asked and not _NUMBER.fullmatch(fragment)
            else f"{fragment}{asked}"
        )
    thing = _PREDICATE.sub("", rest.strip(_ENDS))
    if thing and thing[-1] == fragment[-1]:
        return f"{owner}的{fragment}{rest[len(thing) :]}"
    return f"{fragment}的{rest}" if not _NUMBER.fullmatch(fragment) else f"{fragment}{asked}"
