"""What an app was told."""

from __future__ import annotations

from typing import Any

from tests.slack.server import SlackServer
from tests.slack.workspace import App

Event = dict[str, Any]


def told(slack: SlackServer, app: App) -> list[Event]:
    """The events that were sent to the app, whether or not it listened."""
    return [delivery.event for delivery in slack.delivered(app)]


def kinds(events: list[Event]) -> list[str]:
    return [str(event.get("subtype", event["type"])) for event in events]
