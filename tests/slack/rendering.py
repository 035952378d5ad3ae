"""What a person sees of a message: text as it stands there, and the buttons that can be clicked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.slack.shapes import MENTION_OR_LINK, unescaped
from tests.slack.workspace import Json, Message, Slack

BROADCASTS = ("here", "channel", "everyone")


@dataclass(frozen=True)
class Button:
    text: str
    action_id: str
    block_id: str
    value: str
    element: Json
    url: str = ""


def plain(message: Message, slack: Slack) -> str:
    """Blocks where there are some, else the text; then what stands below it."""
    if message.subtype == "tombstone":
        return "This message was deleted."
    parts = [_block(block, slack) for block in message.blocks] if message.blocks else [mrkdwn(message.text, slack)]
    tasks = [str(task.get("title", "")) for task in message.tasks.values()]
    attached = [mrkdwn(str(each.get("text") or each.get("fallback", "")), slack) for each in message.attachments]
    return "\n".join(part for part in [*parts, *tasks, *attached] if part)


def mrkdwn(text: str, slack: Slack) -> str:
    """Mentions and links as they are shown."""
    shown = ""
    end = 0
    for found in MENTION_OR_LINK.finditer(text):
        shown += text[end : found.start()] + _token(slack, *found.groups())
        end = found.end()
    return unescaped(shown + text[end:])


def _token(slack: Slack, sign: str, what: str, label: str | None) -> str:
    if sign == "@" and what in slack.users:
        return f"@{slack.users[what].name}"
    if sign == "#" and what in slack.channels:
        return f"#{slack.channels[what].name}"
    if sign == "!":
        return f"@{what}" if what in BROADCASTS else label or what.split("^")[-1]
    return label or what


def buttons(blocks: list[Json]) -> list[Button]:
    return [_button(block, element) for block in blocks for element in _elements(block) if element["type"] == "button"]


def elements(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Everything that can be used, with its block."""
    for block in blocks:
        for element in _elements(block):
            yield block, element


def _elements(block: Json) -> list[Json]:
    match block["type"]:
        case "actions" | "context_actions":
            return [inner for element in block["elements"] for inner in _inner(element)]
        case "section" if "accessory" in block:
            return [block["accessory"]]
        case "input":
            return [block["element"]]
    return []


def _inner(element: Json) -> list[Json]:
    if element["type"] != "feedback_buttons":
        return [element]
    both = (element["positive_button"], element["negative_button"])
    return [{**each, "type": "button", "action_id": element.get("action_id", ""), "of": element} for each in both]


def _button(block: Json, element: Json) -> Button:
    return Button(
        text=element["text"]["text"],
        action_id=element.get("action_id", ""),
        block_id=block.get("block_id", ""),
        value=element.get("value", ""),
        element=element,
        url=element.get("url", ""),
    )


def _block(block: Json, slack: Slack) -> str:
    match block["type"]:
        case "section":
            texts = [block["text"]] if "text" in block else []
            return "\n".join(_text(text, slack) for text in [*texts, *block.get("fields", [])])
        case "context":
            return " ".join(_text(element, slack) for element in block["elements"] if "text" in element)
        case "header":
            return _text(block["text"], slack)
        case "markdown":
            return str(block["text"])
        case "rich_text":
            return "\n".join(_rich(element, slack) for element in block["elements"])
        case "table":
            return "\n".join(" | ".join(_cell(cell, slack) for cell in row) for row in block["rows"])
        case "image":
            return str(block.get("alt_text", ""))
    return ""


def _text(text: Json, slack: Slack) -> str:
    return mrkdwn(text["text"], slack) if text["type"] == "mrkdwn" else str(text["text"])


def _cell(cell: Json, slack: Slack) -> str:
    return str(cell["text"]) if cell["type"] == "raw_text" else _block(cell, slack)


def _rich(element: Json, slack: Slack) -> str:
    inner = element.get("elements", [])
    if element["type"] == "rich_text_list":
        return "\n".join(f"• {_rich(item, slack)}" for item in inner)
    return "".join(_run(run, slack) for run in inner)


def _run(run: Json, slack: Slack) -> str:
    match run["type"]:
        case "text":
            return str(run["text"])
        case "link":
            return str(run.get("text") or run["url"])
        case "user":
            return _token(slack, "@", run["user_id"], None)
        case "channel":
            return _token(slack, "#", run["channel_id"], None)
        case "broadcast":
            return f"@{run['range']}"
        case "emoji":
            return f":{run['name']}:"
    return ""
