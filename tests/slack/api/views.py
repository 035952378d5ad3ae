from __future__ import annotations

import time
import uuid
from typing import Any

from tests.slack import blocks as block_kit
from tests.slack.api.call import Request, method
from tests.slack.errors import SlackError, invalid_arguments
from tests.slack.posting import numbered
from tests.slack.shapes import view_json
from tests.slack.workspace import Installation, Json, Slack, Trigger, User, View

LONGEST_TITLE = 24
LONGEST_METADATA = 3000
MOST_STACKED = 3


@method("views.publish")
def publish(request: Request) -> Json:
    user = request.user("user_id")
    content = checked(request.structure("view", "invalid_arguments"), "home")
    known = request.slack.homes.get((request.app.id, user.id))
    _check_hash(request, known)
    view = make_view(request.slack, request.caller, user, content, known)
    request.slack.homes[request.app.id, user.id] = view
    return {"view": view_json(view)}


@method("views.open")
def open_view(request: Request) -> Json:
    trigger = _exchange(request)
    content = checked(request.structure("view", "invalid_arguments"), "modal")
    view = make_view(request.slack, request.caller, trigger.user, content)
    return {"view": view_json(view)}


@method("views.push")
def push(request: Request) -> Json:
    trigger = _exchange(request)
    content = checked(request.structure("view", "invalid_arguments"), "modal")
    below = request.slack.open_views(request.app, trigger.user)
    if len(below) >= MOST_STACKED:
        raise SlackError("push_limit_reached")
    view = make_view(request.slack, request.caller, trigger.user, content)
    stack(view, below)
    return {"view": view_json(view)}


@method("views.update")
def update(request: Request) -> Json:
    view = _named(request)
    _check_hash(request, view)
    content = checked(request.structure("view", "invalid_arguments"), view.content["type"])
    return {"view": view_json(make_view(request.slack, view.installation, view.user, content, view))}


def checked(content: Any, kind: str) -> Json:
    """What may be shown as a view of this kind."""
    if not isinstance(content, dict) or content.get("type") != kind or "blocks" not in content:
        raise invalid_arguments(f"expected a view of type {kind}")
    blocks = block_kit.check(content["blocks"], where="view")
    if len(content.get("private_metadata", "")) > LONGEST_METADATA:
        raise invalid_arguments("private_metadata is too long")
    if kind == "modal" and not 0 < len(content.get("title", {}).get("text", "")) <= LONGEST_TITLE:
        raise invalid_arguments("the title is missing or too long")
    if any(block["type"] == "input" for block in blocks) and kind == "modal" and not content.get("submit"):
        raise invalid_arguments("submit is missing")
    return {**content, "blocks": numbered(blocks)}


def make_view(slack: Slack, installation: Installation, user: User, content: Json, known: View | None = None) -> View:
    """A new view, or the known one with new content."""
    view = known or View(slack.ids.new("V"), installation, user, content, "")
    view.content = content
    view.errors = {}
    view.hash = f"{int(time.time())}.{uuid.uuid4().hex[:8]}"
    slack.views[view.id] = view
    slack.changes.notify()
    return view


def stack(view: View, below: list[View]) -> None:
    if below:
        view.root_id = below[0].root_id or below[0].id
        view.previous_id = below[-1].id


def _exchange(request: Request) -> Trigger:
    trigger = request.slack.triggers.get(request.required("trigger_id"))
    if trigger is None or trigger.installation.app is not request.app:
        raise SlackError("invalid_trigger_id")
    if time.monotonic() - trigger.at > request.slack.timing.trigger:
        raise SlackError("expired_trigger_id")
    if trigger.used:
        raise SlackError("exchanged_trigger_id")
    trigger.used = True
    return trigger


def _named(request: Request) -> View:
    views = request.slack.views
    found = views.get(request.text("view_id"))
    if found is None and request.has("external_id"):
        wanted = request.text("external_id")
        found = next((view for view in views.values() if view.content.get("external_id") == wanted), None)
    if found is None or found.closed or found.installation.app is not request.app:
        raise SlackError("not_found")
    return found


def _check_hash(request: Request, view: View | None) -> None:
    if view and request.has("hash") and request.text("hash") != view.hash:
        raise SlackError("hash_conflict")
