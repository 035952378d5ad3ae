"""The page in a real browser, before a real bot."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.page.desk import Desk, Visit, private_channel
from tests.running import RunningBot
from tests.scenarios.papers import CONTRACTS, changed, note, paper, pdf
from tests.scenarios.stage import File

QUESTION = "How many days of annual leave do employees have?"
UNCLEAR = "What's the notice period?"
NARROW = {"width": 360, "height": 720}

pytestmark = pytest.mark.timeout(240)  # some tests start a bot of their own, on a machine that may be busy


@pytest.fixture
def ada(desk: Desk, channel: str) -> Visit:
    return desk.sit("ada", channel)


@pytest.fixture
def handbook(ada: Visit) -> Visit:
    """Ada has shared the handbook."""
    expect(ada.shares(paper("handbook.md"))).to_contain_text("ready")
    return ada


@pytest.fixture(scope="module")
def contracts_channel(browser: Browser, bot: RunningBot) -> str:
    """A channel with three contracts, each with a notice period of its own."""
    name = private_channel(bot, "contracts")
    desk = Desk(browser, bot.url)
    expect(desk.sit("ada", name).shares(*map(paper, CONTRACTS)).locator("li")).to_have_count(3)
    desk.leave()
    return name


@pytest.fixture
def contracts(desk: Desk, contracts_channel: str) -> Visit:
    return desk.sit("ada", contracts_channel)


def test_a_first_visit_tells_in_two_lines_what_to_do(ada: Visit) -> None:
    steps = ada.page.locator(".welcome .steps li")
    expect(steps).to_have_count(2)
    expect(steps.nth(0)).to_contain_text("Drop a file")
    expect(steps.nth(1)).to_contain_text("Ask a question")
    ada.page.get_by_role("button", name="What can you do?").click()
    expect(ada.composer).to_have_value("What can you do?")


def test_files_are_dropped_anywhere_and_each_gets_its_verdict(ada: Visit) -> None:
    _drop(ada.page, {"house.md": "# House\n\nThe door code is 4711.", "empty.txt": ""})
    expect(ada.page.locator(".staged li")).to_have_count(2)
    ada.page.get_by_role("button", name="Send").click()
    report = ada.replies.first
    expect(report).to_contain_text("house.md")
    expect(report).to_contain_text("empty.txt")
    chips = ada.thread.locator(".files li")
    expect(chips.filter(has_text="house.md")).to_contain_text("ready")
    expect(chips.filter(has_text="empty.txt")).to_contain_text("not taken")


def test_a_file_shows_how_far_it_is(ada: Visit) -> None:
    ada.page.evaluate("""() => {
      window.steps = new Set();
      new MutationObserver(() => {
        for (const chip of document.querySelectorAll('.thread .files li')) window.steps.add(chip.textContent);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    }""")
    text = "\n\n".join(f"# Rule {number}\n\n" + f"Rule {number} is about valves. " * 60 for number in range(12))
    expect(ada.shares(note("rules.md", text))).to_contain_text("ready")
    steps = ada.page.evaluate("[...window.steps]")
    assert any(re.search(r"(reading|learning) \d+ of \d+", step) for step in steps), steps


def test_a_staged_file_can_be_left_out(ada: Visit) -> None:
    ada.adds(note("one.txt", "one"), note("two.txt", "two"))
    ada.page.get_by_role("button", name="Leave out one.txt").click()
    expect(ada.page.locator(".staged li")).to_have_count(1)
    expect(ada.page.locator(".staged")).to_contain_text("two.txt")


def test_an_answer_is_cited_and_a_citation_opens_the_quoted_place(handbook: Visit) -> None:
    answer = handbook.asks(QUESTION)
    expect(answer).to_contain_text("28 days")
    expect(answer.locator(".source").first).to_contain_text("handbook.md")
    cite = answer.locator(".text").get_by_role("button", name="Source 1: handbook.md").first
    cite.click()
    mark = handbook.panel.locator("mark").first
    expect(mark).to_be_in_viewport()
    expect(handbook.panel).to_contain_text("handbook.md")
    assert "28 days" in "".join(handbook.panel.locator("mark").all_inner_texts())
    handbook.page.keyboard.press("Escape")
    expect(handbook.panel).to_be_hidden()
    expect(cite).to_be_focused()


def test_a_source_links_to_the_post(handbook: Visit) -> None:
    handbook.asks(QUESTION).get_by_role("link", name="The post of handbook.md").first.click()
    expect(handbook.thread.locator(".files")).to_contain_text("handbook.md")


def test_a_source_names_its_page_and_a_citation_opens_there(ada: Visit) -> None:
    ada.shares(pdf("rota.pdf", ["The gate opens at 6.", "The crane is inspected every Monday.", "No post on Sunday."]))
    answer = ada.asks("When is the crane inspected?")
    expect(answer.locator(".source").first).to_contain_text("page 2")
    answer.locator(".source").first.click()
    expect(ada.panel).to_contain_text("page 2")
    expect(ada.panel.locator("mark").first).to_contain_text("every Monday")


def test_the_answer_is_written_while_one_looks_on(handbook: Visit) -> None:
    handbook.page.evaluate("""() => {
      window.seen = { doing: 0, writing: 0 };
      new MutationObserver(() => {
        window.seen.doing += document.querySelectorAll('.doing').length;
        window.seen.writing += document.querySelectorAll('.is-writing .text:not(:empty)').length;
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    }""")
    handbook.asks(QUESTION)
    seen = handbook.page.evaluate("window.seen")
    assert seen["doing"] > 0
    assert seen["writing"] > 0
    expect(handbook.thread.locator(".is-writing, .doing")).to_have_count(0)


def test_a_new_reply_is_told_to_a_screen_reader(handbook: Visit) -> None:
    handbook.asks(QUESTION)
    spoken = handbook.page.locator("#announcer")
    expect(spoken).to_have_attribute("aria-live", "polite")
    expect(spoken).to_contain_text("28 days")


def test_a_clarification_is_answered_with_a_click(contracts: Visit) -> None:
    card = contracts.asks(UNCLEAR)
    options = card.locator(".option")
    expect(options).to_have_count(3)
    options.filter(has_text=re.compile("birchwood", re.IGNORECASE)).click()
    expect(contracts.replies.nth(1)).to_contain_text("six weeks")
    expect(card.locator(".option")).to_have_count(0)
    expect(card.locator(".chosen")).to_contain_text(re.compile("you chose.*birchwood", re.IGNORECASE))
    contracts.page.reload()
    expect(contracts.replies.first.locator(".chosen")).to_contain_text(re.compile("birchwood", re.IGNORECASE))


def test_a_clarification_is_answered_by_typing(contracts: Visit) -> None:
    card = contracts.asks(UNCLEAR)
    expect(card.locator(".option")).to_have_count(3)
    expect(contracts.goes_on("the one with Aldgate")).to_contain_text("30 days")
    expect(card.locator(".option")).to_have_count(0)


def test_somebody_else_is_told_that_the_asker_is_meant(desk: Desk, contracts: Visit, contracts_channel: str) -> None:
    card = contracts.asks(UNCLEAR)
    ben = desk.sit("ben", contracts_channel)
    ben.page.goto(contracts.page.url)
    ben.replies.first.locator(".option").first.click()
    expect(ben.replies.first.get_by_role("alert")).to_contain_text("ada")
    expect(card.locator(".option").first).to_be_enabled()
    expect(contracts.replies).to_have_count(1)


def test_a_choice_that_was_made_elsewhere_is_shown(desk: Desk, contracts: Visit, contracts_channel: str) -> None:
    contracts.asks(UNCLEAR)
    elsewhere = desk.tab(contracts.page.context, "ada", contracts_channel)
    elsewhere.page.goto(contracts.page.url)
    expect(elsewhere.replies.first.locator(".option")).to_have_count(3)
    contracts.replies.first.locator(".option").first.click()
    expect(elsewhere.replies.first.locator(".option")).to_have_count(0)
    expect(elsewhere.replies).to_have_count(2)


def test_an_answer_is_rated(handbook: Visit) -> None:
    rating = handbook.asks(QUESTION).get_by_role("group", name="Was this helpful?")
    up = rating.get_by_role("button", name="A good answer", exact=True)
    with handbook.page.expect_response("**/api/feedback") as reply:
        up.click()
    assert reply.value.ok
    expect(up).to_have_attribute("aria-pressed", "true")
    with handbook.page.expect_response("**/api/feedback") as reply:
        rating.get_by_role("button", name="Not a good answer").click()
    assert reply.value.ok
    expect(up).to_have_attribute("aria-pressed", "false")
    handbook.page.reload()
    expect(handbook.page.get_by_role("button", name="Not a good answer")).to_have_attribute("aria-pressed", "true")


def test_ones_own_question_is_edited_and_answered_anew(handbook: Visit) -> None:
    handbook.asks(QUESTION)
    question = handbook.thread.locator(".message.person").first
    question.hover()
    question.get_by_role("button", name="Edit this message").click()
    box = question.get_by_role("textbox", name="Edit your message")
    box.fill("How many hours has a full working week?")
    box.press("Enter")
    expect(question).to_contain_text("edited")
    expect(handbook.replies.filter(has_text="38 hours")).to_have_count(1)


def test_ones_own_post_is_deleted_and_its_citation_says_so(handbook: Visit) -> None:
    post = handbook.page.url
    answer = handbook.asks(QUESTION)
    asked = handbook.page.url
    expect(answer).to_contain_text("28 days")
    handbook.page.goto(post)
    message = handbook.thread.locator(".message.person").first
    message.hover()
    message.get_by_role("button", name="Delete this message").click()
    message.get_by_role("button", name="Delete", exact=True).click()
    expect(message).to_contain_text("deleted")
    handbook.page.goto(asked)
    handbook.replies.first.locator(".text .cite").first.click()
    expect(handbook.panel).to_contain_text("Deleted")
    expect(handbook.panel).not_to_contain_text("28 days")


def test_a_citation_of_a_replaced_version_says_what_replaced_it(handbook: Visit, channel: str) -> None:
    answer = handbook.asks(QUESTION)

    def without_text(route: Route) -> None:
        found = route.fetch().json()
        route.fulfill(json={**found, "state": "superseded", "version": 1, "current": 2, "text": ""})

    handbook.page.route("**/sections/**", without_text)
    answer.locator(".text .cite").first.click()
    expect(handbook.panel).to_contain_text("Version 1 was replaced by version 2; its text is no longer kept.")
    handbook.panel.get_by_role("link", name="Documents of its channel").click()
    expect(handbook.panel).to_be_hidden()
    expect(handbook.page.locator(".documents")).to_contain_text("handbook.md")


def test_a_channels_name_is_whole_beside_an_open_thread(desk: Desk) -> None:
    ada = desk.sit("ada", "lunch-walks", viewport={"width": 1280, "height": 800})
    ada.page.request.put(f"{ada.url}/api/channels/lunch-walks?user=ada", data={"user": "ada", "knowledge": False})
    ada.page.reload()
    expect(ada.page.locator("#channel-bar .badge")).to_have_text("no knowledge")
    ada.asks("hello")
    for part in ("#channel-title", "#channel-bar"):
        assert ada.page.locator(part).evaluate("part => part.scrollWidth <= part.clientWidth"), part


def test_other_peoples_messages_have_no_edit_or_delete(desk: Desk, handbook: Visit, channel: str) -> None:
    ben = desk.sit("ben", channel)
    ben.page.goto(handbook.page.url)
    expect(ben.thread.locator(".message.person")).to_have_count(1)
    expect(ben.thread.get_by_role("button", name="Edit this message")).to_have_count(0)


def test_documents_are_listed_with_version_and_forgotten_by_a_button(handbook: Visit) -> None:
    handbook.shares(changed(paper("handbook.md"), "28 days", "29 days"))
    documents = handbook.opens_documents()
    row = documents.locator(".document", has_text="handbook.md")
    expect(row).to_contain_text("version 2")
    expect(row).to_contain_text("ready")
    expect(row).to_contain_text("passage")
    expect(row).to_contain_text("posted by ada")
    row.get_by_role("button", name="Forget").click()
    row.get_by_role("button", name="Forget", exact=True).last.click()
    expect(row).to_have_count(0)
    expect(documents.get_by_role("status")).to_contain_text("handbook.md")


def test_what_is_asked_before_forgetting_stays_while_others_post(desk: Desk, handbook: Visit, channel: str) -> None:
    documents = handbook.opens_documents()
    row = documents.locator(".document", has_text="handbook.md")
    row.get_by_role("button", name="Forget").click()
    desk.sit("ben", channel).shares(note("lunch.md", "# Lunch\n\nLunch is at noon.\n"))
    expect(documents.locator(".document", has_text="lunch.md")).to_contain_text("ready")
    asked = row.get_by_role("group", name="Forget handbook.md?")
    expect(asked.get_by_role("button", name="Forget")).to_be_focused()
    asked.get_by_role("button", name="Keep").click()
    expect(asked).to_have_count(0)
    expect(row.get_by_role("button", name="Forget")).to_be_focused()


def test_a_refused_file_says_why_among_the_documents(ada: Visit) -> None:
    ada.shares(note("empty.txt", ""))
    row = ada.opens_documents().locator(".document", has_text="empty.txt")
    expect(row).to_contain_text("not taken")
    expect(row.locator(".reason")).not_to_be_empty()


def test_a_channel_is_made_for_its_members_alone(desk: Desk, ada: Visit, channel: str) -> None:
    ada.page.get_by_role("button", name="New channel").click()
    dialog = ada.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(f"board-of-{channel}")
    dialog.get_by_label("Members only").check()
    dialog.get_by_label("Members, with commas").fill("ada, cem")
    dialog.get_by_role("button", name="Create").click()
    listed = ada.page.get_by_role("navigation", name="Channels")
    expect(listed).to_contain_text(f"board-of-{channel}")
    ben = desk.sit("ben", channel)
    expect(ben.page.get_by_role("navigation", name="Channels")).to_contain_text(channel)
    expect(ben.page.get_by_role("navigation", name="Channels")).not_to_contain_text(f"board-of-{channel}")
    ben.go(f"board-of-{channel}")
    expect(ben.page.locator("#channel-body")).to_contain_text("not a member")


def test_a_name_is_changed_and_kept(ada: Visit) -> None:
    ada.page.get_by_role("button", name="You are ada").click()
    ada.page.get_by_label("Your name").fill("dora")
    ada.page.get_by_label("Your name").press("Enter")
    ada.page.reload()
    expect(ada.page.get_by_role("button", name="You are dora")).to_be_visible()


def test_others_see_a_new_thread_and_its_reply_without_a_reload(desk: Desk, ada: Visit, channel: str) -> None:
    ben = desk.sit("ben", channel)
    ada.asks("hello")
    row = ben.page.locator(".thread-row", has_text="hello")
    expect(row).to_contain_text("1 reply")
    expect(row).to_contain_text("new")


def test_a_reload_keeps_the_place_and_what_was_typed(ada: Visit) -> None:
    ada.asks("hello")
    ada.answer_box.fill("half a thou")
    ada.page.reload()
    expect(ada.thread.locator(".message.person")).to_contain_text("hello")
    expect(ada.answer_box).to_have_value("half a thou")


def test_a_refused_message_keeps_its_text(ada: Visit) -> None:
    ada.composer.fill("Why? " * 2000)
    ada.composer.press("Enter")
    expect(ada.page.locator("#channel-foot").get_by_role("alert")).to_contain_text("4,000")
    assert len(ada.composer.input_value()) == 10_000


def test_a_post_whose_reply_was_lost_is_sent_again_and_stands_once(ada: Visit) -> None:
    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    ada.page.route("**/api/messages", lose, times=1)
    ada.composer.fill("hello")
    ada.composer.press("Enter")
    expect(ada.page.locator("#channel-foot").get_by_role("alert")).to_contain_text("try again")
    expect(ada.composer).to_have_value("hello")
    ada.composer.press("Enter")
    expect(ada.replies).to_have_count(1)
    expect(ada.page.locator(".thread-row", has_text="hello")).to_have_count(1)


def test_the_page_waits_for_a_bot_that_restarts_and_goes_on(desk: Desk, bot: RunningBot, channel: str) -> None:
    ada = desk.sit("ada", channel)
    ada.asks("hello")
    bot.kill()
    expect(ada.page.locator("#offline")).to_be_visible(timeout=20_000)
    ada.answer_box.fill("thanks")
    ada.answer_box.press("Enter")
    expect(ada.page.locator("#thread-foot").get_by_role("alert")).to_contain_text("try again")
    bot.start()
    expect(ada.page.locator("#offline")).to_be_hidden(timeout=20_000)
    ada.answer_box.press("Enter")
    expect(ada.replies).to_have_count(2)
    ada.page.wait_for_function("document.querySelector('#composer-thread').value === ''")


def test_the_tabs_of_a_browser_share_one_connection(desk: Desk, channel: str, bot: RunningBot) -> None:
    before = _readers(bot)
    ada = desk.sit("ada", channel)
    tabs = [desk.tab(ada.page.context, "ada", channel) for _ in range(7)]
    ada.asks("hello")
    for tab in tabs:
        expect(tab.page.locator(".thread-row", has_text="hello")).to_be_visible()
    assert _readers(bot) - before <= 1


def test_the_keyboard_is_enough(handbook: Visit) -> None:
    page = handbook.page
    handbook.composer.press_sequentially("one")
    handbook.composer.press("Shift+Enter")
    expect(handbook.composer).to_have_value("one\n")
    handbook.asks(QUESTION)
    expect(handbook.answer_box).to_be_focused()
    page.keyboard.press("Escape")
    expect(handbook.thread).to_be_hidden()
    row = page.locator(".thread-row", has_text=QUESTION)
    expect(row).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".thread-row", has_text="handbook.md").or_(page.locator(".thread-row").first)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(handbook.replies).to_have_count(1)
    handbook.replies.first.locator(".text .cite").first.focus()
    page.keyboard.press("Enter")
    expect(handbook.panel).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('#citation')"
        )


def test_every_control_has_a_name(contracts: Visit) -> None:
    contracts.asks(UNCLEAR)
    contracts.page.get_by_role("button", name="Channel settings").click()
    assert contracts.page.evaluate(NAMELESS) == []


def test_a_narrow_screen_shows_one_pane_and_never_scrolls_sideways(
    desk: Desk, contracts: Visit, contracts_channel: str
) -> None:
    contracts.asks(UNCLEAR)
    phone = desk.sit("ada", contracts_channel, viewport=NARROW, has_touch=True, is_mobile=True)
    phone.page.goto(contracts.page.url)
    expect(phone.replies).to_have_count(1)
    for _ in range(2):
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert phone.page.locator(".sidebar, .channel, .thread").filter(visible=True).count() == 1
        phone.page.get_by_role("button", name=re.compile("Back to the channel|Channels")).filter(visible=True).click()
    expect(phone.page.get_by_role("navigation", name="Channels")).to_be_visible()
    phone.go(contracts_channel, "documents")
    expect(phone.page.locator(".document")).to_have_count(3)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(desk: Desk, channel: str, scheme: str) -> None:
    page = desk.sit("ada", channel, color_scheme=scheme).page
    for ink in ("--ink", "--quiet", "--accent", "--danger"):
        for ground in ("--paper", "--side", "--raised", "--sunken"):
            assert page.evaluate(CONTRAST, [ink, ground]) >= 4.5, (ink, ground)
    assert page.evaluate(CONTRAST, ["--accent-ink", "--accent"]) >= 4.5
    assert page.evaluate(CONTRAST, ["--accent", "--accent-soft"]) >= 4.5
    assert page.evaluate(CONTRAST, ["--mark-ink", "--mark"]) >= 4.5


def test_the_page_asks_for_the_token_once(browser: Browser, tmp_path: Path, free_port: Callable[[], int]) -> None:
    guarded = RunningBot(tmp_path, free_port(), {"WEB_TOKEN": "open-sesame"})
    guarded.start()
    desk = Desk(browser, guarded.url)
    try:
        page = desk.sit("ada", "general").page
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Token").fill("wrong")
        dialog.get_by_role("button", name="Sign in").click()
        expect(dialog.get_by_role("alert")).to_contain_text("WEB_TOKEN")
        dialog.get_by_label("Token").fill("open-sesame")
        dialog.get_by_role("button", name="Sign in").click()
        expect(dialog).to_have_count(0)
        expect(page.locator(".welcome")).to_be_visible()
        page.reload()
        expect(page.locator(".welcome")).to_be_visible()
        expect(dialog).to_have_count(0)
    finally:
        desk.leave()
        guarded.stop()
    assert desk.complaints == []


HOSTILE = {
    "<img src=x onerror=alert(1)>": "<p>&lt;img src=x onerror=alert(1)&gt;</p>",
    "[x](javascript:alert(1))": "<p>[x](javascript:alert(1))</p>",
    "[x](data:text/html,hi)": "<p>[x](data:text/html,hi)</p>",
    "[x](//evil.example/)": "<p>[x](//evil.example/)</p>",
    "![x](https://evil.example/x.png)": (
        '<p><a href="https://evil.example/x.png" target="_blank" rel="noopener noreferrer nofollow">x</a></p>'
    ),
    "`<b>`": "<p><code>&lt;b&gt;</code></p>",
    "```html\n<script>\n```": '<pre data-language="html" tabindex="0"><code>&lt;script&gt;</code></pre>',
}
SUBSET = {
    "one\ntwo": "<p>one<br>two</p>",
    "**bold** and *italic* and _so_ and ~~not~~": (
        "<p><strong>bold</strong> and <em>italic</em> and <em>so</em> and <s>not</s></p>"
    ),
    "snake_case_name and 2*3*4": "<p>snake_case_name and 2*3*4</p>",
    "这是**重点**内容": "<p>这是<strong>重点</strong>内容</p>",
    "**open": "<p>**open</p>",
    r"\*plain\*": "<p>*plain*</p>",
    "# Title #": '<h3 class="h1">Title</h3>',
    "- a\n- b\n  - c": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "2. a\n3. b": '<ol start="2"><li>a</li><li>b</li></ol>',
    "- a\n\n- b\n\nafter": "<ul><li>a</li><li>b</li></ul><p>after</p>",
    "> a\n> b": "<blockquote><p>a<br>b</p></blockquote>",
    "see https://example.org/a_b_c.": (
        '<p>see <a href="https://example.org/a_b_c" target="_blank" rel="noopener noreferrer nofollow">'
        "https://example.org/a_b_c</a>.</p>"
    ),
    "[post](/#/general/t1)": '<p><a href="#/general/t1">post</a></p>',
    "a [1] b": "<p>a [1] b</p>",
}
TABLE = "| a | b |\n|---|--:|\n| 1 \\| 2 | **3** |"


@pytest.mark.parametrize(("text", "expected"), [*HOSTILE.items(), *SUBSET.items()])
def test_markdown_becomes_nodes(markdown: Callable[[str], str], text: str, expected: str) -> None:
    assert markdown(text) == expected


def test_a_table_becomes_a_table(markdown: Callable[[str], str]) -> None:
    shown = markdown(TABLE)
    assert '<th>a</th><th class="right">b</th>' in shown
    assert '<td>1 | 2</td><td class="right"><strong>3</strong></td>' in shown


@pytest.mark.parametrize(
    "unit", ["*", "**a ", "[", "`", "``a", "> ", "- ", "|", "[a](", "_a*", "\\", "#", "1. ", "  - a\n", "*a_", "~~a"]
)
def test_hostile_markdown_takes_no_time(bare: Page, unit: str) -> None:
    spent = bare.evaluate(
        """async (text) => {
          const { markdown } = await import('/static/markdown.js');
          const before = performance.now();
          markdown(text);
          return performance.now() - before;
        }""",
        unit * (60_000 // len(unit)),
    )
    assert spent < 1500


@pytest.mark.parametrize(
    ("written", "quote", "marked"),
    [
        ("Leave is **27 days** a year. More.", "Leave is **27 days** a year.", "Leave is 27 days a year."),
        ("a line\nthat is broken, and goes on", "line that is broken,", "linethat is broken,"),
        ("- first\n- second\n\nthird", "first\n- second", "firstsecond"),
        ("| a | b |\n|---|---|\n| one | two |", "| one | two |", "onetwo"),
        ("试用期为三个月。之后", "试用期为三个月。", "试用期为三个月。"),
        ("Caf\u00e9 cr\u00e8me", "Cafe\u0301 cre\u0300me", "Caf\u00e9 cr\u00e8me"),
        ("nothing of it", "something else", ""),
    ],
)
def test_a_quote_is_found_through_its_markup(bare: Page, written: str, quote: str, marked: str) -> None:
    found = bare.evaluate(
        """async ([written, quote]) => {
          const { markdown } = await import('/static/markdown.js');
          const { markQuote } = await import('/static/quote.js');
          const root = document.createElement('div');
          root.append(markdown(written));
          markQuote(root, quote);
          return [...root.querySelectorAll('mark')].map((mark) => mark.textContent).join('');
        }""",
        [written, quote],
    )
    assert found == marked


def test_events_are_read_in_whatever_pieces_they_come(bare: Page) -> None:
    stream = 'id: 7\n\n: beat\n\nevent: reply\nid: 8\ndata: {"a":\ndata: 1}\r\n\r\n'
    found = bare.evaluate(
        """async (stream) => {
          const { Lines } = await import('/static/stream.js');
          const told = [];
          const lines = new Lines((event) => told.push(event));
          for (const character of stream) lines.push(character);
          return told;
        }""",
        stream,
    )
    assert found == [
        {"id": "7", "name": "message", "text": None},
        {"id": "8", "name": "reply", "text": '{"a":\n1}'},
    ]


@pytest.fixture(scope="module")
def bare_page(browser: Browser, bot: RunningBot) -> Page:
    page = browser.new_page()
    page.goto(bot.url)
    return page


@pytest.fixture
def bare(bare_page: Page) -> Page:
    """The page as a place to call its modules in."""
    return bare_page


@pytest.fixture
def markdown(bare: Page) -> Callable[[str], str]:
    def render(text: str) -> str:
        return str(
            bare.evaluate(
                """async (text) => {
                  const { markdown } = await import('/static/markdown.js');
                  const root = document.createElement('div');
                  root.append(markdown(text));
                  return root.innerHTML;
                }""",
                text,
            )
        )

    return render


def _drop(page: Page, files: dict[str, str]) -> None:
    page.evaluate(
        """(files) => {
          const transfer = new DataTransfer();
          for (const [name, text] of Object.entries(files)) transfer.items.add(new File([text], name));
          const target = document.querySelector('#channel-bar');
          for (const type of ['dragover', 'drop']) {
            target.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
          }
        }""",
        files,
    )


def _readers(bot: RunningBot) -> float:
    """How many connections listen to events."""
    with urllib.request.urlopen(f"{bot.url}/metrics") as response:
        text = response.read().decode()
    found = re.search(r"^\w*readers\w* ([\d.]+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


NAMELESS = """() => [...document.querySelectorAll('button, input, textarea, a, dialog, img, progress')]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute('aria-label') || each.textContent.trim() || each.labels?.length
    || each.hasAttribute('alt') || each.getAttribute('aria-labelledby')))
  .map((each) => each.outerHTML)"""

CONTRAST = """([ink, ground]) => {
  const light = (name) => {
    const probe = document.createElement('i');
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const channels = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    const linear = (each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = channels.map((each) => linear(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [one, other] = [light(ink), light(ground)].sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
}"""


MARKUP = "<img src=x onerror=window.owned=1><script>window.owned=1</script>"


def test_markup_in_names_and_texts_is_shown_and_never_run(ada: Visit) -> None:
    """In a file's name, its heading, its text, a question and a citation."""
    text = f"# {MARKUP}\n\nThe door code is 4711, says {MARKUP} [it](javascript:window.owned=1).\n"
    ada.page.on("dialog", lambda dialog: dialog.dismiss())
    name = "<b>door<b> \"onmouseover='window.owned=1'.md"
    expect(ada.shares(File(name, text.encode()))).to_contain_text("<b>door<b>")
    answer = ada.goes_on(f"What is the door code? {MARKUP}")
    expect(answer).to_contain_text("4711")
    expect(ada.thread.locator(".message.person").last).to_contain_text("<script>")
    answer.locator(".text").get_by_role("button", name="Source 1").first.click()
    expect(ada.panel).to_contain_text("4711")
    ada.page.keyboard.press("Escape")
    expect(ada.opens_documents()).to_contain_text("<b>door<b>")
    assert ada.page.evaluate("window.owned") is None
    assert ada.page.locator("img[src=x], b, a[href^=javascript]").count() == 0
