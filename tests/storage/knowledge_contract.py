"""What every knowledge store must do. A store's own tests subclass `KnowledgeContract` and give it a `store`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Sequence

import numpy as np
import pytest

from storage.knowledge import Entry, KnowledgeStore, Mode, Query, Vector
from storage.models import Hit, Passage, Scope, Version
from storage.terms import cut, digest

DIMENSION = 8
AUDIENCE = "channel:general"


def vector(*values: float) -> Vector:
    """A unit vector that begins with these values."""
    whole = np.zeros(DIMENSION, dtype=np.float32)
    whole[: len(values)] = values
    unit: Vector = whole / np.linalg.norm(whole)
    return unit


def passage(
    text: str,
    *,
    document: str = "handbook",
    version: int = 1,
    number: int = 1,
    workspace: str = "acme",
    audience: str = AUDIENCE,
    name: str = "handbook.md",
) -> Passage:
    return Passage(
        document=document,
        version=version,
        number=number,
        workspace=workspace,
        audience=audience,
        name=name,
        section=1,
        start=0,
        end=len(text),
        headings=("Handbook",),
        page=None,
        place="",
        text=text,
    )


def entry(of: Passage, embedded: Vector | None = None) -> Entry:
    return Entry(passage=of, digest=digest(of.text), terms=cut(of.text), vector=embedded)


def ask(
    text: str = "",
    embedded: Vector | None = None,
    *,
    workspace: str = "acme",
    audiences: Collection[str] = (AUDIENCE,),
    mode: Mode = Mode.HYBRID,
    limit: int = 10,
    dead: Collection[Version] = (),
    documents: Collection[str] | None = None,
) -> Query:
    return Query(
        scope=Scope(workspace, frozenset(audiences)),
        terms=cut(text),
        vector=embedded,
        mode=mode,
        limit=limit,
        dead=dead,
        documents=documents,
    )


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.text for hit in hits]


HOSTILE = [
    "it's",
    'say "hi"',
    "back\\slash",
    "back\\'quote",
    "x' OR '1'='1",
    "a) OR (true",
    "-- comment",
    "line\nbreak",
    "tab\tbed",
    " padded ",
    "x" * 500,
    "%_*?",
    "`tick` ${x} {{y}}",
    "手册 😀 ßé",
    "",
]


class KnowledgeContract:
    """Its subclass has a fixture `store`, empty for each test."""

    async def test_a_search_in_an_empty_store_finds_nothing(self, store: KnowledgeStore) -> None:
        for mode in Mode:
            assert await store.search(ask("notice period", vector(1), mode=mode)) == []
        assert await store.count("acme", Version("handbook", 1)) == 0
        assert await store.vectors("acme", [digest("x")]) == {}
        await store.remove("acme", [Version("handbook", 1)])
        await store.compact()

    async def test_adding_twice_changes_nothing(self, store: KnowledgeStore) -> None:
        entries = [entry(passage(f"clause {number}", number=number), vector(number)) for number in (1, 2, 3)]
        await store.add(entries)
        once = await store.search(ask("clause", vector(1)))
        await store.add(entries)
        await store.add([*entries, *entries])
        assert await store.search(ask("clause", vector(1))) == once
        assert await store.count("acme", Version("handbook", 1)) == 3

    async def test_adding_nothing_is_nothing(self, store: KnowledgeStore) -> None:
        await store.add([])
        await store.remove("acme", [])
        assert await store.vectors("acme", []) == {}

    async def test_an_entry_with_the_same_id_replaces_the_old_one(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("the draft says ten days"))])
        await store.add([entry(passage("the final says twenty days"), vector(1))])
        assert texts(await store.search(ask("draft days"))) == ["the final says twenty days"]
        assert texts(await store.search(ask("", vector(1), mode=Mode.DENSE))) == ["the final says twenty days"]

    async def test_a_passage_comes_back_unchanged(self, store: KnowledgeStore) -> None:
        whole = Passage(
            document="d'oc-ü_1",
            version=12,
            number=345,
            workspace="acme",
            audience="channel:c'1\"",
            name='Übersicht "final" (2).pdf',
            section=7,
            start=1234,
            end=5678,
            headings=("Teil › 1", "", "第二章 合同"),
            page=9,
            place="page 9, Teil › 1",
            text="Kündigung:\n\n| a | b |\n|---|---|\n| 1 | 'x' |\n\t二十天 😀\r\n ",
        )
        bare = passage("a plain passage", number=2)
        await store.add([entry(whole, vector(1)), entry(bare)])
        found = await store.search(ask("kündigung 二十天", vector(1), audiences=[whole.audience]))
        assert [hit.passage for hit in found] == [whole]
        assert [hit.passage for hit in await store.search(ask("plain"))] == [bare]

    async def test_the_passages_of_each_version_are_counted(self, store: KnowledgeStore) -> None:
        assert await store.counts("acme") == {}
        await store.add([entry(passage(f"rule {number}", number=number)) for number in (1, 2, 3)])
        await store.add([entry(passage("rule 1", version=2)), entry(passage("rule 1", version=2))])
        await store.add([entry(passage("lunch", document="canteen.v1")), entry(passage("lunch", workspace="other"))])
        first, second = Version("handbook", 1), Version("handbook", 2)
        assert await store.counts("acme") == {first: 3, second: 1, Version("canteen.v1", 1): 1}
        await store.remove("acme", [first])
        assert await store.counts("acme") == {second: 1, Version("canteen.v1", 1): 1}
        assert await store.counts("other") == {first: 1}

    async def test_keyword_finds_by_terms_and_the_rarer_term_counts_more(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                *(entry(passage(f"the report number {n} of the team", number=n)) for n in range(1, 6)),
                entry(passage("the team drinks espresso in the kitchen", number=6)),
            ]
        )
        hits = await store.search(ask("the team espresso report", mode=Mode.KEYWORD))
        assert hits[0].passage.number == 6
        assert len(hits) == 6

    async def test_no_shared_term_no_hit(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("holidays and leave"))])
        assert await store.search(ask("espresso", mode=Mode.KEYWORD)) == []
        assert await store.search(ask("", mode=Mode.KEYWORD)) == []

    async def test_terms_are_whole_and_exact(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("set max_retry_count in config.yaml")), entry(passage("AND OR NOT", number=2))])
        assert texts(await store.search(ask("max_retry_count", mode=Mode.KEYWORD)))[0].startswith("set max_retry")
        assert await store.search(ask("max_retry_counts_total99", mode=Mode.KEYWORD, audiences=["none"])) == []
        assert texts(await store.search(ask("NOT", mode=Mode.KEYWORD))) == ["AND OR NOT"]

    async def test_a_query_of_punctuation_and_operators_is_harmless(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("plain words here"))])
        raw = ["terms:", "(", ")", '"', "plain", "*", "~2", "^", "+", "-", "\\", "[a", "TO", "&&", "'"]
        query = Query(Scope("acme", frozenset([AUDIENCE])), raw, None, Mode.KEYWORD)
        assert texts(await store.search(query)) == ["plain words here"]

    async def test_a_very_long_question_is_answered(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("espresso in the kitchen"))])
        words = " ".join(f"word{number}" for number in range(1500))
        assert len(await store.search(ask(f"espresso {words}", mode=Mode.KEYWORD))) == 1

    async def test_chinese_is_found_by_bigrams(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                entry(passage("合同的通知期限为三十天。", number=1)),
                entry(passage("天气很好，我们去公园。", number=2)),
                entry(passage("通风良好，期待知音，限制。", number=3)),
            ]
        )
        hits = await store.search(ask("通知期限是多少天？", mode=Mode.KEYWORD))
        assert hits[0].passage.number == 1
        assert hits[0].score > hits[1].score

    async def test_dense_finds_by_cosine_the_nearest_first(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                entry(passage("far", number=1), vector(0, 1)),
                entry(passage("near", number=2), vector(1, 0.1)),
                entry(passage("between", number=3), vector(1, 1)),
            ]
        )
        hits = await store.search(ask("", vector(1), mode=Mode.DENSE))
        assert texts(hits) == ["near", "between", "far"]
        assert hits[0].cosine == pytest.approx(1 / np.sqrt(1.01), abs=1e-3)
        assert hits[2].cosine == pytest.approx(0, abs=1e-3)

    async def test_scores_run_from_one_down_to_zero(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("notice " * n, number=n), vector(1, n)) for n in range(1, 9)])
        for mode in Mode:
            scores = [hit.score for hit in await store.search(ask("notice", vector(1), mode=mode))]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)

    async def test_hybrid_joins_both_sides(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                entry(passage("termination needs thirty days", number=1), vector(1, 0.1)),
                entry(passage("termination of a process", number=2), vector(0, 1)),
                entry(passage("to leave, tell us a month before", number=3), vector(1, 0.2)),
                entry(passage("lunch is at noon", number=4), vector(0, 0, 1)),
            ]
        )
        hits = await store.search(ask("termination", vector(1)))
        assert hits[0].passage.number == 1
        assert {2, 3} <= {hit.passage.number for hit in hits}

    async def test_a_side_that_finds_nothing_takes_nothing_from_the_other(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("notice " * n, number=n), vector(1, n)) for n in range(1, 5)])
        await store.add([entry(passage(f"lunch {n}", number=n, audience="channel:words")) for n in range(5, 8)])
        dense = await store.search(ask("", vector(1), mode=Mode.DENSE))
        assert dense[0].score == pytest.approx(1)
        unheard = await store.search(ask("espresso", vector(1)))
        assert [hit.score for hit in unheard] == pytest.approx([hit.score for hit in dense])
        for lonely in (
            ask("lunch 6", vector(1), audiences=["channel:words"]),
            ask("lunch 6", audiences=["channel:words"]),
        ):
            assert [hit.score for hit in await store.search(lonely)] == pytest.approx([1, 0, 0])

    async def test_the_dense_weight_decides_between_the_sides(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                entry(passage("espresso espresso", number=1), vector(0, 1)),
                entry(passage("espresso once in a longer text about cups", number=2), vector(1, 1)),
                entry(passage("nothing of it", number=3), vector(1)),
            ]
        )
        scope = Scope("acme", frozenset([AUDIENCE]))
        by_words = await store.search(Query(scope, cut("espresso"), vector(1), dense_weight=0.1))
        by_sense = await store.search(Query(scope, cut("espresso"), vector(1), dense_weight=0.9))
        assert (by_words[0].passage.number, by_sense[0].passage.number) == (1, 3)

    async def test_an_entry_without_a_vector_is_found_by_keyword_and_never_by_dense(
        self, store: KnowledgeStore
    ) -> None:
        await store.add([entry(passage("the notice period is a month", number=1))])
        assert await store.search(ask("", vector(1), mode=Mode.DENSE)) == []
        await store.add([entry(passage("the notice board", number=2), vector(0, 1))])
        assert [hit.passage.number for hit in await store.search(ask("notice", vector(1), mode=Mode.DENSE))] == [2]
        hybrid = {hit.passage.number: hit.cosine for hit in await store.search(ask("notice", vector(1)))}
        assert hybrid[1] is None
        assert hybrid[2] == pytest.approx(0, abs=1e-3)

    async def test_a_question_without_a_vector_is_a_keyword_search(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("notice period"), vector(1)), entry(passage("lunch", number=2), vector(0, 1))])
        hits = await store.search(ask("notice"))
        assert texts(hits) == ["notice period"]
        assert hits[0].cosine is None
        assert await store.search(ask("notice", mode=Mode.DENSE)) == []

    async def test_better_passages_outside_the_scope_hide_nothing(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                *(
                    entry(passage("secret plan plan plan", number=n, audience="channel:board"), vector(1))
                    for n in range(1, 151)
                ),
                entry(passage("the plan in a long text of many other words", number=151), vector(0.5, 1)),
            ]
        )
        for mode in Mode:
            assert [hit.passage.number for hit in await store.search(ask("secret plan", vector(1), mode=mode))] == [151]

    async def test_an_empty_scope_finds_nothing(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("notice"), vector(1))])
        assert await store.search(ask("notice", vector(1), audiences=[])) == []
        assert await store.search(ask("notice", vector(1), documents=[])) == []

    async def test_every_audience_of_the_scope_is_searched(self, store: KnowledgeStore) -> None:
        audiences = ["channel:a", "channel:b", "thread:a:1"]
        await store.add(
            [entry(passage("notice", number=n, audience=name), vector(1)) for n, name in enumerate(audiences, 1)]
        )
        assert len(await store.search(ask("notice", vector(1), audiences=audiences))) == 3
        assert len(await store.search(ask("notice", vector(1), audiences=audiences[:2]))) == 2
        assert len(await store.search(ask("notice", vector(1), audiences=["channel"]))) == 0

    async def test_names_differ_by_every_character(self, store: KnowledgeStore) -> None:
        names = [
            "channel:a",
            "channel:A",
            " channel:a",
            "channel:a ",
            "channel:a\n",
            "|channel:a|",
            "channel: a",
            "channel:á",
        ]
        await store.add(
            [
                entry(passage("notice", number=n, audience=name, document=name, workspace=name), vector(1))
                for n, name in enumerate(names, 1)
            ]
        )
        for n, name in enumerate(names, 1):
            query = ask("notice", vector(1), workspace=name, audiences=names, documents=names)
            assert [hit.passage.number for hit in await store.search(query)] == [n]
        await store.add(
            [entry(passage("notice", number=n, audience=name, document=name)) for n, name in enumerate(names, 1)]
        )
        for n, name in enumerate(names, 1):
            assert [hit.passage.number for hit in await store.search(ask("notice", audiences=[name]))] == [n]
            only = ask("notice", audiences=names, documents=[name])
            assert [hit.passage.number for hit in await store.search(only)] == [n]

    async def test_dead_versions_are_left_out_before_ranking(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                *(entry(passage("notice notice", number=n), vector(1)) for n in range(1, 131)),
                entry(passage("the notice in the new version", version=2), vector(0.5, 1)),
                entry(passage("notice of another", document="other", number=1), vector(0.4, 1)),
            ]
        )
        dead = [Version("handbook", 1), Version("unknown", 3)]
        for mode in Mode:
            hits = await store.search(ask("notice", vector(1), mode=mode, dead=dead))
            assert {hit.passage.key for hit in hits} == {Version("handbook", 2), Version("other", 1)}

    async def test_a_version_is_not_a_prefix_of_another(self, store: KnowledgeStore) -> None:
        await store.add(
            [entry(passage("notice", version=1), vector(1)), entry(passage("notice", version=11), vector(1))]
        )
        hits = await store.search(ask("notice", vector(1), dead=[Version("handbook", 1)]))
        assert [hit.passage.version for hit in hits] == [11]
        await store.remove("acme", [Version("handbook", 1)])
        assert await store.count("acme", Version("handbook", 11)) == 1

    async def test_only_these_documents(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                *(entry(passage("notice notice", document="big", number=n), vector(1)) for n in range(1, 131)),
                entry(passage("one notice among words", document="small"), vector(0.2, 1)),
            ]
        )
        for mode in Mode:
            hits = await store.search(ask("notice", vector(1), mode=mode, documents=["small", "unknown"]))
            assert [hit.passage.document for hit in hits] == ["small"]

    async def test_workspaces_never_meet(self, store: KnowledgeStore) -> None:
        for workspace in ("acme", "globex"):
            await store.add([entry(passage(f"notice of {workspace}", workspace=workspace), vector(1))])
        for workspace in ("acme", "globex"):
            for mode in Mode:
                hits = await store.search(ask("notice", vector(1), workspace=workspace, mode=mode))
                assert texts(hits) == [f"notice of {workspace}"]
        await store.remove("globex", [Version("handbook", 1)])
        assert await store.count("globex", Version("handbook", 1)) == 0
        assert await store.count("acme", Version("handbook", 1)) == 1
        assert await store.search(ask("notice", vector(1), workspace="initech")) == []

    async def test_equal_scores_keep_one_order(self, store: KnowledgeStore) -> None:
        await store.add(
            [entry(passage("the same notice", number=n), vector(1)) for n in (9, 3, 12, 1, 7, 10, 2, 11, 5, 4, 8, 6)]
        )
        for mode in Mode:
            first = await store.search(ask("notice", vector(1), mode=mode, limit=12))
            assert [hit.passage.number for hit in first] == list(range(1, 13))
            assert await store.search(ask("notice", vector(1), mode=mode, limit=5)) == first[:5]
        await store.compact()
        after = await store.search(ask("notice", vector(1), limit=12))
        assert [hit.passage.number for hit in after] == list(range(1, 13))

    async def test_a_limit_beyond_the_candidates_is_served(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage(f"notice {n}", number=n), vector(1, n)) for n in range(1, 161)])
        for mode in Mode:
            assert len(await store.search(ask("notice", vector(1), mode=mode, limit=150))) == 150
        assert await store.search(ask("notice", vector(1), limit=0)) == []

    @pytest.mark.parametrize("name", HOSTILE)
    async def test_hostile_names_are_only_names(self, store: KnowledgeStore, name: str) -> None:
        workspace, audience, document = f"w{name}", f"channel:{name}", f"d{name}"
        own = passage("notice", workspace=workspace, audience=audience, document=document, name=name or "x")
        await store.add([entry(own, vector(1)), entry(passage("notice of others", workspace="other"), vector(1))])
        query = ask("notice", vector(1), workspace=workspace, audiences=[audience], documents=[document])
        assert [hit.passage for hit in await store.search(query)] == [own]
        assert await store.count(workspace, own.key) == 1
        assert list(await store.vectors(workspace, [digest("notice"), name])) == [digest("notice")]
        dead = ask("notice", vector(1), workspace=workspace, audiences=[audience], dead=[own.key])
        assert await store.search(dead) == []
        await store.remove(workspace, [own.key])
        assert await store.count(workspace, own.key) == 0
        assert await store.count("other", Version("handbook", 1)) == 1

    async def test_vectors_are_found_by_content_within_the_workspace_alone(self, store: KnowledgeStore) -> None:
        await store.add(
            [
                entry(passage("embedded", number=1), vector(1, 2)),
                entry(passage("waiting", number=2)),
                entry(passage("of globex", workspace="globex"), vector(1)),
            ]
        )
        wanted = [digest(text) for text in ("embedded", "waiting", "of globex", "unknown")]
        found = await store.vectors("acme", wanted)
        assert list(found) == [digest("embedded")]
        assert found[digest("embedded")] == pytest.approx(vector(1, 2), abs=1e-6)
        assert found[digest("embedded")].dtype == np.float32

    async def test_many_vectors_at_once(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage(f"text {n}", number=n), vector(1, n)) for n in range(1, 1201)])
        assert len(await store.vectors("acme", [digest(f"text {n}") for n in range(1, 1201)])) == 1200

    async def test_what_was_removed_is_gone_at_once(self, store: KnowledgeStore) -> None:
        await store.add(
            [entry(passage("notice", version=v, number=n), vector(1)) for v in (1, 2, 3) for n in range(1, 4)]
        )
        await store.remove("acme", [Version("handbook", 1), Version("handbook", 3), Version("unknown", 1)])
        assert {hit.passage.version for hit in await store.search(ask("notice", vector(1)))} == {2}
        assert [await store.count("acme", Version("handbook", v)) for v in (1, 2, 3)] == [0, 3, 0]
        await store.remove("acme", [Version("handbook", 1)])
        await store.compact()
        assert await store.count("acme", Version("handbook", 2)) == 3

    async def test_what_was_removed_can_be_added_again(self, store: KnowledgeStore) -> None:
        await store.add([entry(passage("notice"), vector(1))])
        await store.remove("acme", [Version("handbook", 1)])
        await store.compact()
        await store.add([entry(passage("notice"), vector(1))])
        assert len(await store.search(ask("notice", vector(1)))) == 1

    async def test_vectors_of_another_model_take_the_place_of_forgotten_ones(self, store: KnowledgeStore) -> None:
        await store.forget_vectors()
        both = [passage("notice"), passage("notice of globex", workspace="globex")]
        await store.add([entry(each, vector(1)) for each in both])
        await store.forget_vectors()
        assert await store.vectors("acme", [digest("notice")]) == {}
        assert await store.search(ask("", vector(1), mode=Mode.DENSE)) == []
        assert [hit.cosine for hit in await store.search(ask("notice", vector(1)))] == [None]  # still found by words
        wider = np.eye(1, 2 * DIMENSION, 3, dtype=np.float32)[0]
        await store.add([entry(each, wider) for each in both])
        hits = await store.search(ask("", wider, workspace="globex", mode=Mode.DENSE))
        assert texts(hits) == ["notice of globex"]
        assert list(await store.vectors("acme", [digest("notice")])) == [digest("notice")]
        await store.compact()
        assert await store.count("acme", Version("handbook", 1)) == 1

    async def test_compacting_changes_no_answer(self, store: KnowledgeStore) -> None:
        for start in range(1, 200, 20):
            await store.add(
                [entry(passage(f"notice {n} of {n % 7}", number=n), vector(1, n)) for n in range(start, start + 20)]
            )
        await store.remove("acme", [Version("unknown", 1)])
        before = texts(await store.search(ask("notice of 3", vector(1, 50))))
        await store.compact()
        await store.compact()
        assert texts(await store.search(ask("notice of 3", vector(1, 50)))) == before

    async def test_two_writers_and_a_reader_at_once(self, store: KnowledgeStore) -> None:
        def part(document: str, start: int) -> list[Entry]:
            return [
                entry(passage(f"notice {n}", document=document, number=n), vector(1, n))
                for n in range(start, start + 10)
            ]

        async def write(document: str) -> None:
            for start in range(1, 101, 10):
                await store.add(part(document, start))

        async def erase() -> None:
            for _ in range(5):
                await store.remove("acme", [Version("c", 1)])
                await store.add(part("c", 1))
                await store.compact()

        async def read() -> None:
            for _ in range(20):
                hits = await store.search(ask("notice", vector(1)))
                assert len({hit.passage.id for hit in hits}) == len(hits)

        await asyncio.gather(write("a"), write("b"), erase(), read(), read())
        assert [await store.count("acme", Version(document, 1)) for document in ("a", "b", "c")] == [100, 100, 10]

    async def test_many_searches_at_once(self, store: KnowledgeStore) -> None:
        marks = [uuid.uuid4().hex for _ in range(40)]
        await store.add([entry(passage(mark, number=n), vector(1, n)) for n, mark in enumerate(marks, 1)])
        found = await asyncio.gather(*(store.search(ask(mark, mode=Mode.KEYWORD)) for mark in marks))
        assert [texts(hits) for hits in found] == [[mark] for mark in marks]
