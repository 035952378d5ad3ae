"""Browsers in which people have the page open."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, FilePayload, Locator, Page, expect

from tests.running import RunningBot
from tests.scenarios.stage import File

REPLY_SECONDS = 30


def private_channel(bot: RunningBot, name: str) -> str:
    """A channel that Ada and Ben alone can read."""
    body = json.dumps({"visibility": "private", "members": ["ada", "ben"]}).encode()
    request = urllib.request.Request(
        f"{bot.url}/api/channels/{name}?user=ada", body, {"Content-Type": "application/json"}, method="PUT"
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200
    return name


class Desk:
    def __init__(self, browser: Browser, url: str) -> None:
        self.url = url
        self.complaints: list[str] = []
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def sit(self, user: str, channel: str, **window: Any) -> Visit:
        """A person with a browser of their own."""
        context = self._browser.new_context(**window)
        self._contexts.append(context)
        context.set_default_timeout(10_000)
        context.add_init_script(
            f"localStorage.getItem('threadlore.user') ?? localStorage.setItem('threadlore.user', {user!r})"
        )
        return self.tab(context, user, channel)

    def tab(self, context: BrowserContext, user: str, channel: str) -> Visit:
        page = context.new_page()
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        visit = Visit(self.url, page, user)
        visit.go(channel)
        return visit

    def leave(self) -> None:
        for context in self._contexts:
            context.close()

    def _listen(self, message: ConsoleMessage) -> None:
        """A status of 4xx is logged by the browser, whatever the page makes of it."""
        is_status = message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not is_status:
            self.complaints.append(message.text)


class Visit:
    """One tab, and what a person does in it."""

    def __init__(self, url: str, page: Page, user: str) -> None:
        self.url = url
        self.page = page
        self.user = user

    @property
    def composer(self) -> Locator:
        return self.page.locator("#composer-channel")

    @property
    def answer_box(self) -> Locator:
        return self.page.locator("#composer-thread")

    @property
    def thread(self) -> Locator:
        return self.page.get_by_role("region", name="Thread", exact=True)

    @property
    def replies(self) -> Locator:
        return self.thread.locator(".message.bot:not(.is-writing)")

    @property
    def panel(self) -> Locator:
        return self.page.locator("#citation")

    def go(self, *place: str) -> None:
        self.page.goto(f"{self.url}/#/" + "/".join(quote(part, safe="") for part in place))

    def adds(self, *files: File) -> None:
        payloads: list[FilePayload] = [
            {"name": file.name, "mimeType": "application/octet-stream", "buffer": file.content} for file in files
        ]
        self.page.locator("#channel-foot input[type=file]").set_input_files(payloads)

    def shares(self, *files: File) -> Locator:
        """Posts files to the channel; the reply with their verdicts."""
        before = self.page.url
        self.adds(*files)
        self.page.locator("#channel-foot").get_by_role("button", name="Send").click()
        expect(self.page).not_to_have_url(before)
        return self._reply(0)

    def asks(self, question: str) -> Locator:
        """Asks in the channel; the reply."""
        before = self.page.url
        self.composer.fill(question)
        self.composer.press("Enter")
        expect(self.page).not_to_have_url(before)
        expect(self.thread.locator(".message.person").first).to_contain_text(question)
        return self._reply(0)

    def goes_on(self, words: str) -> Locator:
        """Writes in the open thread; the reply."""
        before = self.replies.count()
        self.answer_box.fill(words)
        self.answer_box.press("Enter")
        return self._reply(before)

    def opens_documents(self) -> Locator:
        self.page.get_by_role("link", name="Documents").click()
        return self.page.locator(".documents")

    def _reply(self, number: int) -> Locator:
        reply = self.replies.nth(number)
        expect(reply).to_be_visible(timeout=REPLY_SECONDS * 1000)
        return reply
