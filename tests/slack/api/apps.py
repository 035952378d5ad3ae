from __future__ import annotations

from tests.slack import installing
from tests.slack.api.call import Request, method
from tests.slack.errors import SlackError
from tests.slack.events import authorization
from tests.slack.shapes import bot_json, team_json
from tests.slack.workspace import Json


@method("auth.test")
def auth_test(request: Request) -> Json:
    caller = request.caller
    return {
        "url": caller.team.url,
        "team": caller.team.name,
        "user": caller.bot.name,
        "team_id": caller.team.id,
        "user_id": caller.bot.id,
        "bot_id": caller.bot_id,
        "is_enterprise_install": False,
    }


@method("auth.revoke")
def auth_revoke(request: Request) -> Json:
    if request.flag("test"):
        return {"revoked": False}
    installing.revoke(request.slack, request.caller)
    return {"revoked": True}


@method("team.info", "team:read")
def team_info(request: Request) -> Json:
    team = request.slack.teams.get(request.text("team", request.team.id))
    if team is None:
        raise SlackError("team_not_found")
    return {"team": team_json(team)}


@method("bots.info", "users:read")
def bots_info(request: Request) -> Json:
    ident = request.text("bot", request.caller.bot_id)
    found = next((each for each in request.slack.installations if each.bot_id == ident), None)
    if found is None:
        raise SlackError("bot_not_found")
    return {"bot": bot_json(found)}


@method("apps.connections.open", "connections:write", token="app")
def connections_open(request: Request) -> Json:
    return {"url": request.slack.sockets.url_for(request.app)}


@method("apps.event.authorizations.list", "authorizations:read", token="app")
def authorizations_list(request: Request) -> Json:
    """All installations that may hear of an event, of which it names but one."""
    found = request.slack.contexts.get(request.required("event_context"))
    if found is None:
        raise SlackError("invalid_event_context")
    return {"authorizations": [authorization(each) for each in found if each.app is request.app]}


@method("oauth.v2.access", token="client")
def oauth_access(request: Request) -> Json:
    """The code that came with the redirect becomes a token."""
    app = request.app
    person = installing.redeem(request.slack, app, request.required("code"))
    installation = request.slack.install(app, person)
    return {
        "app_id": app.id,
        "authed_user": {"id": person.id},
        "scope": ",".join(sorted(installation.scopes)),
        "token_type": "bot",
        "access_token": installation.token,
        "bot_user_id": installation.bot.id,
        "team": {"id": person.team.id, "name": person.team.name},
        "enterprise": None,
        "is_enterprise_install": False,
    }
