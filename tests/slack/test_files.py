"""Files that people share and bots fetch, and files that bots upload."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.faults import DOWNLOAD, Cut, Page, Status, TooMany
from tests.slack.hearing import kinds, told
from tests.slack.people import Person
from tests.slack.server import SlackServer
from tests.slack.uploads import Upload
from tests.slack.workspace import App, Channel, File, Installation

HANDBOOK = Upload("handbook.pdf", b"%PDF-1.7 handbook")


@pytest.fixture
async def http(installed: Installation) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {installed.token}"}) as http:
        yield http


@pytest.fixture
async def handbook(ada: Person, team: Channel) -> File:
    return (await ada.posts(team, files=[HANDBOOK])).files[0]


async def url(client: AsyncWebClient, file: File) -> str:
    found: str = (await client.files_info(file=file.id))["file"]["url_private_download"]
    return found


async def test_a_file_describes_itself(client: AsyncWebClient, ada: Person, team: Channel, handbook: File) -> None:
    shape = (await client.files_info(file=handbook.id))["file"]
    assert (shape["name"], shape["mimetype"], shape["filetype"]) == ("handbook.pdf", "application/pdf", "pdf")
    assert (shape["user"], shape["size"], shape["mode"]) == (ada.id, len(HANDBOOK.content), "hosted")
    assert (shape["channels"], shape["groups"], shape["is_public"]) == ([team.id], [], True)
    assert shape["permalink"] == f"https://acme.slack.com/files/{ada.id}/{handbook.id}/handbook.pdf"


async def test_without_the_scope_there_is_a_login_page_with_status_200(
    slack: SlackServer, client: AsyncWebClient, http: aiohttp.ClientSession, installed: Installation, handbook: File
) -> None:
    address = await url(client, handbook)
    slack.grant(installed, without=["files:read"])
    async with http.get(address) as response:
        assert (response.status, response.content_type) == (200, "text/html")
        assert "Sign in to Slack" in await response.text()


async def test_without_a_token_there_is_a_login_page(client: AsyncWebClient, handbook: File) -> None:
    async with aiohttp.ClientSession() as stranger, stranger.get(await url(client, handbook)) as response:
        assert (response.status, response.content_type) == (200, "text/html")


async def test_a_file_of_a_channel_that_the_bot_is_not_in_is_not_found(
    slack: SlackServer, client: AsyncWebClient, ada: Person
) -> None:
    secret = slack.channel("secret", by=ada, private=True)
    (file,) = (await ada.posts(secret, files=[HANDBOOK])).files
    with pytest.raises(SlackApiError, match="file_not_found"):
        await client.files_info(file=file.id)


async def test_a_deleted_file_is_gone_from_its_message(
    slack: SlackServer,
    client: AsyncWebClient,
    http: aiohttp.ClientSession,
    app: App,
    ada: Person,
    team: Channel,
    handbook: File,
) -> None:
    address = await url(client, handbook)
    await ada.deletes_file(handbook)
    changed, deleted = told(slack, app)[-2:]
    assert changed["message"]["files"] == [{"id": handbook.id, "mode": "tombstone"}]
    assert changed["previous_message"]["files"][0]["name"] == "handbook.pdf"
    assert (deleted["type"], deleted["file_id"], deleted["channel_ids"]) == ("file_deleted", handbook.id, [team.id])
    assert ada.channel(team)[0].files == ()
    with pytest.raises(SlackApiError, match="file_deleted"):
        await client.files_info(file=handbook.id)
    async with http.get(address) as response:
        assert response.content_type == "text/html"


async def test_a_post_is_deleted_with_its_files(
    slack: SlackServer, app: App, ada: Person, team: Channel, handbook: File
) -> None:
    await ada.deletes(ada.channel(team)[0].message)
    assert kinds(told(slack, app))[-2:] == ["message_deleted", "file_deleted"]
    assert handbook.deleted


async def test_a_file_from_elsewhere_has_to_be_looked_up(
    slack: SlackServer, client: AsyncWebClient, app: App, ada: Person, team: Channel, installed: Installation
) -> None:
    globex = slack.team("Globex")
    slack.connect_teams(team, globex)
    guest = slack.person(globex, "gil")
    await ada.invites(team, guest)
    await guest.posts(team, files=[Upload("offer.pdf", b"%PDF", must_be_looked_up=True)])
    shared = next(event for event in told(slack, app) if event.get("subtype") == "file_share")
    (partial,) = shared["files"]
    assert partial["file_access"] == "check_file_info"
    assert "url_private_download" not in partial
    assert (await client.files_info(file=partial["id"]))["file"]["name"] == "offer.pdf"


async def test_external_files_and_snippets_say_so(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    linked = Upload("plan.gdoc", b"", external_url="https://docs.google.com/document/1")
    snippet = Upload("notes.txt", b"\n".join(str(number).encode() for number in range(9)), mode="snippet")
    await ada.posts(team, files=[linked, snippet])
    external, short = (await client.conversations_history(channel=team.id))["messages"][0]["files"]
    assert (external["is_external"], external["mode"], external["url_private"]) == (
        True,
        "external",
        linked.external_url,
    )
    assert "url_private_download" not in external
    assert (short["mode"], short["lines"], short["lines_more"]) == ("snippet", 9, 4)


async def test_a_download_can_go_wrong_in_every_way(
    slack: SlackServer, client: AsyncWebClient, http: aiohttp.ClientSession, handbook: File
) -> None:
    address = await url(client, handbook)
    slack.faults.enqueue(DOWNLOAD, TooMany(3), Status(500), Page(), Cut(4))
    async with http.get(address) as limited:
        assert (limited.status, limited.headers["Retry-After"]) == (429, "3")
    async with http.get(address) as broken:
        assert broken.status == 500
    async with http.get(address) as page:
        assert (page.status, page.content_type) == (200, "text/html")
    with pytest.raises(aiohttp.ClientPayloadError):
        async with http.get(address) as cut:
            await cut.read()
    async with http.get(address) as whole:
        assert await whole.read() == HANDBOOK.content


async def test_a_bot_uploads_files_into_a_thread(client: AsyncWebClient, ada: Person, team: Channel) -> None:
    question = await ada.posts(team, "a chart, please")
    uploads = [{"content": b"one", "filename": "one.txt"}, {"content": b"two", "filename": "two.txt", "title": "Two"}]
    await client.files_upload_v2(
        file_uploads=uploads, channel=team.id, thread_ts=question.ts, initial_comment="Here & now"
    )
    _, reply = ada.thread(question)
    assert (reply.text, reply.by_app) == ("Here & now", True)
    assert [(file.name, file.title, file.content) for file in reply.files] == [
        ("one.txt", "one.txt", b"one"),
        ("two.txt", "Two", b"two"),
    ]
