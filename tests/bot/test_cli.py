"""The command line, against a bot that runs, and without one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from sqlalchemy.exc import OperationalError

from bot import gather, printing, terminal
from bot.cli import VERSION, parser, wrong_usage
from bot.client import NotDone, Sent
from bot.datadir import DataDir
from bot.gather import Unfit
from bot.operations import back_up
from bot.printing import Printer
from bot.readiness import NOT_YET, Probes, Readiness, endpoints
from bot.settings import Settings
from storage.database import is_disk_full, open_database, sqlite_url
from storage.documents import Documents
from storage.embeddings import BundledEmbedder
from storage.facts import Facts
from storage.lance import LanceStore
from storage.retrieval import Retriever
from tests.bot.shell import SETTINGS, Shell
from tests.running import PROJECT, RunningBot

HANDBOOK = (
    "# Handbook\n\n## Leave\n\nEmployees have 28 days of annual leave.\n\n## Notice\n\nThe notice is four weeks.\n"
)
QUESTION = "How many days of annual leave do employees have?"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> Iterator[Shell]:
    """A shell beside a bot that runs on the same data directory."""
    home = tmp_path_factory.mktemp("running")
    bot = RunningBot(home, free_port(), SETTINGS)
    bot.start()
    shell = Shell(home)
    (home / "handbook.md").write_text(HANDBOOK)
    assert shell.json("add", "handbook.md")[0]["verdict"] == "indexed"
    yield shell
    assert bot.stop() == 0, bot.log()


# What is written


def test_the_version_is_the_projects() -> None:
    assert tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_help_waits_for_nothing_heavy() -> None:
    script = "import sys, bot.__main__; sys.exit(bool({'pydantic', 'aiohttp', 'lancedb'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], cwd=PROJECT).returncode == 0


def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", *terminal.COMMANDS):
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([command, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert "--workspace" in shown
        assert "--json" in shown


@pytest.mark.parametrize(
    "line",
    [
        "",
        "fly",
        "ask",
        "search --limit 0",
        "search --limit x",
        "docs --text --passages x",
        "channel x --private --public",
    ],
)
def test_wrong_usage_is_status_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(line.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("line", ["add", "docs --text", "docs --passages", "channel x --member ann"])
def test_what_goes_together_is_told(line: str) -> None:
    assert wrong_usage(parser().parse_args(line.split()))


@pytest.mark.parametrize(
    "line", ["ask caf\udce9?", "channel caf\udce9", "channel x --private --member \udcff", "docs \udc80"]
)
def test_bytes_that_are_no_text_are_told_from_paths(line: str) -> None:
    assert "no text" in wrong_usage(parser().parse_args(line.split()))
    assert not wrong_usage(parser().parse_args(["add", "caf\udce9.md"]))


def test_files_of_one_name_in_a_folder_are_told_apart(tmp_path: Path) -> None:
    for name in ("a/notes.md", "b/notes.md", "notes.md", "b/plan.md", ".git/config", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = {sent.name for sent in gather.files([tmp_path])}
    assert found == {"a - notes.md", "b - notes.md", "notes.md", "plan.md"}
    with pytest.raises(NotDone, match="no such|no "):
        list(gather.files([tmp_path / "nothing"]))


def test_a_name_in_no_charset_is_made_one(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("x")
    (found,) = gather.files([tmp_path])
    assert found.name == "caf\ufffd.txt"


def test_twins_are_not_posted_together() -> None:
    files = [Sent(name, b"x") for name in ("a", "b", "a", "c", "d", "e")]
    assert [[each.name for each in batch] for batch in gather.grouped(iter(files), 3)] == [
        ["a", "b"],
        ["a", "c", "d"],
        ["e"],
    ]


def test_a_line_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "d/1", "title": "Wings", "text": "They lift."}\n\n{"_id": 2, "text": "No title."}\n')
    assert list(gather.lines(path)) == [Sent("d-1", b"# Wings\n\nThey lift."), Sent("2", b"No title.")]
    for broken in ("{", "[]", '{"_id": "1"}', "7", "[" * 100_000):
        path.write_text(broken)
        (unfit,) = gather.lines(path)
        assert isinstance(unfit, Unfit)
        assert unfit.name == "corpus.jsonl, line 1"


def test_a_document_cannot_steer_the_terminal() -> None:
    out = io.StringIO()
    Printer(False, out, io.StringIO()).say("a\x1b]0;owned\x07b\x9bc\n\td")
    assert out.getvalue() == "a]0;ownedbc\n\td\n"


def test_columns_are_aligned() -> None:
    assert printing.table([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc  d"
    names = ("假期.md", "cafe\u0301.md", "🚢.md", "plain-and-long.md")
    lines = printing.table([(name, "|") for name in names]).splitlines()
    assert {printing.columns(line) for line in lines} == {len("plain-and-long.md") + 3}
    assert lines[0] == "假期.md" + " " * 12 + "|"


def test_a_size_is_told_as_people_tell_it() -> None:
    assert [printing.size(each) for each in (0, 1023, 2048, 5_000_000)] == ["0 B", "1023 B", "2 KB", "4.8 MB"]


def test_what_was_down_is_said_once() -> None:
    turn = {
        "text": "28 days\n\n_keyword search only_",
        "citations": [],
        "options": [],
        "degraded": ["keyword search only"],
    }
    assert printing.answer(turn, "").count("keyword search only") == 1


# With a bot that runs


def test_what_is_added_is_found_and_cited(running: Shell) -> None:
    (turn,) = running.json("ask", QUESTION)
    assert list(turn) == [
        "kind",
        "text",
        "options",
        "thread",
        "citations",
        "model",
        "model_calls",
        "tokens",
        "seconds",
        "degraded",
        "trace",
    ]
    assert turn["kind"] == "answer"
    assert "28 days" in turn["text"]
    assert turn["tokens"] == {"in": 0, "out": 0}
    (citation,) = turn["citations"]
    assert (citation["name"], citation["version"]) == ("handbook.md", 1)
    assert "28 days" in citation["quote"]
    shown = running.says("ask", *QUESTION.split())
    assert "28 days" in shown
    assert "[1] handbook.md" in shown
    assert f"http://127.0.0.1:{running_port(running)}/#/general/" in shown


def running_port(shell: Shell) -> int:
    found = json.loads((shell.home / "data" / "run.json").read_text())
    return int(found["url"].rpartition(":")[2])


def test_a_trace_is_shown_where_it_is_asked_for(running: Shell) -> None:
    (plain,) = running.json("ask", QUESTION)
    (traced,) = running.json("ask", QUESTION, "--trace")
    assert plain["trace"] == []
    assert traced["trace"]


def test_a_thread_goes_on(running: Shell) -> None:
    (first,) = running.json("ask", QUESTION)
    (second,) = running.json("ask", "thanks", "--thread", first["thread"])
    assert second["thread"] == first["thread"]
    assert second["kind"] == "chat"


def test_a_clarification_is_asked_and_answered(running: Shell) -> None:
    for name, days in (("aldgate", 30), ("birchwood", 60), ("corvane", 90)):
        text = f"# Contract with {name.title()}\n\nThe notice period is {days} days.\n"
        (running.home / f"contract_{name}.md").write_text(text)
    names = [f"contract_{name}.md" for name in ("aldgate", "birchwood", "corvane")]
    assert [each["verdict"] for each in running.json("add", *names, "--channel", "legal")] == ["indexed"] * 3
    (asked,) = running.json("ask", "What is the notice period in the contract?", "--channel", "legal")
    assert asked["kind"] == "clarification"
    assert len(asked["options"]) >= 3
    labels = [option["label"] for option in asked["options"]]
    wanted = next(label for label in labels if "birchwood" in label.lower())
    (answer,) = running.json("ask", wanted, "--channel", "legal", "--thread", asked["thread"])
    assert answer["kind"] == "answer"
    assert "60 days" in answer["text"]
    shown = running.says("ask", "What is the notice period in the contract?", "--channel", "legal")
    assert f"1. {labels[0]}" in shown


def test_questions_are_searched_line_by_line(running: Shell) -> None:
    found = running.json("search", "--limit", "1", said="annual leave\n\nnotice\n")
    assert [each["query"] for each in found] == ["annual leave", "notice"]
    (hit,) = found[0]["hits"]
    assert list(hit) == ["document", "name", "passage", "page", "place", "score", "text"]
    assert hit["name"] == "handbook.md"
    assert running.json("search", "--mode", "keyword", said="zzz\n")[0]["hits"] == []


def test_a_verdict_is_shown_for_every_file(running: Shell) -> None:
    home = running.home
    (home / "folder").mkdir()
    (home / "folder" / "plan.md").write_text("# Plan\n\nThe launch is in May.\n")
    (home / "folder" / "empty.txt").write_text("")
    found = running.json("add", "folder", status=1)
    verdicts = {each["name"]: each for each in found}
    assert list(found[0]) == list(terminal.VERDICT)
    assert verdicts["plan.md"]["verdict"] == "indexed"
    assert verdicts["empty.txt"]["verdict"] == "refused"
    assert verdicts["empty.txt"]["reason"]
    (again,) = running.json("add", "folder/plan.md")
    assert again["verdict"] == "unchanged"
    (home / "folder" / "plan.md").write_text("# Plan\n\nThe launch is in June.\n")
    (changed,) = running.json("add", "folder/plan.md")
    assert (changed["verdict"], changed["version"]) == ("superseded", 2)
    assert "There is no nothing.md" in running.fails("add", "nothing.md")


def test_files_that_a_channel_does_not_take_are_refused_by_name(running: Shell) -> None:
    (running.home / "one.md").write_text("# One\n\nThe first.\n")
    (running.home / "two.md").write_text("# Two\n\nThe second.\n")
    running.json("channel", "lounge", "--knowledge", "off")
    found = running.json("add", "one.md", "two.md", "--channel", "lounge", status=1)
    assert [(each["name"], each["verdict"]) for each in found] == [("one.md", "refused"), ("two.md", "refused")]
    assert all("takes no files" in each["reason"] for each in found)


def test_a_broken_line_of_a_corpus_is_refused_alone(running: Shell) -> None:
    lines = [json.dumps({"_id": f"k{n}", "text": f"Knot {n} holds {n} tons."}) for n in range(3)]
    (running.home / "knots.jsonl").write_text("\n".join([lines[0], "{no json", *lines[1:]]))
    found = running.json("add", "--jsonl", "knots.jsonl", "--channel", "knots", status=1)
    assert [(each["name"], each["verdict"]) for each in found] == [
        ("k0", "indexed"),
        ("knots.jsonl, line 2", "refused"),
        ("k1", "indexed"),
        ("k2", "indexed"),
    ]


def test_of_several_with_one_name_the_channels_own_is_meant(running: Shell) -> None:
    for channel in ("north", "south"):
        (running.home / "tide.md").write_text(f"# Tide\n\nIt is high in the {channel}.\n")
        running.json("add", "tide.md", "--channel", channel)
    assert "high in the south" in running.says("docs", "tide.md", "--text", "--channel", "south")
    assert "Several" in running.fails("forget", "tide.md")
    (gone,) = running.json("forget", "tide.md", "--channel", "south")
    assert gone["channel"] == "south"
    assert "high in the north" in running.says("docs", "tide.md", "--text", "--channel", "south")


def test_a_refused_document_is_listed_with_its_reason(running: Shell) -> None:
    (running.home / "void.txt").write_text("")
    running.json("add", "void.txt", "--channel", "voids", status=1)
    listed = running.says("docs", "--channel", "voids")
    assert "size" in listed.splitlines()[0]
    reason = running.json("docs", "--channel", "voids")
    (void,) = [each for each in reason if each["name"] == "void.txt"]
    assert f"void.txt is refused: {void['reason']}" in listed


def test_a_corpus_is_added_line_by_line(running: Shell) -> None:
    lines = [{"_id": f"d{n}", "title": f"Ship {n}", "text": f"Ship {n} has {n + 3} masts."} for n in range(60)]
    (running.home / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = running.json("add", "--jsonl", "corpus.jsonl", "--channel", "ships", "--workspace", "sea")
    assert [each["name"] for each in found] == [f"d{n}" for n in range(60)]
    assert {each["verdict"] for each in found} == {"indexed"}
    (hits,) = running.json("search", "--channel", "ships", "--workspace", "sea", said="How many masts has ship 41?\n")
    assert hits["hits"][0]["name"] == "d41"
    assert running.json("docs", "--channel", "ships") != running.json(
        "docs", "--channel", "ships", "--workspace", "sea"
    )


def test_documents_are_listed_printed_and_forgotten(running: Shell) -> None:
    (running.home / "rope.md").write_text("# Rope\n\nIt is 77 fathoms long.\n")
    running.json("add", "rope.md", "--user", "ann")
    listed = {each["name"]: each for each in running.json("docs")}
    fields = {"document", "version", "name", "channel", "verdict", "pages", "passages", "posted_by", "posted_at"}
    assert fields <= set(listed["rope.md"])
    assert listed["rope.md"]["posted_by"] == "ann"
    assert "rope.md" in running.says("docs")
    assert running.says("docs", "rope.md", "--text") == "# Rope\n\nIt is 77 fathoms long.\n"
    assert "77 fathoms" in running.json("docs", listed["rope.md"]["document"], "--passages")[0]["text"]
    assert "rope.md is forgotten" in running.says("forget", "rope.md")
    assert "rope.md" not in running.says("docs")
    for command in (("docs", "rope.md"), ("docs", "rope.md", "--text"), ("forget", "rope.md")):
        assert running.fails(*command)


def test_a_private_channel_is_for_its_members(running: Shell) -> None:
    (shown,) = running.json("channel", "#board", "--private", "--member", "ann", "--member", "ben")
    assert (shown["visibility"], shown["members"]) == ("private", ["ann", "ben"])
    (running.home / "minutes.md").write_text("# Minutes\n\nThe purchase is called Heron.\n")
    assert running.json("add", "minutes.md", "--channel", "board", "--user", "ann")[0]["verdict"] == "indexed"
    question = "What is the purchase called?"
    assert running.json("ask", question, "--channel", "board", "--user", "ben")[0]["kind"] == "answer"
    assert running.json("ask", question, "--channel", "@ben", "--user", "ben")[0]["kind"] == "answer"
    assert running.json("ask", question)[0]["kind"] == "not_found"
    assert "member" in running.fails("ask", question, "--channel", "board")
    assert "member" in running.fails("ask", question, "--channel", "@ben")
    assert "member" in running.fails("docs", "--channel", "board")
    assert "ann, ben" in running.says("channel", "board", "--user", "ann")
    assert "not learned" in running.says("channel", "board", "--user", "ann", "--knowledge", "off")
    assert "no channel" in running.fails("channel", "board")


def test_a_backup_is_whole_and_never_overwrites(running: Shell) -> None:
    assert "backup" in running.says("backup", "backup")
    assert (running.home / "backup" / "threadlore.sqlite").exists()
    assert "there already" in running.fails("backup", "backup")


def test_the_doctor_names_every_part(running: Shell) -> None:
    (found,) = running.json("doctor")
    assert found["ready"]
    assert found["dependencies"] == {
        "database": "ok",
        "passages": "ok",
        "model": "not configured",
        "embeddings": "ok: all-MiniLM-L6-v2-onnx-int8",
        "rerank": "not configured",
    }
    assert "ok: all-MiniLM" in running.says("doctor")
    assert running.says("reembed").endswith("passages embedded\n")


def test_a_second_bot_on_the_same_directory_is_refused(running: Shell) -> None:
    assert "Another bot" in running.fails("run", PORT="0")


# Without one


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    assert "PORT" in Shell(tmp_path).fails("docs", PORT="eight")


def test_what_is_kept_is_for_this_user_alone(running: Shell) -> None:
    kept = [running.home / "data", *(running.home / "data").rglob("*")]
    assert len(kept) > 5
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "DATA_DIR" in Shell(tmp_path).fails("run", PORT="0")


def test_a_damaged_database_is_named_with_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "threadlore.sqlite").write_bytes(b"no database " * 1000)
    assert f"the database {tmp_path}/data/threadlore.sqlite" in Shell(tmp_path).fails("docs")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full. Free space under DATA_DIR"),
        (OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full")), "The disk is full."),
        (OperationalError("INSERT", {}, sqlite3.OperationalError("attempt to write a readonly database")), "readonly"),
        (PermissionError(errno.EACCES, "Permission denied", "/data/x"), "/data/x can't be used (Permission denied)"),
    ],
)
def test_storage_that_fails_at_the_start_says_what_to_do(
    tmp_path: Path, error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.asynccontextmanager
    async def opens(*_: object, **__: object) -> AsyncIterator[None]:
        raise error
        yield

    monkeypatch.setattr("bot.app.open_app", opens)
    assert told in Shell(tmp_path).fails("docs")


@pytest.mark.parametrize("is_far", [False, True])
def test_a_bot_that_is_ended_while_it_starts_ends_well(tmp_path: Path, is_far: bool) -> None:
    """While its parts are imported, and while it opens its directory."""
    settings = {**Shell(tmp_path).settings, "PORT": "0"}
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "run"], cwd=tmp_path, env=settings, stderr=subprocess.PIPE, text=True
    ) as child:
        time.sleep(1)
        while is_far and not (tmp_path / "data" / "lock").exists():
            time.sleep(0.005)
        child.terminate()
        _, log = child.communicate(timeout=60)
    assert child.returncode == 0, log
    assert "Traceback" not in log


async def test_readiness_writes_and_not_more_often_than_it_must(tmp_path: Path) -> None:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        store = await LanceStore.open(tmp_path / "passages", "passages")
        embedder = BundledEmbedder()
        retriever = Retriever(store, embedder, Documents(database))

        def asking() -> Readiness:
            return Readiness(Facts(database), store, retriever, Probes([]), lambda: 0, lambda: asyncio.sleep(0, 0))

        readiness = asking()
        assert (await readiness(thoroughly=False))["database"] == "ok"
        async with database.write() as connection:
            await connection.exec_driver_sql("DROP TABLE facts")
        assert (await readiness(thoroughly=False))["database"] == "ok", "it was written a moment ago"
        assert "can't be written" in (await asking()(thoroughly=False))["database"]
        await embedder.close()
        await store.close()


async def test_a_full_disk_is_known_by_its_errors(tmp_path: Path) -> None:
    async with open_database(sqlite_url(tmp_path / "threadlore.sqlite")) as database:
        async with database.write() as connection:
            await connection.exec_driver_sql("CREATE TABLE filling (words TEXT)")
            pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar_one()
            await connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OperationalError) as full:
            async with database.write() as connection:
                await connection.exec_driver_sql("INSERT INTO filling VALUES (hex(zeroblob(100000)))")
    assert is_disk_full(full.value)
    assert is_disk_full(OSError(errno.EDQUOT, ""))
    assert not is_disk_full(OSError(errno.EIO, ""))


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    directory = DataDir(tmp_path / "data #1?")
    directory.path.mkdir()
    for database in (directory.database, directory.checkpoints):
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute("CREATE TABLE kept (words TEXT)")
    back_up(directory, tmp_path / "whole")
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {"threadlore.sqlite", "checkpoints.sqlite"}
    directory.checkpoints.write_bytes(b"no database " * 1000)
    with pytest.raises(OSError, match="broke off"):
        back_up(directory, tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


async def test_endpoints_are_asked_whether_they_are_there(free_port: Callable[[], int]) -> None:
    async def models(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("Authorization") == "Bearer right" else 401)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    async with TestServer(app) as server:
        here = str(server.make_url(""))
        settings = Settings.model_validate(
            {
                "openai_api_key": "right",
                "openai_base_url": f"{here}/v1",
                "openai_model": "one,two",
                "embedding_model": "vectors",
                "embedding_base_url": f"http://127.0.0.1:{free_port()}/v1",
                "cohere_api_key": "wrong",
                "cohere_base_url": here,
            }
        )
        probes = Probes(endpoints(settings))
        assert set((await probes.states(0)).values()) == {NOT_YET}
        assert await probes.states(5) == {
            "model": "ok: one, two",
            "embeddings": "127.0.0.1 can't be reached; check EMBEDDING_BASE_URL",
            "rerank": "127.0.0.1 refuses the key; check COHERE_API_KEY",
        }
        await probes.close()


def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    assert "WEB_TOKEN" in Shell(tmp_path).fails("run", HOST="0.0.0.0", PORT="0")


def test_a_command_alone_opens_the_bot_itself(tmp_path: Path) -> None:
    """Also where `run` would serve an open address; and what stale files say is not believed."""
    shell = Shell(tmp_path)
    (tmp_path / "handbook.md").write_text(HANDBOOK)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "run.json").write_text('{"pid": 1, "url": "http://127.0.0.1:1", "token": null}')
    done = shell.apart("add", "handbook.md", HOST="0.0.0.0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("indexed")
    assert not (tmp_path / "data" / "run.json").exists()
    turn = json.loads(shell.apart("ask", QUESTION, "--json").stdout)
    assert "28 days" in turn["text"]


async def test_commands_at_once_share_one_bot(tmp_path: Path) -> None:
    """The first opens it; the other speaks to it, and goes on by itself when it ends."""
    shell = Shell(tmp_path)
    asked = [asyncio.to_thread(shell.apart, "ask", "hello", "--json") for _ in range(2)]
    answers = await asyncio.gather(*asked)
    assert [json.loads(answer.stdout)["kind"] for answer in answers] == ["chat"] * 2


def test_a_reader_that_stops_reading_is_no_trouble(running: Shell) -> None:
    environment = {**running.settings}
    command = [sys.executable, "-m", "bot", "docs", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""


def test_an_interrupt_is_quiet(running: Shell) -> None:
    command = [sys.executable, "-m", "bot", "search"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=running.settings, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(b"leave\n")
        child.stdin.flush()
        assert child.stdout.readline()
        os.kill(child.pid, signal.SIGINT)
        child.stdin.close()
        assert child.wait(10) == 130
        assert child.stderr.read() == b""
