"""Apps come into a workspace and leave it."""

from __future__ import annotations

import uuid

from tests.slack.changes import locked
from tests.slack.errors import SlackError
from tests.slack.events import Happening, announce
from tests.slack.workspace import App, Installation, Json, Slack, User


@locked
def authorize(slack: Slack, app: App, person: User) -> str:
    """The code that Slack sends back when this person has allowed the installation."""
    code = uuid.uuid4().hex
    slack.codes[code] = (app, person)
    return code


@locked
def redeem(slack: Slack, app: App, code: str) -> User:
    owner, person = slack.codes.get(code, (None, None))
    if person is None or owner is not app:
        raise SlackError("invalid_code")
    del slack.codes[code]
    return person


@locked
def revoke(slack: Slack, installation: Installation) -> None:
    """Its token is worth nothing from now on."""
    _tell_revoked(slack, installation)
    installation.refusal = "token_revoked"
    slack.changes.notify()


@locked
def uninstall(slack: Slack, installation: Installation) -> None:
    _tell(slack, installation, {"type": "app_uninstalled"})
    _tell_revoked(slack, installation)
    installation.refusal = "account_inactive"
    for channel in slack.channels.values():
        if installation.bot in channel.members and channel.kind != "im":
            channel.members.remove(installation.bot)
    slack.changes.notify()


def _tell_revoked(slack: Slack, installation: Installation) -> None:
    _tell(slack, installation, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [installation.bot.id]}})


def _tell(slack: Slack, installation: Installation, event: Json) -> None:
    own = event | {"event_ts": slack.clock.ts()}
    announce(slack, Happening(own, event["type"], teams=(installation.team,), app=installation.app))
