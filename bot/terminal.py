"""What each command of the command line does: it speaks HTTP to a bot, and shows what that says."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Protocol

from bot import gather, printing
from bot.client import Client, ClientError, Endpoint, Json, NotDone, Sent, Who
from bot.datadir import DataDir
from bot.gather import Item, Unfit
from bot.printing import Printer
from bot.settings import Settings
from storage.errors import DataDirInUse

STARTING_SECONDS = 60.0  # that another bot may need until it can be reached
LOOK_SECONDS = 0.2
LONGEST_REASON = 300
POSTS_AT_ONCE = 3
VERDICT = ("name", "verdict", "reason", "document", "version", "sections", "passages", "pages", "seconds")
CITATION = ("number", "document", "version", "name", "page", "place", "quote", "link")


class RunningApp(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str | None: ...


class Opener(Protocol):
    """Opens a bot in this process; imports it only then."""

    def __call__(self, settings: Settings, *, any_model: bool) -> AbstractAsyncContextManager[RunningApp]: ...


@dataclass(frozen=True, slots=True)
class Terminal:
    arguments: argparse.Namespace
    client: Client
    printer: Printer


Command = Callable[[Terminal], Awaitable[bool]]


async def run(arguments: argparse.Namespace, settings: Settings, opener: Opener) -> int:
    """Run one command. Raises ClientError and what the opener raises, where it could not be done."""
    who = Who(arguments.workspace, arguments.channel.removeprefix("#"), arguments.user)
    async with AsyncExitStack() as stack:
        finder = _Finder(settings, opener, stack, any_model=arguments.command == "reembed")
        client = await stack.enter_async_context(Client(finder, who))
        is_done = await COMMANDS[arguments.command](Terminal(arguments, client, Printer(arguments.json)))
    return 0 if is_done else 1


@dataclass(frozen=True, slots=True)
class _Finder:
    """The bot that runs on this data directory, or one that is opened in this process and closed with the command."""

    settings: Settings
    opener: Opener
    stack: AsyncExitStack
    any_model: bool

    async def __call__(self) -> Endpoint:
        deadline = asyncio.get_running_loop().time() + STARTING_SECONDS
        while True:
            if running := self._running():
                return running
            try:
                app = await self.stack.enter_async_context(self.opener(self._own(), any_model=self.any_model))
                return Endpoint(app.url, app.token)
            except DataDirInUse:  # it starts, or it ends
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    def _running(self) -> Endpoint | None:
        directory = DataDir(self.settings.data_dir)
        if not (directory.path / "run.json").exists():
            return None
        found = directory.running()
        return Endpoint(found.url, found.token, stays=True) if found else None

    def _own(self) -> Settings:
        """For this process alone, wherever `run` would serve the page."""
        return self.settings.model_copy(update={"host": "127.0.0.1"})


async def ask(terminal: Terminal) -> bool:
    arguments, client, printer = terminal.arguments, terminal.client, terminal.printer
    async with _progress(terminal):
        posted = await client.post(" ".join(arguments.question), arguments.thread, arguments.model)
        turn = _turn(await client.outcome(posted["message"]))
    if not arguments.trace:
        turn["trace"] = []
    if printer.as_json:
        printer.json(turn)
    else:
        endpoint = await client.endpoint()
        printer.say(printing.answer(turn, endpoint.url if endpoint.stays else ""))
        printer.say(f"\nthread {turn['thread']}")
        for step in turn.get("trace", ()):
            printer.say(json.dumps(step, ensure_ascii=False))
    if turn["kind"] == "error":
        printer.complain(turn["text"])
    return bool(turn["kind"] != "error")


def _turn(found: Json) -> Json:
    """A turn as `ask` prints it."""
    usage = found["usage"]
    withdrawn = found["state"] == "withdrawn"
    return {
        "kind": "error" if withdrawn else found["kind"] or "notice",
        "text": "The question was taken back." if withdrawn else found["text"],
        "options": found["options"],
        "thread": found["thread"],
        "citations": [{name: each.get(name) for name in CITATION} for each in found["citations"]],
        "model": usage.get("model"),
        "model_calls": usage.get("model_calls", 0),
        "tokens": {"in": usage.get("tokens_in", 0), "out": usage.get("tokens_out", 0)},
        "seconds": found["seconds"],
        "degraded": list(usage.get("degraded", ())),
        "trace": found["trace"],
    }


async def add(terminal: Terminal) -> bool:
    is_done = True
    posts: list[asyncio.Task[list[Json]]] = []
    try:
        async with _progress(terminal):
            for batch in gather.batches(terminal.arguments.paths, terminal.arguments.jsonl):
                posts.append(asyncio.create_task(_post(terminal.client, batch)))
                while len(posts) >= POSTS_AT_ONCE:
                    is_done &= _show_verdicts(terminal.printer, await posts.pop(0))
            while posts:
                is_done &= _show_verdicts(terminal.printer, await posts.pop(0))
    finally:
        for post in posts:
            post.cancel()
        await asyncio.gather(*posts, return_exceptions=True)
    return is_done


async def _post(client: Client, batch: Sequence[Item]) -> list[Json]:
    """Post these files; the verdict on each, in their order."""
    found = iter(await _posted(client, [each for each in batch if isinstance(each, Sent)]))
    return [_refused(each.name, each.reason) if isinstance(each, Unfit) else next(found) for each in batch]


async def _posted(client: Client, files: Sequence[Sent]) -> list[Json]:
    if not files:
        return []
    try:
        posted = await client.post("", files=files)
    except NotDone as refusal:
        if len(files) == 1 and refusal.status == 413:
            return [_refused(files[0].name, str(refusal))]
        raise
    turn = await client.outcome(posted["message"])
    verdicts = chain(turn["files"], repeat(None))
    return [_verdict(next(verdicts) or _refused(file.name, _untold(turn))) for file in files]


def _untold(turn: Json) -> str:
    """Why a file has no verdict."""
    if turn["state"] == "withdrawn":
        return "its post was taken back before it was read"
    return printing.short(turn["text"], LONGEST_REASON) or "it was not read; post it again"


def _refused(name: str, reason: str) -> Json:
    return _verdict({"name": name, "verdict": "refused", "reason": reason})


def _verdict(found: Json) -> Json:
    empty = {"reason": "", "document": None, "version": None, "sections": 0, "passages": 0, "pages": 0, "seconds": 0.0}
    return {name: (empty | found).get(name) for name in VERDICT}


def _show_verdicts(printer: Printer, verdicts: Sequence[Json]) -> bool:
    for each in verdicts:
        if printer.as_json:
            printer.json(each)
        else:
            printer.say(printing.verdict(each))
        if each["verdict"] == "refused" and printer.as_json:
            printer.complain(f"{each['name']}: {each['reason']}")
    return all(each["verdict"] != "refused" for each in verdicts)


async def search(terminal: Terminal) -> bool:
    arguments, printer = terminal.arguments, terminal.printer
    is_done = True
    while line := await asyncio.to_thread(sys.stdin.readline):
        if not (question := line.strip()):
            continue
        try:
            found = await terminal.client.send(
                "search", query=question, channel=arguments.channel, limit=arguments.limit, mode=arguments.mode
            )
        except NotDone as refusal:
            printer.complain(f"{printing.short(question, 60)}: {refusal}")
            is_done = False
            continue
        if printer.as_json:
            printer.json({"query": found["query"], "hits": found["hits"]})
        else:
            printer.say(printing.hits(found))
        for note in found["degraded"]:
            printer.progress(note)
    return is_done


async def docs(terminal: Terminal) -> bool:
    arguments, printer = terminal.arguments, terminal.printer
    if arguments.document is None or not (arguments.text or arguments.passages):
        return await _list_documents(terminal)
    document = await _named(terminal, arguments.document)
    if arguments.text:
        found = await terminal.client.get("documents", document, "text")
        if printer.as_json:
            printer.json(found)
        else:
            printer.whole(found["text"])
        return True
    for passage in (await terminal.client.get("documents", document, "passages"))["passages"]:
        if printer.as_json:
            printer.json(passage)
        else:
            printer.say(f"{passage['passage']}  {passage['place']}\n{passage['text'].strip()}\n")
    return True


async def _list_documents(terminal: Terminal) -> bool:
    printer, wanted = terminal.printer, terminal.arguments.document
    found = await _documents(terminal)
    if wanted is not None:
        found = [each for each in found if wanted in (each["document"], each["name"])]
        if not found:
            raise NotDone(404, f"There is no document {wanted}. `docs` lists them.")
    if printer.as_json:
        for each in found:
            printer.json(each)
    elif found:
        printer.say(printing.documents(found))
    else:
        printer.say("There are no documents yet. `add PATH` adds some.")
    return True


async def _documents(terminal: Terminal) -> list[Json]:
    found = await terminal.client.get("documents", channel=terminal.arguments.channel, scope="yes")
    return list(found["documents"])


async def _named(terminal: Terminal, wanted: str) -> str:
    """The id of the document that is meant by its id or by its name: of several the one in the channel itself."""
    named = [each for each in await _documents(terminal) if wanted in (each["document"], each["name"])]
    here = [each for each in named if each["channel"] == terminal.arguments.channel.removeprefix("#")]
    found = {each["document"] for each in here or named}
    if len(found) > 1:
        raise NotDone(409, f"Several documents are named {wanted}: {', '.join(sorted(found))}. Use one of these ids.")
    return str(found.pop()) if found else wanted


async def channel(terminal: Terminal) -> bool:
    arguments, printer = terminal.arguments, terminal.printer
    name = arguments.name.removeprefix("#")
    body: dict[str, object] = {}
    if arguments.private or arguments.public:
        body["visibility"] = "private" if arguments.private else "public"
    if arguments.member:
        body["members"] = arguments.member
    if arguments.knowledge:
        body["knowledge"] = arguments.knowledge == "on"
    if body:
        found = await terminal.client.put("channels", name, **body)
    else:
        found = await _channel(terminal, name)
    if printer.as_json:
        printer.json(found)
    else:
        printer.say(printing.channel(found))
    return True


async def _channel(terminal: Terminal, name: str) -> Json:
    for each in (await terminal.client.get("channels"))["channels"]:
        if each["channel"] == name:
            return dict(each)
    raise NotDone(404, f"{terminal.arguments.user} reads no channel {name}. If there is none, posting to it makes it.")


async def forget(terminal: Terminal) -> bool:
    document = await _named(terminal, terminal.arguments.document)
    found = await terminal.client.delete("documents", document)
    if terminal.printer.as_json:
        terminal.printer.json(found)
    else:
        terminal.printer.say(f"{found['name']} is forgotten.")
    return True


async def reembed(terminal: Terminal) -> bool:
    async for line in terminal.client.lines("reembed"):
        if "error" in line:
            raise NotDone(503, line["error"])
        if "embedded" not in line:
            terminal.printer.progress(f"{line['done']:,} of {line['total']:,} passages embedded")
        elif terminal.printer.as_json:
            terminal.printer.json(line)
        else:
            terminal.printer.say(f"{line['embedded']:,} passages embedded")
    return True


async def backup(terminal: Terminal) -> bool:
    found = await terminal.client.send("backup", target=str(terminal.arguments.path.absolute()))
    if terminal.printer.as_json:
        terminal.printer.json(found)
    else:
        terminal.printer.say(f"Everything is in {found['backup']}.")
    return True


async def doctor(terminal: Terminal) -> bool:
    found = await terminal.client.get("doctor")
    if terminal.printer.as_json:
        terminal.printer.json(found)
    else:
        terminal.printer.say(printing.table([(name, state) for name, state in found["dependencies"].items()]))
    wrong = [f"{name}: {state}" for name, state in found["dependencies"].items() if not _is_fine(state)]
    if wrong:
        terminal.printer.complain("; ".join(wrong))
    return not wrong


def _is_fine(state: str) -> bool:
    return state in ("ok", "not configured") or state.startswith("ok: ")


@contextlib.asynccontextmanager
async def _progress(terminal: Terminal) -> AsyncIterator[None]:
    """Show on a terminal what the bot is doing until the block ends."""
    if not terminal.printer.shows_progress:
        yield
        return
    watch = asyncio.create_task(_watch(terminal))
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        terminal.printer.clear()


async def _watch(terminal: Terminal) -> None:
    with contextlib.suppress(ClientError):
        async for name, content in terminal.client.events():
            if name == "status" and content.get("channel") == terminal.arguments.channel:
                terminal.printer.progress(content["text"])


COMMANDS: dict[str, Command] = {
    "add": add,
    "ask": ask,
    "search": search,
    "docs": docs,
    "channel": channel,
    "forget": forget,
    "reembed": reembed,
    "backup": backup,
    "doctor": doctor,
}
