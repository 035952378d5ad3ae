from __future__ import annotations

from tests.slack.api.call import Request, method, next_page
from tests.slack.shapes import user_json_for
from tests.slack.workspace import Json, User


@method("users.info", "users:read")
def info(request: Request) -> Json:
    return {"user": _shape(request, request.user())}


@method("users.list", "users:read")
def list_users(request: Request) -> Json:
    own = [user for user in request.slack.users.values() if user.team is request.team]
    page, cursor = request.page(own, 1000, 1000)
    return {"members": [_shape(request, user) for user in page], "cache_ts": 0} | next_page(cursor)


def _shape(request: Request, user: User) -> Json:
    shape = user_json_for(user, request.team)
    if not request.caller.may("users:read.email"):
        shape["profile"].pop("email", None)
    return shape
