"""What Block Kit allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.slack.errors import SlackError
from tests.slack.workspace import Json

MOST_BLOCKS = 50
MOST_BLOCKS_IN_VIEW = 100
MARKDOWN = 12_000
WHOLE_MESSAGE = 13_200
TABLE_CHARACTERS = 10_000
KNOWN = {
    "actions": ("elements",),
    "context": ("elements",),
    "context_actions": ("elements",),
    "divider": (),
    "file": ("external_id", "source"),
    "header": ("text",),
    "image": ("alt_text",),
    "input": ("label", "element"),
    "markdown": ("text",),
    "rich_text": ("elements",),
    "section": (),
    "table": ("rows",),
    "video": ("title", "video_url", "thumbnail_url", "alt_text"),
}
ACTIONS = {
    "button", "channels_select", "checkboxes", "conversations_select", "datepicker", "datetimepicker",
    "external_select", "feedback_buttons", "icon_button", "multi_static_select", "multi_users_select", "overflow",
    "radio_buttons", "static_select", "timepicker", "users_select", "workflow_button",
}  # fmt: skip


def check(blocks: Any, *, where: str = "message") -> list[Json]:
    """The blocks, or `invalid_blocks` with what is wrong and where."""
    if not isinstance(blocks, list):
        raise SlackError("invalid_blocks_format")
    problems = [f"[ERROR] {what} [json-pointer:{pointer}]" for what, pointer in _problems(blocks, where)]
    if problems:
        code = "invalid_blocks" if where == "message" else "invalid_arguments"
        raise SlackError(code, errors=problems, response_metadata={"messages": problems})
    if sum(_length(block) for block in blocks) > WHOLE_MESSAGE and where == "message":
        raise SlackError("msg_blocks_too_long")
    return blocks


Problem = tuple[str, str]


def _problems(blocks: list[Any], where: str) -> Iterator[Problem]:
    start = "/blocks" if where == "message" else "/view/blocks"
    most = MOST_BLOCKS if where == "message" else MOST_BLOCKS_IN_VIEW
    if len(blocks) > most:
        yield f"no more than {most} items allowed", start
    for number, block in enumerate(blocks):
        yield from _block(block, f"{start}/{number}")
    yield from _alone(blocks, start)


def _alone(blocks: list[Any], start: str) -> Iterator[Problem]:
    shapes = [block for block in blocks if isinstance(block, dict)]
    if sum(len(str(block.get("text"))) for block in shapes if block.get("type") == "markdown") > MARKDOWN:
        yield f"must be less than {MARKDOWN + 1} characters", start
    if sum(block.get("type") == "table" for block in shapes) > 1:
        yield "only_one_table_allowed", start
    idents = [block["block_id"] for block in shapes if block.get("block_id")]
    for repeated in {ident for ident in idents if idents.count(ident) > 1}:
        yield f'`block_id` "{repeated}" already exists', start


def _block(block: Any, at: str) -> Iterator[Problem]:
    if not isinstance(block, dict) or block.get("type") not in KNOWN:
        yield f"unsupported type: {block.get('type') if isinstance(block, dict) else block}", f"{at}/type"
        return
    for name in KNOWN[block["type"]]:
        if name not in block:
            yield f"missing required field: {name}", at
            return
    yield from _longer(block.get("block_id"), 255, f"{at}/block_id")
    yield from CHECKS.get(block["type"], _nothing)(block, at)


def _nothing(block: Json, at: str) -> Iterator[Problem]:
    yield from ()


def _section(block: Json, at: str) -> Iterator[Problem]:
    if not block.get("text") and not block.get("fields"):
        yield "missing required field: text", at
    if "text" in block:
        yield from _text(block["text"], 3000, f"{at}/text")
    if len(block.get("fields", [])) > 10:
        yield "no more than 10 items allowed", f"{at}/fields"
    for number, each in enumerate(block.get("fields", [])):
        yield from _text(each, 2000, f"{at}/fields/{number}")
    if "accessory" in block:
        yield from _element(block["accessory"], f"{at}/accessory")


def _header(block: Json, at: str) -> Iterator[Problem]:
    yield from _text(block["text"], 150, f"{at}/text", ("plain_text",))


def _context(block: Json, at: str) -> Iterator[Problem]:
    yield from _count(block["elements"], 10, f"{at}/elements")
    for number, each in enumerate(block["elements"]):
        if each.get("type") != "image":
            yield from _text(each, 3000, f"{at}/elements/{number}")


def _actions(block: Json, at: str) -> Iterator[Problem]:
    yield from _count(block["elements"], 25 if block["type"] == "actions" else 5, f"{at}/elements")
    for number, each in enumerate(block["elements"]):
        yield from _element(each, f"{at}/elements/{number}")
    names = [each.get("action_id") for each in block["elements"] if isinstance(each, dict) and each.get("action_id")]
    for repeated in {name for name in names if names.count(name) > 1}:
        yield f'`action_id` "{repeated}" already exists for another action', f"{at}/elements"


def _markdown(block: Json, at: str) -> Iterator[Problem]:
    if not isinstance(block["text"], str) or not block["text"]:
        yield "must be more than 0 characters", f"{at}/text"


def _table(block: Json, at: str) -> Iterator[Problem]:
    rows = block["rows"]
    yield from _count(rows, 100, f"{at}/rows")
    for number, row in enumerate(rows):
        yield from _count(row, 20, f"{at}/rows/{number}")
        for column, cell in enumerate(row):
            if cell.get("type") not in ("raw_text", "rich_text", "raw_number"):
                yield f"unsupported type: {cell.get('type')}", f"{at}/rows/{number}/{column}/type"
    if _length(block) > TABLE_CHARACTERS:
        yield f"must be less than {TABLE_CHARACTERS + 1} characters", f"{at}/rows"


def _input(block: Json, at: str) -> Iterator[Problem]:
    yield from _text(block["label"], 2000, f"{at}/label", ("plain_text",))
    yield from _longer(block["element"].get("action_id"), 255, f"{at}/element/action_id")


def _element(element: Any, at: str) -> Iterator[Problem]:
    kind = element.get("type") if isinstance(element, dict) else None
    if kind == "image":
        return
    if kind not in ACTIONS:
        yield f"unsupported type: {kind}", f"{at}/type"
        return
    yield from _longer(element.get("action_id"), 255, f"{at}/action_id")
    if kind == "button":
        yield from _button(element, at)
    if kind == "feedback_buttons":
        for name in ("positive_button", "negative_button"):
            yield from _button(element.get(name, {}), f"{at}/{name}")
    if "options" in element:
        yield from _count(element["options"], 5 if kind == "overflow" else 100, f"{at}/options")


def _button(element: Json, at: str) -> Iterator[Problem]:
    yield from _text(element.get("text"), 75, f"{at}/text", ("plain_text",))
    yield from _longer(element.get("value"), 2000, f"{at}/value")
    yield from _longer(element.get("url"), 3000, f"{at}/url")
    if element.get("style", "primary") not in ("primary", "danger"):
        yield "must be one of `primary`, `danger`", f"{at}/style"


def _text(text: Any, most: int, at: str, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> Iterator[Problem]:
    if not isinstance(text, dict) or text.get("type") not in kinds:
        yield f"must be one of {', '.join(kinds)}", f"{at}/type"
    elif not text.get("text"):
        yield "must be more than 0 characters", f"{at}/text"
    else:
        yield from _longer(text["text"], most, f"{at}/text")


def _longer(text: Any, most: int, at: str) -> Iterator[Problem]:
    if text is not None and len(text) > most:
        yield f"must be less than {most + 1} characters", at


def _count(items: Any, most: int, at: str) -> Iterator[Problem]:
    if not items:
        yield "must provide at least 1 item", at
    elif len(items) > most:
        yield f"no more than {most} items allowed", at


def _length(value: Any) -> int:
    """How much text there is to read in it."""
    if isinstance(value, list):
        return sum(map(_length, value))
    if not isinstance(value, dict):
        return 0
    return sum(
        len(inner) if name == "text" and isinstance(inner, str) else _length(inner) for name, inner in value.items()
    )


CHECKS = {
    "actions": _actions,
    "context": _context,
    "context_actions": _actions,
    "header": _header,
    "input": _input,
    "markdown": _markdown,
    "section": _section,
    "table": _table,
}
