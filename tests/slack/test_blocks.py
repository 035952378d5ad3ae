"""What Block Kit takes, and what it says about the rest."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.workspace import Channel

Json = dict[str, Any]


def button(**changes: Any) -> Json:
    return {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "Yes"}, **changes}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def section(length: int) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * length}}


def table(rows: int, columns: int, length: int = 1) -> Json:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": "x" * length}] * columns] * rows}


GOOD = {
    "a full section": [section(3000)],
    "fifty blocks": [{"type": "divider"}] * 50,
    "twenty-five buttons": [actions(*(button(action_id=str(number)) for number in range(25)))],
    "a full button": [actions(button(value="v" * 2000, action_id="a" * 255))],
    "a full table": [table(100, 20)],
    "full markdown": [{"type": "markdown", "text": "x" * 12_000}],
}
BAD = {
    "a long section": ([section(3001)], "must be less than 3001 characters", "/blocks/0/text/text"),
    "many blocks": ([{"type": "divider"}] * 51, "no more than 50 items allowed", "/blocks"),
    "many buttons": (
        [actions(*(button(action_id=str(number)) for number in range(26)))],
        "no more than 25 items allowed",
        "/blocks/0/elements",
    ),
    "a long value": ([actions(button(value="v" * 2001))], "must be less than 2001", "/blocks/0/elements/0/value"),
    "a long action_id": ([actions(button(action_id="a" * 256))], "must be less than 256", "/elements/0/action_id"),
    "a long block_id": ([{**section(1), "block_id": "b" * 256}], "must be less than 256", "/blocks/0/block_id"),
    "a long label": (
        [actions(button(text={"type": "plain_text", "text": "x" * 76}))],
        "must be less than 76 characters",
        "/blocks/0/elements/0/text/text",
    ),
    "a mrkdwn label": ([actions(button(text={"type": "mrkdwn", "text": "x"}))], "plain_text", "/elements/0/text/type"),
    "two of one action_id": ([actions(button(), button())], "already exists", "/blocks/0/elements"),
    "two of one block_id": ([{**section(1), "block_id": "b"}] * 2, "already exists", "/blocks"),
    "an empty section": ([section(0)], "must be more than 0 characters", "/blocks/0/text/text"),
    "an unknown block": ([{"type": "poem"}], "unsupported type: poem", "/blocks/0/type"),
    "a high table": ([table(101, 1)], "no more than 100 items allowed", "/blocks/0/rows"),
    "a wide table": ([table(1, 21)], "no more than 20 items allowed", "/blocks/0/rows/0"),
    "a full table of long cells": ([table(100, 20, 6)], "must be less than 10001 characters", "/blocks/0/rows"),
    "two tables": ([table(1, 1), table(1, 1)], "only_one_table_allowed", "/blocks"),
    "long markdown": ([{"type": "markdown", "text": "x" * 12_001}], "must be less than 12001 characters", "/blocks"),
    "actions without elements": ([{"type": "actions"}], "missing required field: elements", "/blocks/0"),
}


@pytest.mark.parametrize("blocks", GOOD.values(), ids=GOOD.keys())
async def test_blocks_within_the_limits_are_taken(client: AsyncWebClient, team: Channel, blocks: list[Json]) -> None:
    assert (await client.chat_postMessage(channel=team.id, text="x", blocks=blocks))["ok"]


@pytest.mark.parametrize(("blocks", "why", "where"), BAD.values(), ids=BAD.keys())
async def test_blocks_beyond_the_limits_are_refused_with_the_place(
    client: AsyncWebClient, team: Channel, blocks: list[Json], why: str, where: str
) -> None:
    with pytest.raises(SlackApiError) as refusal:
        await client.chat_postMessage(channel=team.id, text="x", blocks=blocks)
    response = refusal.value.response
    assert response["error"] == "invalid_blocks"
    (problem,) = response["response_metadata"]["messages"]
    assert why in problem
    assert problem.startswith("[ERROR] ") and problem.endswith(f"{where}]")


async def test_a_message_of_many_full_blocks_is_too_long(client: AsyncWebClient, team: Channel) -> None:
    with pytest.raises(SlackApiError, match="msg_blocks_too_long"):
        await client.chat_postMessage(channel=team.id, text="x", blocks=[section(3000)] * 5)
