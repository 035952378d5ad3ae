from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.database import open_database, sqlite_url
from storage.documents import Begun, Documents, FilePost, Standing, Swapped, means_nothing
from storage.models import Anchor, Document, DocumentState, Scope, Section, Version, channel_audience, document_id

SECTIONS = [Section(1, ("One",), "text\n", (Anchor(0, 1, "page 1"),)), Section(2, (), "more", (Anchor(2, None, ""),))]


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    async with open_database(sqlite_url(tmp_path / "catalog.db")) as database:
        yield Documents(database)


def post(
    message: str, name: str = "handbook.pdf", *, at: float = 0, attachment: str = "f", channel: str = "c"
) -> FilePost:
    return FilePost(
        workspace="w",
        channel=channel,
        audience=channel_audience(channel),
        name=name,
        size=10,
        posted_by="ann",
        posted_at=at or float(message.strip("m") or 0),
        message=message,
        attachment=attachment,
        link=f"https://chat/{message}",
    )


async def take_in(documents: Documents, posted: FilePost, content: str) -> Swapped:
    begun = await begin(documents, posted, content)
    assert await documents.store_sections(begun.key, SECTIONS, pages=3)
    return await documents.swap(begun.key, passages=4, embedded=True)


async def begin(documents: Documents, posted: FilePost, content: str) -> Document:
    begun = await documents.begin(posted, content)
    assert begun.standing is Standing.PENDING
    assert begun.document is not None
    return begun.document


async def names(documents: Documents, channel: str = "c") -> list[tuple[str, int]]:
    scope = Scope("w", frozenset({channel_audience(channel)}))
    return [(document.name, document.version) for document in await documents.visible(scope)]


async def test_a_new_document_answers_only_after_its_swap(documents: Documents) -> None:
    begun = await begin(documents, post("m1"), "one")
    assert begun.document == document_id("w", "channel:c", "handbook.pdf")
    assert await names(documents) == []
    assert await documents.living("w", [begun.key]) == {}
    assert await documents.pending("w") == [begun.key]

    await documents.store_sections(begun.key, SECTIONS, pages=3, note="no text on page 2")
    swapped = await documents.swap(begun.key, passages=4, embedded=False)
    assert (swapped.document.verdict, swapped.document.reason) == ("indexed", "no text on page 2")
    assert (swapped.document.sections, swapped.document.passages, swapped.document.pages) == (2, 4, 3)
    assert await names(documents) == [("handbook.pdf", 1)]
    assert set(await documents.living("w", [begun.key, Version("other", 1)])) == {begun.key}
    assert await documents.living("another workspace", [begun.key]) == {}
    assert [each.key for each in await documents.unembedded()] == [begun.key]
    await documents.mark_embedded(begun.key)
    assert await documents.unembedded() == []


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Lease-Birch.pdf", "what does LEASE-BIRCH.PDF say?"),
        ("İzin.txt", "how long does leave last in izin.txt?"),
        ("Islak.txt", "and in ıslak.txt?"),
        ("Straße 4.md", "was steht in straße 4?"),
        ("手册.docx", "手册.docx里写了什么？"),
        ("~$plan.xlsx", "what is in ~$plan.xlsx?"),
        ("🙂.txt", "what is in 🙂.txt?"),
    ],
)
async def test_a_document_that_a_question_names_is_among_those_it_may_name(
    documents: Documents, name: str, question: str
) -> None:
    named = (await take_in(documents, post("m1", name), "one")).document
    other = (await take_in(documents, post("m2", "elsewhere.md"), "two")).document
    scope = Scope("w", frozenset({channel_audience("c")}))
    assert await documents.named(scope, question) == [(named.document, name)]
    both = await documents.named(scope, question, [other.document])
    assert sorted(both) == sorted([(named.document, name), (other.document, "elsewhere.md")])
    assert await documents.named(Scope("w", frozenset({channel_audience("d")})), question, [other.document]) == []
    assert await documents.named(Scope("v", scope.audiences), question, [other.document]) == []


async def test_sections_are_kept_whole_and_once(documents: Documents) -> None:
    begun = await begin(documents, post("m1"), "one")
    for _ in range(2):
        await documents.store_sections(begun.key, SECTIONS, pages=3)
    assert await documents.sections(begun.key) == SECTIONS
    assert await documents.sections(begun.key, [2]) == SECTIONS[1:]


async def test_the_same_name_supersedes_in_its_channel_alone(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    elsewhere = await take_in(documents, post("m2", channel="d"), "two")
    second = await take_in(documents, post("m3"), "three")

    assert (second.document.verdict, second.document.version) == ("superseded", 2)
    assert second.replaced is not None
    assert second.replaced.key == first.document.key
    assert await names(documents) == [("handbook.pdf", 2)]
    assert await names(documents, "d") == [("handbook.pdf", 1)]
    assert await documents.dead("w") == [first.document.key]
    assert await documents.replaced_by(second.document) == await documents.get(*first.document.key)
    assert await documents.replaced_by(elsewhere.document) is None
    newest = await documents.get(second.document.document)
    assert newest is not None
    assert newest.version == 2


async def test_the_same_content_is_unchanged(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    again = await documents.begin(post("m2"), "one")
    assert again == Begun(Standing.UNCHANGED, first.document)
    assert await documents.begin(post("m2"), "one") == again
    assert (await documents.begin(post("m3", channel="d"), "one")).standing is Standing.PENDING


async def test_a_repeat_of_the_same_post_is_settled(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    assert await documents.begin(post("m1"), "one") == Begun(Standing.SETTLED, first.document)
    await take_in(documents, post("m2"), "two")
    repeated = await documents.begin(post("m1"), "one")
    assert repeated.standing is Standing.SETTLED
    assert repeated.document is not None
    assert repeated.document.version == 1
    assert await names(documents) == [("handbook.pdf", 2)]


async def test_an_interrupted_version_is_taken_up_again(documents: Documents) -> None:
    begun = await begin(documents, post("m1"), "one")
    await documents.store_sections(begun.key, SECTIONS, pages=3)
    resumed = await begin(documents, post("m1"), "one")
    assert resumed.key == begun.key
    assert resumed.sections == 2
    assert await documents.sections(begun.key) == SECTIONS


async def test_a_swap_twice_is_a_swap_once(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    second = await take_in(documents, post("m2"), "two")
    again = await documents.swap(second.document.key, passages=4, embedded=True)
    assert again.document == second.document
    assert not again.gone
    assert await documents.dead("w") == [first.document.key]


async def test_an_older_post_that_comes_late_never_answers(documents: Documents) -> None:
    newer = await take_in(documents, post("m5"), "new")
    late = await take_in(documents, post("m2"), "old")
    assert late.late
    assert late.replaced is None
    assert late.document.state is DocumentState.SUPERSEDED
    assert "later" in late.document.reason
    current = await documents.get(newer.document.document)
    assert current is not None
    assert current.key == newer.document.key
    assert await documents.dead("w") == [late.document.key]


@pytest.mark.parametrize(
    "name",
    [
        "image.png",
        "image (3).png",
        "IMG_2041.jpeg",
        "Untitled",
        "untitled.txt",
        "Untitled document.docx",
        "Screenshot 2026-03-01 at 9.12.44 AM.png",
        "Bildschirmfoto 2026-03-01 um 10.txt",
        "屏幕截图 2026-03-01.pdf",
        "无标题.docx",
        "-.txt",
        "",
        ".md",
        "message.txt",
        ".txt",
        "image" + "1" * 5000 + ".png",
    ],
)
def test_some_names_mean_nothing(name: str) -> None:
    assert means_nothing(name)


@pytest.mark.parametrize(
    "name",
    [
        "handbook.pdf",
        "notes.txt",
        "Imageboard rules.md",
        "2026-03-01.txt",
        "报告.docx",
        "message to staff.md",
        "v2.10",
        "scan rules.pdf",
    ],
)
def test_other_names_mean_something(name: str) -> None:
    assert not means_nothing(name)


async def test_a_name_that_means_nothing_never_supersedes(documents: Documents) -> None:
    first = await take_in(documents, post("m1", "image.png"), "one")
    second = await take_in(documents, post("m2", "image.png"), "two")
    assert second.replaced is None
    assert first.document.document != second.document.document
    assert len(await names(documents)) == 2


async def test_twins_within_one_post_never_supersede_each_other(documents: Documents) -> None:
    await take_in(documents, post("m1", attachment="a"), "one")
    twin = await take_in(documents, post("m1", attachment="b"), "two")
    assert twin.replaced is None
    assert await names(documents) == [("handbook.pdf", 1), ("handbook.pdf", 1)]


async def test_a_name_in_either_unicode_form_is_one_document(documents: Documents) -> None:
    await take_in(documents, post("m1", "Café.md"), "one")
    assert (await take_in(documents, post("m2", "Cafe\u0301.md"), "two")).replaced is not None


async def test_deleting_the_current_post_ends_the_document(documents: Documents) -> None:
    await take_in(documents, post("m1"), "one")
    second = await take_in(documents, post("m2"), "two")
    ended = await documents.delete_post("w", "c", "m2")
    assert [document.key for document in ended] == [second.document.key]
    assert await names(documents) == []
    assert await documents.listed("w") == []
    assert await documents.delete_post("w", "c", "m2") == []


async def test_deleting_an_older_post_changes_nothing(documents: Documents) -> None:
    await take_in(documents, post("m1"), "one")
    await take_in(documents, post("m2"), "two")
    assert await documents.delete_post("w", "c", "m1") == []
    assert await names(documents) == [("handbook.pdf", 2)]


async def test_deleting_one_file_of_a_post_leaves_the_others(documents: Documents) -> None:
    await take_in(documents, post("m1", "a.md", attachment="a"), "one")
    await take_in(documents, post("m1", "b.md", attachment="b"), "two")
    assert [document.name for document in await documents.delete_post("w", "c", "m1", "a")] == ["a.md"]
    assert await names(documents) == [("b.md", 1)]


async def test_a_document_lives_on_by_another_post_of_the_same_content(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    await documents.begin(post("m2"), "one")
    assert await documents.delete_post("w", "c", "m1") == []
    heir = await documents.get(*first.document.key)
    assert heir is not None
    assert (heir.state, heir.message, heir.link, heir.posted_at) == (DocumentState.CURRENT, "m2", "https://chat/m2", 2)
    assert [document.key for document in await documents.delete_post("w", "c", "m2")] == [first.document.key]


async def test_a_deleted_repeat_keeps_nothing_alive(documents: Documents) -> None:
    await take_in(documents, post("m1"), "one")
    await documents.begin(post("m2"), "one")
    assert await documents.delete_post("w", "c", "m2") == []
    assert await names(documents) == [("handbook.pdf", 1)]
    assert len(await documents.delete_post("w", "c", "m1")) == 1


@pytest.mark.parametrize("attachment", ["", "f"])
async def test_a_deletion_that_came_first_is_met_at_the_beginning(documents: Documents, attachment: str) -> None:
    await documents.delete_post("w", "c", "m1", attachment)
    assert await documents.begin(post("m1"), "one") == Begun(Standing.GONE, None)


async def test_a_deletion_in_the_middle_is_met_at_every_step(documents: Documents) -> None:
    begun = await begin(documents, post("m1"), "one")
    await documents.delete_post("w", "c", "m1")
    assert not await documents.is_pending(begun.key)
    assert not await documents.store_sections(begun.key, SECTIONS, pages=1)
    assert (await documents.swap(begun.key, 1, embedded=True)).gone
    assert (await documents.refuse(begun.key, "broken")).state is DocumentState.DELETED
    resumed = await documents.begin(post("m1"), "one")
    assert resumed.standing is Standing.GONE
    assert resumed.document is not None
    assert await documents.dead("w") == [begun.key]


async def test_a_refused_file_is_listed_and_makes_room_for_the_next(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    broken = await begin(documents, post("m2"), "two")
    await documents.refuse(broken.key, "it is broken")
    listed = await documents.listed("w", [channel_audience("c")])
    assert [(document.version, document.state, document.reason) for document in listed] == [
        (1, DocumentState.CURRENT, ""),
        (2, DocumentState.REFUSED, "it is broken"),
    ]
    assert await documents.listed("w", []) == []
    assert await names(documents) == [("handbook.pdf", 1)]
    third = await take_in(documents, post("m3"), "three")
    assert third.document.version == 2
    assert third.replaced is not None
    assert third.replaced.key == first.document.key
    assert [document.version for document in await documents.listed("w")] == [2]


async def test_a_refused_file_is_tried_anew_with_its_post(documents: Documents) -> None:
    broken = await begin(documents, post("m1"), "one")
    await documents.refuse(broken.key, "it took too long")
    again = await begin(documents, post("m1"), "one")
    assert (again.key, again.reason) == (broken.key, "")


async def test_deleting_the_post_of_a_refused_file_unlists_it(documents: Documents) -> None:
    await documents.refuse((await begin(documents, post("m1"), "one")).key, "it is broken")
    await documents.delete_post("w", "c", "m1")
    assert await documents.listed("w") == []


async def test_forgetting_ends_every_version_and_repeat(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    second = await take_in(documents, post("m2"), "two")
    await documents.begin(post("m3"), "two")
    forgotten = await documents.forget(second.document.document)
    assert forgotten is not None
    assert forgotten.key == second.document.key
    assert await names(documents) == []
    assert await documents.dead("w") == [first.document.key, second.document.key]
    assert (await documents.begin(post("m2"), "two")).standing is Standing.GONE
    assert await documents.forget(second.document.document) is None
    assert await documents.forget("unknown") is None
    assert (await take_in(documents, post("m4"), "two")).document.version == 3


async def test_what_is_cleaned_is_erased(documents: Documents) -> None:
    first = await take_in(documents, post("m1"), "one")
    second = await take_in(documents, post("m2"), "two")
    assert await documents.workspaces_with_dead() == ["w"]
    await documents.mark_cleaned([first.document.key, second.document.key])
    assert await documents.dead("w") == []
    assert await documents.workspaces_with_dead() == []
    assert await documents.sections(first.document.key) == SECTIONS, "answers cite a replaced version"
    assert await documents.sections(second.document.key) == SECTIONS, "a living version is never cleaned"
    await documents.delete_post("w", "c", "m1")
    assert await documents.dead("w") == [first.document.key]
    await documents.mark_cleaned([first.document.key])
    assert await documents.sections(first.document.key) == []


async def test_many_versions_are_looked_up_at_once(documents: Documents) -> None:
    only = await take_in(documents, post("m1"), "one")
    wanted = [only.document.key, *(Version(str(number), 1) for number in range(3000))]
    assert set(await documents.living("w", wanted)) == {only.document.key}
