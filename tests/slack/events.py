"""What apps may hear of, and who of them hears it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.slack.workspace import App, Channel, Installation, Json, Slack, Team


@dataclass(frozen=True)
class Happening:
    """An app hears of it with this subscription and one of the scopes, and where its bot is in the channel."""

    event: Json
    subscription: str
    scopes: tuple[str, ...] = ()
    channel: Channel | None = None
    teams: tuple[Team, ...] = ()
    app: App | None = None
    anywhere: bool = False  # heard without being in the channel
    also: tuple[Installation, ...] = field(default=())  # these hear it though they are no longer in the channel

    def reaches(self, installation: Installation) -> bool:
        if installation.refusal or self.subscription not in installation.app.events:
            return False
        if self.app not in (None, installation.app) or installation.team not in self._teams:
            return False
        return installation.may(*self.scopes) and self._is_within_hearing(installation)

    @property
    def _teams(self) -> tuple[Team, ...]:
        return self.teams or (tuple(self.channel.teams) if self.channel else ())

    def _is_within_hearing(self, installation: Installation) -> bool:
        if self.channel is None or self.anywhere or installation in self.also:
            return True
        return installation.bot in self.channel.members


def announce(slack: Slack, *happenings: Happening) -> None:
    """Tell all who may hear of it; several are the same happening as each of several teams sees it."""
    for app in slack.apps.values():
        heard = [
            (happening, each)
            for happening in happenings
            for each in app.installations.values()
            if happening.reaches(each)
        ]
        everyone = [installation for _, installation in heard]
        for happening, installation in heard[:1] if app.one_event_for_all else heard:
            context = slack.ids.new("4-E")
            slack.contexts[context] = everyone
            slack.outbox.put(installation, "events_api", _envelope(slack, happening, installation, context))


def authorization(installation: Installation) -> Json:
    return {
        "enterprise_id": None,
        "team_id": installation.team.id,
        "user_id": installation.bot.id,
        "is_bot": True,
        "is_enterprise_install": False,
    }


def _envelope(slack: Slack, happening: Happening, installation: Installation, context: str) -> Json:
    """The outer event, with an id of its own."""
    return {
        "token": installation.app.verification_token,
        "team_id": installation.team.id,
        "context_team_id": installation.team.id,
        "context_enterprise_id": None,
        "api_app_id": installation.app.id,
        "event": happening.event,
        "type": "event_callback",
        "event_id": slack.ids.new("Ev"),
        "event_time": int(time.time()),
        "authorizations": [authorization(installation)],
        "is_ext_shared_channel": bool(happening.channel and happening.channel.is_ext_shared),
        "event_context": context,
    }
