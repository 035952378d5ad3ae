"""What a turn is asked to do: its questions, a word of small talk, or a question back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent import prompts
from agent.budget import Account
from agent.context import Context
from agent.followups import names_in
from agent.grading import ambiguous
from agent.outcomes import Option
from agent.outline import wish_of
from agent.state import Choice, Json, Pending, Question, State, said_from_json
from agent.texts import texts_for
from agent.understanding import Chosen, Understanding, understand, understand_choice
from storage.models import Hit
from storage.terms import content_terms, cut, indexed_text
from storage.transcript import Said

_LONGEST_QUESTION = 600  # characters of one that a model has rewritten


@dataclass(frozen=True)
class Plan:
    """`reply`: small talk, nothing is researched. `pending`: to be asked back first."""

    questions: list[Question] = field(default_factory=list)
    reply: str = ""
    pending: Pending | None = None
    notes: list[str] = field(default_factory=list)

    def update(self) -> Json:
        return {"questions": self.questions, "reply": self.reply, "pending": self.pending, "notes": self.notes}


async def plan_of(state: State, context: Context, account: Account) -> Plan:
    said = [said_from_json(each) for each in state["said"]]
    choice = state["choice"]
    if choice is not None:
        return await _chosen(choice, state, said, context, account)
    understood = await _understood(context.text, said, context, account)
    plan = _planned(understood, context.text)
    if understood.goes_on:
        documents = spoken_of(said)
        about = [await _about(documents, question, context) for question in plan.questions]
        plan = replace(plan, questions=about)
    return await asked_back(plan, context)


def spoken_of(said: Sequence[Said]) -> list[str]:
    """The documents that the thread's last answer cites, or that were chosen since."""
    for place in range(len(said) - 1, -1, -1):
        entry = said[place]
        named = entry.citations if entry.kind == "answer" else _chosen_of(entry, said[place + 1 : place + 2])
        documents = [str(each["document"]) for each in named if each.get("document")]
        if documents:
            return list(dict.fromkeys(documents))
    return []


def _chosen_of(card: Said, following: Sequence[Said]) -> Sequence[dict[str, object]]:
    if card.kind != "clarification" or not card.options or not following or following[0].author != "user":
        return ()
    options = [Option.model_validate(option) for option in card.options]
    chosen = understand_choice(following[0].text, None, options, "")
    return [card.options[number] for number in chosen.options]


async def _about(documents: Sequence[str], question: Question, context: Context) -> Question:
    """The question, to the thread's documents; not where somebody or something comes up that they don't speak of."""
    names = [*names_in(f"so {context.text}"), *re.findall(r"\b\d{2,}\b", context.text)]
    news = {term for name in names for term in content_terms(name)}
    if news and documents:
        found = await context.search.passages(question["text"], documents)
        if not news <= {term for hit in found.hits for term in cut(indexed_text(hit.passage))}:
            return question
    return {**question, "documents": list(documents)}


async def asked_back(plan: Plan, context: Context) -> Plan:
    """The plan, or a question back where several documents answer one of its questions and it doesn't tell which."""
    if plan.reply or plan.pending:
        return plan
    plan = replace(plan, questions=[await _of_every(question, context) for question in plan.questions])
    for asking, question in enumerate(plan.questions):
        options = () if await _settled(question, context) else await _options(question["text"], context)
        if options:
            pending: Pending = {
                "text": texts_for(question["text"]).which,
                "options": [option.model_dump() for option in options],
                "question": question["text"],
                "asking": asking,
            }
            return replace(plan, pending=pending)
    return plan


async def _options(question: str, context: Context, most: int = 0) -> Sequence[Option]:
    found = await _promising(question, context)
    options = ambiguous(question, found, most or context.parts.limits.options) if found else ()
    return sorted(options, key=lambda option: option.label.casefold())


async def _settled(question: Question, context: Context) -> bool:
    """Whether it is told which documents are meant: a person chose them, they are wanted as they are, or they are those
    of the thread and hold the answer."""
    if question["chosen"]:
        return True
    narrowed = await context.search.narrowed(question["text"], question["documents"])
    if narrowed.only and wish_of(narrowed.rest):
        return True
    if not question["documents"] or not narrowed.documents:
        return False
    found = await context.search.passages(narrowed.query, narrowed.documents)
    return context.search.grade(narrowed.query, found.hits).found


_EVERY = re.compile(
    r"\s*\b(?:(?:of|for|in|from|across|by|für|aus|von)\s+)?(?:all|each|every|both|alle[nr]?|jede[nmrs]?)\b"
    r"(?:\s+of)?(?:\s+(?:the|our|these|der|unserer?))?(?:\s+(?P<things>[^\W\d_]+))?",
    re.I,
)
_COMPARE = re.compile(r"^(?:please\s+|bitte\s+)?(?:compare|vergleiche?)\b", re.I)


_DOCUMENTS = frozenset(
    content_terms("document documents file files contract contracts lease leases agreement agreements policy policies")
)


async def _of_every(question: Question, context: Context) -> Question:
    """The question to each of the documents that answer it, where it asks for all of them."""
    text = question["text"]
    every = _EVERY.search(text)
    if not every and not _COMPARE.match(text):
        return question
    of_one = _COMPARE.sub("what are", _EVERY.sub("", text, count=1)).strip(" ?.!") + "?"
    options = await _options(of_one, context, context.parts.limits.passages) if content_terms(of_one) else ()
    things = set(content_terms(every["things"] or "")) if every else set()
    if not options or any(things - _DOCUMENTS - set(cut(option.label)) for option in options):
        return question
    return _question(of_one, [option.document for option in options if option.document])


async def _understood(text: str, said: Sequence[Said], context: Context, account: Account) -> Understanding:
    names = await context.search.attached_names()
    most = context.parts.limits.questions
    guess = understand(text, said, names, most)
    if guess.kind == "chat" or context.calls is None or await context.search.is_empty():
        return guess
    reading = await context.calls.decide(prompts.Reading, prompts.read(text, said, names, most), account)
    if reading is None or reading.kind == "chat":
        return guess  # the safe choice: what is no small talk by its words is looked up
    if reading.kind == "unclear":
        return guess if guess.kind == "open" or await _answerable(guess, context) else _open(text)
    questions = tuple(dict.fromkeys(" ".join(question.split())[:_LONGEST_QUESTION] for question in reading.questions))
    questions = tuple(question for question in questions if question)[:most]
    return replace(guess, kind="questions", questions=_completed(questions, guess.questions)) if questions else guess


def _completed(read: Sequence[str], guessed: Sequence[str]) -> tuple[str, ...]:
    """The questions as a model read them, apart from those that say less than the words themselves, a follow-up
    completed from the thread."""
    if len(read) != len(guessed):
        return tuple(read)
    pairs = zip(read, guessed, strict=True)
    return tuple(guess if set(content_terms(each)) < set(content_terms(guess)) else each for each, guess in pairs)


async def _answerable(guess: Understanding, context: Context) -> bool:
    """Whether the knowledge holds an answer to what a model calls unclear: then that isn't asked back."""
    for question in guess.questions:
        if await _settled(_question(question), context) or await _promising(question, context):
            return True
    return False


async def _promising(question: str, context: Context) -> Sequence[Hit]:
    """What is found where the question points to, if it is good enough for an answer."""
    narrowed = await context.search.narrowed(question)
    found = await context.search.passages(narrowed.query, narrowed.documents)
    return found.hits if context.search.grade(narrowed.query, found.hits).found else ()


def _open(text: str) -> Understanding:
    return Understanding("open", reply=texts_for(text).open_question)


def _planned(understood: Understanding, text: str) -> Plan:
    if understood.kind == "chat":
        return Plan(reply=understood.reply)
    if understood.kind == "open" or not understood.questions:
        reply = understood.reply or texts_for(text).open_question
        return Plan(pending={"text": reply, "options": [], "question": text, "asking": 0})
    notes = [understood.reply] if understood.reply else []
    return Plan([_question(question) for question in understood.questions], notes=notes)


def _question(text: str, documents: Sequence[str] = ()) -> Question:
    return {"text": text, "documents": list(documents), "chosen": bool(documents)}


async def _chosen(choice: Choice, state: State, said: list[Said], context: Context, account: Account) -> Plan:
    """What the answer to a clarification asks for. It is asked back again only for a number that no option has."""
    said = said or await context.recall()
    pending = state["pending"] or _asked_before(said)
    if pending is None or not pending["options"]:
        return await _anew(choice["text"] or context.text, pending, said, context, account)
    options = [Option.model_validate(option) for option in pending["options"]]
    if choice["option"] is None and _is_no_option(choice["text"], options):
        return Plan(pending=pending)
    chosen = understand_choice(choice["text"], choice["option"], options, pending["question"])
    if chosen.kind == "new_question":
        return await _anew(chosen.question, pending, said, context, account)
    question, notes = await _narrowed(chosen, options, pending["question"], context)
    questions = list(state["questions"]) or [question]
    questions[min(pending["asking"], len(questions) - 1)] = question
    return Plan(questions, notes=[*state["notes"], *notes])


_NUMBER_ALONE = re.compile(r"\W*(?:(?:option|number|nr|no)\b\.?\s*)?(\d{1,2})\W*", re.I)


def _is_no_option(text: str, options: Sequence[Option]) -> bool:
    number = _NUMBER_ALONE.fullmatch(text)
    if number is None or any(number[1] in option.label for option in options):
        return False
    return not 1 <= int(number[1]) <= len(options)


async def _anew(text: str, pending: Pending | None, said: Sequence[Said], context: Context, account: Account) -> Plan:
    if pending is not None:
        said = [*said, Said("user", "", pending["question"], "", "")]
    understood = await _understood(text, said, context, account)
    plan = _planned(understood, text)
    return Plan([_question(text)]) if plan.pending else plan


async def _narrowed(
    chosen: Chosen, options: Sequence[Option], asked: str, context: Context
) -> tuple[Question, list[str]]:
    """The question with the documents that were chosen, as far as they still live in this scope."""
    if chosen.kind == "words":
        return _question(chosen.question), []
    picked = [options[number] for number in chosen.options]
    ids = {option.document for option in picked if option.document}
    visible = {document.document for document in await context.search.documents(ids)}
    living = [option.document for option in picked if option.document in visible and option.document]
    words = [option.label for option in picked if option.document is None]
    question = f"{asked} ({', '.join(words)})" if words else asked
    return _question(question, living), [texts_for(asked).gone] if ids - visible else []


def _asked_before(said: Sequence[Said]) -> Pending | None:
    """The thread's last clarification, for where the checkpoint that held it is lost."""
    for place in range(len(said) - 1, -1, -1):
        if said[place].kind != "clarification":
            continue
        question = next((entry.text for entry in reversed(said[:place]) if entry.author == "user"), "")
        return {"text": said[place].text, "options": list(said[place].options), "question": question, "asking": 0}
    return None
