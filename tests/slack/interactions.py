"""What Slack sends to an app when somebody clicks, chooses, submits or types a command."""

from __future__ import annotations

import time

from tests.slack.rendering import Button
from tests.slack.shapes import message_json, view_json
from tests.slack.workspace import Channel, Installation, Json, Message, ResponseUrl, Slack, User, View


def block_action(slack: Slack, user: User, message: Message, action: Json) -> Json:
    """Something in a message was used."""
    installation = message.installation
    assert installation is not None
    url = ResponseUrl(installation, user, message.channel, time.monotonic(), message)
    container = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": message.channel.id,
        "is_ephemeral": bool(message.only_for),
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    payload = _interaction(slack, installation, user, "block_actions") | {
        "container": container,
        "channel": _channel(message.channel),
        "state": {"values": {}},
        "response_url": slack.response_url("actions", url),
        "actions": [action | {"action_ts": slack.clock.ts()}],
    }
    return payload if message.only_for else payload | {"message": message_json(message, slack)}


def view_action(slack: Slack, view: View, action: Json, values: Json) -> Json:
    """Something in a view was used."""
    return _interaction(slack, view.installation, view.user, "block_actions") | {
        "container": {"type": "view", "view_id": view.id},
        "view": view_json(view) | {"state": {"values": values}},
        "actions": [action | {"action_ts": slack.clock.ts()}],
    }


def view_submission(slack: Slack, view: View, values: Json) -> Json:
    return _interaction(slack, view.installation, view.user, "view_submission") | {
        "view": view_json(view) | {"state": {"values": values}},
        "response_urls": [],
    }


def view_closed(slack: Slack, view: View) -> Json:
    payload = _interaction(slack, view.installation, view.user, "view_closed")
    return payload | {"view": view_json(view), "is_cleared": False}


def message_shortcut(slack: Slack, user: User, message: Message, installation: Installation, callback_id: str) -> Json:
    url = ResponseUrl(installation, user, message.channel, time.monotonic())
    return _interaction(slack, installation, user, "message_action") | {
        "callback_id": callback_id,
        "action_ts": slack.clock.ts(),
        "message_ts": message.ts,
        "message": message_json(message, slack),
        "channel": _channel(message.channel),
        "response_url": slack.response_url("app", url),
    }


def global_shortcut(slack: Slack, user: User, installation: Installation, callback_id: str) -> Json:
    payload = _interaction(slack, installation, user, "shortcut")
    return payload | {"callback_id": callback_id, "action_ts": slack.clock.ts()}


def slash_command(slack: Slack, url: ResponseUrl, command: str, text: str) -> Json:
    installation, user, channel = url.installation, url.user, url.channel
    return {
        "token": installation.app.verification_token,
        "team_id": installation.team.id,
        "team_domain": installation.team.domain,
        "channel_id": channel.id,
        "channel_name": _channel_name(channel),
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": installation.app.id,
        "is_enterprise_install": "false",
        "response_url": slack.response_url("commands", url),
        "trigger_id": slack.trigger(installation, user),
    }


def clicked(button: Button) -> Json:
    element = button.element
    if "of" in element:
        feedback = {"type": "feedback_buttons", "action_id": button.action_id, "block_id": button.block_id}
        return feedback | {"text": element["text"], "value": button.value}
    action = {"type": "button", "action_id": button.action_id, "block_id": button.block_id, "text": element["text"]}
    return action | {name: element[name] for name in ("value", "style", "url", "confirm") if name in element}


def chosen(block: Json, element: Json, values: list[str]) -> Json:
    """The action of a menu in which these were chosen."""
    action = {"type": element["type"], "action_id": element["action_id"], "block_id": block.get("block_id", "")}
    return action | input_value(element, values)


def input_value(element: Json, values: list[str]) -> Json:
    """What an element holds when a person has written or chosen these."""
    kind: str = element["type"]
    match kind:
        case "plain_text_input" | "email_text_input" | "url_text_input" | "number_input":
            return {"value": values[0] if values else None}
        case "checkboxes" | "multi_static_select":
            return {"selected_options": [option(element, value) for value in values]}
        case "static_select" | "radio_buttons" | "overflow":
            return {"selected_option": option(element, values[0]) if values else None}
    name = kind.removeprefix("multi_").removesuffix("_select").removesuffix("picker")
    if kind.startswith("multi_"):
        return {f"selected_{name}": values}
    return {f"selected_{name.rstrip('s')}": values[0] if values else None}


def option(element: Json, text: str) -> Json:
    found: Json = next(each for each in element["options"] if text in (each["text"]["text"], each["value"]))
    return found


def _interaction(slack: Slack, installation: Installation, user: User, kind: str) -> Json:
    return {
        "type": kind,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team.id},
        "api_app_id": installation.app.id,
        "token": installation.app.verification_token,
        "team": {"id": installation.team.id, "domain": installation.team.domain},
        "enterprise": None,
        "is_enterprise_install": False,
        "trigger_id": slack.trigger(installation, user),
    }


def _channel(channel: Channel) -> Json:
    return {
        "id": channel.id,
        "name": _channel_name(channel),
    }


def _channel_name(channel: Channel) -> str:
    return {"im": "directmessage", "private": "privategroup"}.get(channel.kind, channel.name)
