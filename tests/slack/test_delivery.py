"""Events that come again, late, in another order, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.bolt_bot import BoltBot, Transport
from tests.slack.faults import Closed, Hang, Lost, Refused, Slow, Status, TooMany
from tests.slack.http_events import UnverifiedUrl, sign
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.socket_mode import MOST_CONNECTIONS
from tests.slack.workspace import App, Channel


class Ear:
    """A Socket Mode client that acknowledges what it likes."""

    def __init__(self, slack: SlackServer, app: App) -> None:
        self.requests: list[SocketModeRequest] = []
        self.ignores = 0
        self.client = SocketModeClient(
            app.app_token, web_client=AsyncWebClient(base_url=slack.api_url), ping_interval=1
        )
        self.client.socket_mode_request_listeners.append(self._hear)

    async def __aenter__(self) -> Ear:
        await self.client.connect()  # type: ignore[no-untyped-call]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()  # type: ignore[no-untyped-call]

    async def _hear(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self.requests.append(request)
        if len(self.requests) > self.ignores:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))


@contextlib.asynccontextmanager
async def listening(
    slack: SlackServer, app: App, *statuses: int, headers: dict[str, str] | None = None, challenge: bool = True
) -> AsyncIterator[list[tuple[Mapping[str, str], str]]]:
    """An address that answers with these statuses, and with 200 from then on; what came there, the challenge first."""
    requests: list[tuple[Mapping[str, str], str]] = []
    left = list(statuses)

    async def take(request: web.Request) -> web.Response:
        body = await request.text()
        requests.append((request.headers, body))
        if "challenge" in body:
            return web.json_response({"challenge": json.loads(body)["challenge"] if challenge else "?"})
        return web.Response(status=left.pop(0) if left else 200, headers=headers)

    server = web.Application()
    server.router.add_post("/slack/events", take)
    runner = web.AppRunner(server, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        await slack.serve(app, f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events")
        yield requests
    finally:
        await runner.cleanup()


async def test_a_message_that_is_not_acknowledged_comes_again(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    async with Ear(slack, app) as ear:
        ear.ignores = 2
        await slack.until_connected(app)
        await ada.posts(team, "hello")
        (delivery,) = await slack.until_settled(app)
    assert [request.retry_attempt for request in ear.requests] == [0, 1, 2]
    assert [request.retry_reason for request in ear.requests] == ["", "timeout", "timeout"]
    assert len({request.envelope_id for request in ear.requests}) == 3
    assert len({request.payload["event_id"] for request in ear.requests}) == 1
    assert [attempt.delay is None for attempt in delivery.attempts] == [True, True, False]


async def test_a_message_that_is_never_acknowledged_is_given_up(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    slack.timing.ack = 0.05
    async with Ear(slack, app) as ear:
        ear.ignores = 9
        await slack.until_connected(app)
        await ada.posts(team, "hello")
        (delivery,) = await slack.until_settled(app)
    assert delivery.given_up
    assert len(ear.requests) == 4


async def test_a_message_for_an_app_that_is_away_comes_when_it_is_back(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    slack.timing.retries = (0.0, 0.5, 1.0)
    await ada.posts(team, "hello")
    async with Ear(slack, app) as ear:
        (delivery,) = await slack.until_settled(app)
    assert [request.retry_attempt for request in ear.requests] == [2]
    assert [attempt.failure for attempt in delivery.attempts] == ["connection_failed", "connection_failed", ""]


async def test_each_event_goes_to_one_of_several_connections(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    async with Ear(slack, app) as one, Ear(slack, app) as other:
        await slack.until_connected(app, 2)
        for number in range(10):
            await ada.posts(team, str(number))
        await slack.until_settled(app)
    assert len(one.requests) == len(other.requests) == 5
    texts = {request.payload["event"]["text"] for request in one.requests + other.requests}
    assert texts == {str(number) for number in range(10)}


async def test_an_app_has_no_more_than_ten_connections(slack: SlackServer, app: App) -> None:
    client = AsyncWebClient(base_url=slack.api_url)
    sockets: list[aiohttp.ClientWebSocketResponse] = []
    async with aiohttp.ClientSession() as http:
        for number in range(1, MOST_CONNECTIONS + 1):
            url = (await client.apps_connections_open(app_token=app.app_token))["url"]
            sockets.append(await http.ws_connect(url))
            hello = await sockets[-1].receive_json()
            assert (hello["type"], hello["num_connections"]) == ("hello", number)
            assert hello["connection_info"] == {"app_id": app.id}
        url = (await client.apps_connections_open(app_token=app.app_token))["url"]
        refusal = await (await http.ws_connect(url)).receive_json()
        assert (refusal["type"], refusal["reason"]) == ("disconnect", "too_many_websockets")


async def test_a_url_of_a_connection_is_good_for_one(slack: SlackServer, app: App) -> None:
    url = (await AsyncWebClient(base_url=slack.api_url).apps_connections_open(app_token=app.app_token))["url"]
    async with aiohttp.ClientSession() as http:
        await http.ws_connect(url)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await http.ws_connect(url)


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_an_app_that_is_asked_to_reconnect_goes_on(
    slack: SlackServer, app: App, ada: Person, team: Channel, reason: str
) -> None:
    async with Ear(slack, app) as ear:
        (before,) = await slack.until_connected(app)
        await slack.refresh_connections(app, reason)
        await slack.until(lambda: [each for each in slack.connections(app) if each is not before] or None)
        await ada.posts(team, "hello")
        await slack.until_settled(app)
    assert [request.payload["event"]["text"] for request in ear.requests] == ["hello"]


async def test_an_app_whose_connection_is_cut_comes_back(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    slack.timing.retries = (0.0, 2.5, 2.5)
    async with Ear(slack, app) as ear:
        (before,) = await slack.until_connected(app)
        slack.drop_connections()
        await slack.until(lambda: True if before not in slack.connections(app) else None)
        await ada.posts(team, "hello")
        await slack.until_settled(app)
    assert [request.payload["event"]["text"] for request in ear.requests] == ["hello"]


async def test_a_late_acknowledgement_is_seen_with_its_delay(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    slack.timing.ack, slack.timing.retries = 0.1, ()
    async with Ear(slack, app) as ear:
        ear.ignores = 1
        await slack.until_connected(app)
        await ada.posts(team, "hello")
        (delivery,) = await slack.until_settled(app)
        await ear.client.send_socket_mode_response(SocketModeResponse(ear.requests[0].envelope_id))
        await slack.until(lambda: delivery.acked)
    assert delivery.given_up
    assert delivery.attempts[0].delay is not None and delivery.attempts[0].delay > 0.1


async def test_events_can_be_held_back_and_come_in_another_order(
    slack: SlackServer, app: App, bot: BoltBot, ada: Person, team: Channel
) -> None:
    await bot.connects()
    with slack.holding(lambda held: list(reversed(held))):
        for text in ("one", "two", "three"):
            await ada.posts(team, text)
        assert bot.heard == []
    await slack.until_settled(app)
    assert sorted(event["text"] for event in bot.heard) == ["one", "three", "two"]


async def test_an_event_can_come_again_with_its_id_and_with_another(
    slack: SlackServer, app: App, bot: BoltBot, ada: Person, team: Channel
) -> None:
    await bot.connects()
    message = await ada.posts(team, "hello")
    (delivery,) = await slack.until_settled(app)
    same, other = slack.repeat(delivery), slack.duplicate(delivery)
    await slack.until_settled(app)
    assert same.payload["event_id"] == delivery.payload["event_id"] != other.payload["event_id"]
    assert same.acked and same.acked.number == 1
    assert other.acked and other.acked.number == 0
    assert [event["ts"] for event in bot.heard] == [message.ts] * 3


@pytest.mark.parametrize(
    ("fault", "raises"),
    [
        (TooMany(7), "ratelimited"),
        (Refused("fatal_error"), "fatal_error"),
        (Status(503), "503"),
    ],
)
async def test_the_next_call_can_go_wrong_and_the_one_after_goes_well(
    slack: SlackServer, client: AsyncWebClient, team: Channel, fault: Any, raises: str
) -> None:
    slack.faults.enqueue("chat.postMessage", fault)
    with pytest.raises((SlackApiError, aiohttp.ClientError)) as failure:
        await client.chat_postMessage(channel=team.id, text="one")
    assert raises in str(failure.value) or raises in str(getattr(failure.value, "response", ""))
    await client.chat_postMessage(channel=team.id, text="two")
    assert [message.text for message in team.standing()] == ["two"]


async def test_who_calls_too_often_is_told_when_to_call_again(
    slack: SlackServer, client: AsyncWebClient, team: Channel
) -> None:
    slack.faults.enqueue("chat.postMessage", TooMany(7))
    with pytest.raises(SlackApiError) as refusal:
        await client.chat_postMessage(channel=team.id, text="one")
    assert (refusal.value.response.status_code, refusal.value.response.headers["Retry-After"]) == (429, "7")


async def test_the_answer_to_a_call_can_be_lost_though_it_was_done(
    slack: SlackServer, client: AsyncWebClient, team: Channel
) -> None:
    client.retry_handlers = []
    slack.faults.enqueue("chat.postMessage", Lost(), Closed())
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=team.id, text="done")
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=team.id, text="not done")
    assert [message.text for message in team.standing()] == ["done"]


async def test_a_call_can_hang_or_take_its_time(slack: SlackServer, client: AsyncWebClient, team: Channel) -> None:
    slack.faults.enqueue("chat.postMessage", Hang(), Slow(0.1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await client.chat_postMessage(channel=team.id, text="one")
    await client.chat_postMessage(channel=team.id, text="two")
    assert [message.text for message in team.standing()] == ["two"]


async def test_while_slack_is_down_nothing_works_and_then_all_does(
    slack: SlackServer, app: App, client: AsyncWebClient, ada: Person, team: Channel
) -> None:
    async with Ear(slack, app) as ear:
        await slack.until_connected(app)
        with slack.outage():
            await slack.until(lambda: True if not slack.connections(app) else None)
            with pytest.raises((SlackApiError, aiohttp.ClientError)):
                await client.auth_test()
        await slack.until_connected(app)
        assert (await client.auth_test())["ok"]
        await ada.posts(team, "hello")
        await slack.until_settled(app)
    assert [request.payload["event"]["text"] for request in ear.requests] == ["hello"]


async def test_a_request_over_http_is_signed(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    async with listening(slack, app) as requests:
        await ada.posts(team, "hello")
        await slack.until_settled(app)
    headers, body = requests[-1]
    timestamp = headers["X-Slack-Request-Timestamp"]
    assert headers["X-Slack-Signature"] == sign(app.signing_secret, timestamp, body)
    assert "X-Slack-Retry-Num" not in headers


async def test_a_request_that_fails_comes_again_and_says_why(
    slack: SlackServer, app: App, ada: Person, team: Channel
) -> None:
    async with listening(slack, app, 500, 500) as requests:
        await ada.posts(team, "hello")
        (delivery,) = await slack.until_settled(app)
    retries = [(headers.get("X-Slack-Retry-Num"), headers.get("X-Slack-Retry-Reason")) for headers, _ in requests[1:]]
    assert retries == [(None, None), ("1", "http_error"), ("2", "http_error")]
    assert delivery.acked


async def test_an_app_can_ask_for_no_more_attempts(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    async with listening(slack, app, 500, headers={"X-Slack-No-Retry": "1"}) as requests:
        await ada.posts(team, "hello")
        (delivery,) = await slack.until_settled(app)
    assert (len(requests), delivery.given_up) == (2, True)


async def test_an_address_that_does_not_answer_the_challenge_is_not_taken(slack: SlackServer, app: App) -> None:
    with pytest.raises(UnverifiedUrl):
        async with listening(slack, app, challenge=False):
            pass


async def test_an_app_that_is_gone_is_tried_again(slack: SlackServer, app: App, ada: Person, team: Channel) -> None:
    async with listening(slack, app):
        pass
    await ada.posts(team, "hello")
    (delivery,) = await slack.until_settled(app)
    assert [attempt.failure for attempt in delivery.attempts] == ["connection_failed"] * 4


@pytest.fixture
def transport() -> Transport:
    return "socket"
