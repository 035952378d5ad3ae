"""A mixed load on a bot that is killed again and again, and what must be true of it afterwards.

People ask, edit, delete, answer clarifications and post files, each thing until it was taken. When all is quiet again,
what the bot has on its disk is held against what they did.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bot.lanes import ANSWERED_ANEW, FILE_NOT_READ, SOMETHING_WRONG
from storage.journal import ATTEMPTS, LEASES
from tests.crashes.client import Client, Json, Post, client_of
from tests.crashes.crashing import CrashingBot
from tests.crashes.remains import ALIVE, Line, astray, catalog, settled, unclosed

LIBRARY = {
    "harbour.md": "The harbour of Quarrytown closes at 21:40 in winter.",
    "leave.md": "Employees have 28 days of annual leave.",
    "canteen.md": "Lunch in the canteen costs 6.50 euros.",
    "pump.md": "The pump in hall 4 is serviced by Mrs Okonkwo.",
    "archive.md": "Invoices are kept for eleven years.",
    "alder.md": "The notice period of this contract is 30 days.",
    "birch.md": "The notice period of this contract is 60 days.",
}
FACTS = (
    ("When does the harbour of Quarrytown close in winter?", "21:40"),
    ("How many days of annual leave do employees have?", "28 days"),
    ("How much does lunch in the canteen cost?", "6.50"),
    ("Who services the pump in hall 4?", "Okonkwo"),
    ("How long are invoices kept?", "eleven years"),
)
UNCLEAR = "What is the notice period of the contract?"
CHOICES = (("the first one", "30 days"), ("the second one", "60 days"))
GIVEN_UP = (SOMETHING_WRONG, FILE_NOT_READ)
SETTLE_SECONDS = 120.0
KILLED_IN_START = 0.2  # of the kills
START_SECONDS = 1.5


@dataclass(slots=True)
class Said:
    """A message, and what must have come of it. `words` is of its newest text."""

    post: Post
    kind: str
    words: str
    edits: int = 0
    deleted: bool = False


@dataclass(slots=True)
class Shelf:
    """One name under which files are posted: their posts in order, each with a number that its text alone has."""

    name: str
    posts: list[Said] = field(default_factory=list)

    @property
    def allowed(self) -> set[str | None]:
        """What may answer in the end; whether a post that was deleted had answered before is a matter of time."""
        living = [said.words for said in self.posts if not said.deleted]
        if not living:
            return {None}
        return {living[-1]} if not self.posts[-1].deleted else {living[-1], None}


@dataclass(frozen=True, slots=True)
class Result:
    kills: int
    messages: int
    repeated: int  # requests whose answer was lost, and that were sent again
    given_up: int
    seconds: float
    faults: list[str]


class Load:
    """Everybody who does something. Nobody begins anything new once `ending` is set."""

    def __init__(self, person: Client, seed: int) -> None:
        self.said: list[Said] = []
        self.shelves: list[Shelf] = []
        self.ending = asyncio.Event()
        self._person = person
        self._random = random.Random(seed)
        self._numbers = iter(range(1000, 10_000_000, 7))

    async def stock(self) -> None:
        post = await self._person.post("library", files=LIBRARY)
        self.said.append(Said(post, "report", ""))
        await self._person.outcome(post)

    async def run(self) -> None:
        people = [self._asker] * 3 + [self._unsure] * 2 + [self._librarian] * 2 + [self._newcomer]
        async with asyncio.TaskGroup() as group:
            for number, person in enumerate(people):
                group.create_task(self._over_and_over(person, f"{person.__name__.strip('_')}{number}"))

    async def _over_and_over(self, act: Callable[[str], Awaitable[None]], name: str) -> None:
        while not self.ending.is_set():
            await act(name)
            await asyncio.sleep(self._random.uniform(0, 0.6))

    async def _asker(self, name: str) -> None:
        """A few questions in one thread; some are edited or deleted, before or after their answer."""
        first: Post | None = None
        for _ in range(self._random.randint(1, 3)):
            question, words = self._random.choice(FACTS)
            post = await self._person.post(name, question, thread=first.thread if first else "", user=name)
            first = first or post
            said = Said(post, "answer", words)
            self.said.append(said)
            await self._think_again(said)

    async def _think_again(self, said: Said) -> None:
        chance = self._random.random()
        if chance < 0.5:
            return
        if chance > 0.75:
            await self._person.outcomes(said.post)
        if self._random.random() < 0.5:
            question, words = self._random.choice([fact for fact in FACTS if fact[1] != said.words])
            said.edits, said.words = said.edits + 1, words
            await self._person.edit(said.post, question)
        else:
            said.deleted = True
            await self._person.delete(said.post)

    async def _unsure(self, name: str) -> None:
        """An unclear question, and which one was meant: by a click or in words."""
        post = await self._person.post(name, UNCLEAR, user=name)
        self.said.append(Said(post, "clarification", "?"))
        (card,) = await self._person.outcomes(post)
        option = self._random.randrange(len(CHOICES))
        words, value = CHOICES[option]
        if self._random.random() < 0.5:
            chosen = await self._person.click({**card, "channel": name}, option, user=name)
        else:
            chosen = await self._person.post(name, words, thread=post.thread, user=name)
        self.said.append(Said(chosen, "answer", value))

    async def _librarian(self, name: str) -> None:
        """One name, posted again and again; posts are deleted and their captions edited, at any time."""
        shelf = Shelf(f"{name}-{next(self._numbers)}.md")
        self.shelves.append(shelf)
        for _ in range(self._random.randint(1, 4)):
            value = str(next(self._numbers))
            post = await self._person.post("shelves", "a ledger", {shelf.name: _ledger(shelf.name, value)}, user=name)
            said = Said(post, "report", value)
            shelf.posts.append(said)
            self.said.append(said)
            if self._random.random() < 0.4:
                await self._person.outcomes(post)
            if self._random.random() < 0.2:
                await self._person.edit(post, "the new ledger")
            if self._random.random() < 0.3:
                await self._away_with(self._random.choice(shelf.posts))

    async def _away_with(self, said: Said) -> None:
        if not said.deleted:
            said.deleted = True
            await self._person.delete(said.post)

    async def _newcomer(self, name: str) -> None:
        """A file with a question about it."""
        value = str(next(self._numbers))
        shelf = Shelf(f"log-{next(self._numbers)}.md")
        self.shelves.append(shelf)
        text = f"The keeper of log {value} counted {value} barrels."
        post = await self._person.post(name, f"Who counted {value} barrels?", {shelf.name: text}, user=name)
        said = Said(post, "answer", value)
        shelf.posts.append(said)
        self.said.append(said)
        await self._person.outcomes(post)


async def chaos(bot: CrashingBot, kills: int, seed: int, longest: float = 3.0) -> Result:
    """Kill the bot so many times, at most `longest` seconds after it was ready, under a load that goes on."""
    began = time.monotonic()
    async with client_of(bot.url, patience=math.inf) as person:
        await asyncio.to_thread(bot.start)
        load = Load(person, seed)
        await load.stock()
        running = asyncio.create_task(load.run())
        await _kill_over_and_over(bot, kills, random.Random(seed + 1), longest, running)
        load.ending.set()
        async with asyncio.timeout(SETTLE_SECONDS):
            await running
        await settled(bot.data, SETTLE_SECONDS)
        faults = await _found_by_search(person, load)
        repeated = person.repeated
    assert await asyncio.to_thread(bot.stop) == 0, bot.log()[-4000:]
    faults += [*_faults(bot.data, load), *unclosed(bot.data), *await astray(bot.data)]
    faults += ["a traceback in the log"] if "Traceback" in bot.log() else []
    given_up = sum(len(each) for each in _given_up(bot.data).values())
    return Result(kills, len(load.said), repeated, given_up, time.monotonic() - began, faults)


async def _kill_over_and_over(
    bot: CrashingBot, kills: int, chance: random.Random, longest: float, running: asyncio.Task[None]
) -> None:
    for _ in range(kills):
        await _come_through(bot.data)
        if chance.random() < KILLED_IN_START:
            await asyncio.sleep(chance.uniform(0.05, longest))
            await asyncio.to_thread(bot.kill)
            await asyncio.to_thread(bot.launch)
            await asyncio.sleep(chance.uniform(0, START_SECONDS))
        else:
            await asyncio.sleep(chance.uniform(0.05, longest))
        await asyncio.to_thread(bot.kill)
        await asyncio.to_thread(bot.start)
        if running.done():
            running.result()


async def _come_through(data: Path) -> None:
    """No message is killed a third time, which would end it with a plain error, as it should."""
    query = f"SELECT 1 FROM journal WHERE state IN {ALIVE} AND lease >= ? LIMIT 1"
    async with asyncio.timeout(SETTLE_SECONDS):
        while catalog(data, query, ATTEMPTS - 1):
            await asyncio.sleep(0.05)


# what must be true in the end


def _faults(data: Path, load: Load) -> Iterator[str]:
    replies = _replies(data)
    given_up = _given_up(data)
    for said in load.said:
        yield from _of_message(said, replies[said.post.message], given_up[said.post.message])
    (written,) = catalog(data, "SELECT count(*) FROM messages WHERE author = 'user'")[0]
    if written != len(load.said):
        yield f"{written} messages were written down of {len(load.said)}"
    yield from _out_of_order(data)
    for shelf in load.shelves:
        yield from _of_shelf(data, shelf)


def _replies(data: Path) -> defaultdict[str, list[Line]]:
    """What stands below each message: kind, text and the files' verdicts, in order."""
    found = defaultdict(list)
    lines = "SELECT reply_to, kind, text, files FROM messages WHERE author = 'bot' AND message IS NOT NULL ORDER BY id"
    for message, *reply in catalog(data, lines):
        found[message].append(tuple(reply))
    return found


def _given_up(data: Path) -> defaultdict[str, list[int]]:
    """The rows of each message that were there in too many crashes."""
    found = defaultdict(list)
    spent = "SELECT message, id FROM journal WHERE attempts > ? OR lease > ?"
    for message, row in catalog(data, spent, ATTEMPTS, LEASES):
        found[message].append(row)
    return found


def _of_message(said: Said, replies: list[Line], given_up: list[int]) -> Iterator[str]:
    counting = [(kind, text) for kind, text, _ in replies if text != ANSWERED_ANEW]
    if said.deleted:
        if len(replies) > 1 + said.edits:
            yield f"{said}: deleted, and {len(replies)} replies stand there"
        return
    if len(counting) != 1:
        yield f"{said}: {len(counting)} outcomes, {replies}"
        return
    ((kind, text),) = counting
    if given_up and any(words in text for words in GIVEN_UP):
        return
    if kind != said.kind or (said.kind != "report" and said.words not in text):
        yield f"{said}: {kind} {text!r}"
    if said.edits == 0 and len(replies) != 1:
        yield f"{said}: {len(replies)} replies"


def _out_of_order(data: Path) -> Iterator[str]:
    """Replies of one lane stand in the order of what they reply to, and nothing stands that was withdrawn."""
    latest: dict[str, float] = {}
    query = (
        "SELECT lane, sent_at, state, journal.message FROM messages JOIN journal ON journal.id = messages.turn"
        " WHERE author = 'bot' AND messages.message IS NOT NULL AND journal.kind != 'notice' ORDER BY messages.id"
    )
    for lane, sent_at, state, message in catalog(data, query.replace("sent_at,", "journal.sent_at,")):
        if sent_at < latest.get(lane, 0):
            yield f"the reply to {message} stands after a later one"
        if state != "done":
            yield f"a reply to {message} stands there, which is {state}"
        latest[lane] = sent_at


def _of_shelf(data: Path, shelf: Shelf) -> Iterator[str]:
    query = (
        "SELECT sections.text FROM sections JOIN documents ON documents.document = sections.document"
        " AND documents.version = sections.version WHERE documents.name = ? AND documents.state = 'current'"
    )
    texts = [text for (text,) in catalog(data, query, shelf.name)]
    if not texts and None in shelf.allowed:
        return
    wrong = [text for text in texts if not any(each is not None and each in text for each in shelf.allowed)]
    if wrong or not texts:
        yield f"{shelf}: {texts}"


async def _found_by_search(person: Client, load: Load) -> list[str]:
    """The passages that are found of each name are of one version."""
    faults = []
    for shelf in load.shelves:
        hits = [hit for hit in await person.search("shelves", f"ledger {shelf.name}") if hit["name"] == shelf.name]
        if len({hit["document"] for hit in hits}) > 1 or any(n > 1 for n in Counter(map(_place, hits)).values()):
            faults.append(f"{shelf.name} is found twice: {hits}")
        dead = {said.words for said in shelf.posts} - {each for each in shelf.allowed if each}
        faults += [f"{shelf.name}: {value} is found" for value in dead for hit in hits if value in hit["text"]]
    return faults


def _place(hit: Json) -> str:
    return str(hit["passage"])


def _ledger(name: str, value: str) -> str:
    """Some passages, each of which names the value."""
    return "\n\n".join(
        f"# Ledger {name} {part}\n\nThe ledger {name} holds {value} entries. " + f"Part {part} was checked. " * 20
        for part in range(8)
    )
