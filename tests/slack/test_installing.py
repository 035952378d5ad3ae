"""OAuth, and what apps hear when they have to go."""

from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.hearing import told
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.workspace import App, Channel, Installation

pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")  # slack_sdk's, in oauth.v2.access


@pytest.fixture
def stranger(slack: SlackServer) -> AsyncWebClient:
    """A client without a token."""
    return AsyncWebClient(base_url=slack.api_url)


async def test_a_code_becomes_a_token_once(slack: SlackServer, stranger: AsyncWebClient, app: App, ada: Person) -> None:
    code = await ada.allows(app)
    granted = await stranger.oauth_v2_access(client_id=app.client_id, client_secret=app.client_secret, code=code)
    assert (granted["app_id"], granted["team"]["id"], granted["authed_user"]["id"]) == (app.id, ada.team.id, ada.id)
    assert "chat:write" in granted["scope"].split(",")
    who = await AsyncWebClient(granted["access_token"], base_url=slack.api_url).auth_test()
    assert who["user_id"] == granted["bot_user_id"]
    with pytest.raises(SlackApiError, match="invalid_code"):
        await stranger.oauth_v2_access(client_id=app.client_id, client_secret=app.client_secret, code=code)


async def test_only_the_app_itself_gets_its_token(stranger: AsyncWebClient, app: App, ada: Person) -> None:
    code = await ada.allows(app)
    with pytest.raises(SlackApiError, match="bad_client_secret"):
        await stranger.oauth_v2_access(client_id=app.client_id, client_secret="?", code=code)
    with pytest.raises(SlackApiError, match="invalid_client_id"):
        await stranger.oauth_v2_access(client_id="?", client_secret=app.client_secret, code=code)


async def test_an_app_that_is_uninstalled_hears_of_it_first(
    slack: SlackServer, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    await ada.uninstalls(app)
    await ada.posts(team, "it is gone")
    gone, revoked = told(slack, app)
    assert (gone["type"], revoked["type"]) == ("app_uninstalled", "tokens_revoked")
    assert revoked["tokens"] == {"oauth": [], "bot": [installed.bot.id]}


async def test_an_app_whose_token_is_revoked_hears_of_it(
    slack: SlackServer, client: AsyncWebClient, app: App, ada: Person, installed: Installation
) -> None:
    await ada.revokes(app)
    (revoked,) = told(slack, app)
    assert revoked["type"] == "tokens_revoked"
    with pytest.raises(SlackApiError, match="token_revoked"):
        await client.auth_test()


async def test_an_app_that_is_installed_again_keeps_its_bot_and_gets_a_new_token(
    client: AsyncWebClient, app: App, ada: Person, installed: Installation
) -> None:
    again = await ada.installs(app)
    assert (again.bot, again.bot_id) == (installed.bot, installed.bot_id)
    assert again.token != installed.token
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await client.auth_test()
