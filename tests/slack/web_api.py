"""The Web API over HTTP: arguments from query, form and JSON, tokens, scopes, errors by Slack's names."""

from __future__ import annotations

import base64
import json
from typing import Any

from aiohttp import hdrs, web

from tests.slack.api.call import METHODS, Call, Method, Request, missing_scope
from tests.slack.errors import Limited, SlackError
from tests.slack.faults import Faults, suffer, too_many
from tests.slack.workspace import App, Installation, Json, Slack


class WebApi:
    def __init__(self, slack: Slack, faults: Faults) -> None:
        self._slack = slack
        self._faults = faults
        self.calls: list[Call] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        arguments = await _arguments(request)
        token = _token(request, arguments)
        call = Call(request.match_info["method"], arguments, token)
        self.calls.append(call)
        self._slack.changes.notify()

        async def answer() -> web.StreamResponse:
            return self._answer(call)

        response = await suffer(self._faults.take(call.method), request, answer)
        call.status = response.status
        self._slack.changes.notify()
        return response

    def _answer(self, call: Call) -> web.Response:
        try:
            with self._slack.lock:
                call.answer = {"ok": True} | self._perform(call)
        except SlackError as error:
            call.answer = {"ok": False, "error": error.code} | error.fields
        except Limited as limit:
            call.answer = {"ok": False, "error": "ratelimited"}
            return too_many(limit.seconds)
        return web.json_response(call.answer, headers=self._headers(call))

    def _perform(self, call: Call) -> Json:
        method = METHODS.get(call.method)
        if method is None:
            raise SlackError("unknown_method", req_method=call.method)
        return method.handle(self._request(call, method))

    def _request(self, call: Call, method: Method) -> Request:
        if method.token == "client":
            return Request(self._slack, call, self._client(call.arguments), None)
        if method.token == "app":
            return Request(self._slack, call, self._app(call.token, method), None)
        installation = self._installation(call.token)
        if not installation.may(*method.scopes):
            raise missing_scope(installation.scopes, method.scopes[:1])
        return Request(self._slack, call, installation.app, installation)

    def _installation(self, token: str) -> Installation:
        if not token:
            raise SlackError("not_authed")
        found = self._slack.installation_by_token(token)
        if found is None:
            raise SlackError("not_allowed_token_type" if token.startswith("xapp-") else "invalid_auth")
        if found.refusal:
            raise SlackError(found.refusal)
        if found.bot.deleted:
            raise SlackError("account_inactive")
        return found

    def _app(self, token: str, method: Method) -> App:
        if not token:
            raise SlackError("not_authed")
        if self._slack.installation_by_token(token):
            raise SlackError("not_allowed_token_type")
        found = next((app for app in self._slack.apps.values() if app.app_token == token), None)
        if found is None:
            raise SlackError("invalid_auth")
        if not found.app_token_scopes.intersection(method.scopes):
            raise missing_scope(found.app_token_scopes, method.scopes)
        return found

    def _client(self, arguments: Json) -> App:
        """By client_id and client_secret."""
        apps = self._slack.apps.values()
        found = next((app for app in apps if app.client_id == arguments.get("client_id")), None)
        if found is None:
            raise SlackError("invalid_client_id")
        if found.client_secret != arguments.get("client_secret"):
            raise SlackError("bad_client_secret")
        return found

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"x-slack-req-id": f"{id(call):x}"}
        installation = self._slack.installation_by_token(call.token)
        method = METHODS.get(call.method)
        if installation:
            headers["x-oauth-scopes"] = ",".join(sorted(installation.scopes))
        if method and method.scopes:
            headers["x-accepted-oauth-scopes"] = ",".join(method.scopes)
        return headers


async def _arguments(request: web.Request) -> Json:
    """Query, form and JSON together."""
    arguments: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.text()
        arguments |= _json_object(body)
    elif request.method == hdrs.METH_POST:
        arguments |= {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    return arguments


def _json_object(body: str) -> Json:
    try:
        value: Any = json.loads(body) if body else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _token(request: web.Request, arguments: Json) -> str:
    kind, _, value = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if kind == "Basic":
        ident, _, secret = base64.b64decode(value).decode().partition(":")
        arguments |= {"client_id": ident, "client_secret": secret}
    given = str(arguments.pop("token", ""))
    return value.strip() if kind == "Bearer" else given
