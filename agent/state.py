"""The state of a turn: plain JSON, so that a checkpoint can be read by any later version."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, NotRequired, TypedDict

from storage.models import Anchor, Hit, Passage, Section
from storage.transcript import Said

SCHEMA = 1  # counts up when the meaning of a key changes: a checkpoint of another schema is begun anew

Json = dict[str, Any]


class Question(TypedDict):
    """`documents` narrows the search to these ([]: to none); `chosen`: by a person, so that it stays narrow; else they
    are those that the thread speaks of, looked at first."""

    text: str
    documents: list[str]
    chosen: bool


class Evidence(TypedDict):
    """A passage that an answer may cite. Its text does not outlive the turn."""

    passage: Json
    score: float
    cosine: float | None
    places: list[list[Any]]  # offset, page, place
    link: str


class Finding(TypedDict):
    """What research found for one question. `limits` is what the search couldn't do. With `left_out` it is an outline
    of whole documents: the number of parts that it leaves out."""

    order: int
    question: str
    found: bool
    confidence: float
    several: bool
    evidence: list[Evidence]
    nearest: list[Json]
    limits: list[str]
    left_out: NotRequired[int]
    doubtful: NotRequired[bool]  # a model may find an answer in it; nobody else would


class Pending(TypedDict):
    """A clarification: `asking` is the question, by its place among the turn's, that it is about."""

    text: str
    options: list[Json]
    question: str
    asking: int


class Choice(TypedDict):
    text: str
    option: int | None
    turn: str


class Draft(TypedDict):
    kind: str
    text: str
    citations: list[Json]
    nearest: list[Json]


class Spent(TypedDict):
    model: str | None
    calls: int
    tokens_in: int
    tokens_out: int


NOTHING_SPENT: Spent = {"model": None, "calls": 0, "tokens_in": 0, "tokens_out": 0}


def gather(known: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """The reducer of lists; None empties the list."""
    return [] if new is None else [*(known or ()), *new]


def add_up(known: Spent | None, new: Spent | None) -> Spent:
    if new is None or not known:
        return new or NOTHING_SPENT
    return {
        "model": new["model"] or known["model"],
        "calls": known["calls"] + new["calls"],
        "tokens_in": known["tokens_in"] + new["tokens_in"],
        "tokens_out": known["tokens_out"] + new["tokens_out"],
    }


class State(TypedDict, total=False):
    schema: int
    turn: str
    said: list[Json]
    questions: list[Question]
    reply: str
    pending: Pending | None
    choice: Choice | None
    notes: list[str]
    findings: Annotated[list[Finding], gather]
    draft: Draft | None
    outcome: Json | None
    usage: Annotated[Spent, add_up]
    degraded: Annotated[list[str], gather]
    trace: Annotated[list[Json], gather]


def beginning(turn: str, choice: Choice | None) -> Json:
    """The input of a new turn. It empties whatever an earlier turn of the thread has left."""
    return {
        "schema": SCHEMA,
        "turn": turn,
        "said": [],
        "questions": [],
        "reply": "",
        "pending": None,
        "choice": choice,
        "notes": [],
        "findings": None,
        "draft": None,
        "outcome": None,
        "usage": None,
        "degraded": None,
        "trace": None,
    }


class Asked(TypedDict):
    """What research is sent: a question, its place among the turn's, and how many passages its answer may rest on."""

    order: int
    question: str
    documents: list[str]
    chosen: bool
    passages: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A document as it is: a page, slide or sheet of it by number or name; the whole where `kind` is ""."""

    kind: str = ""
    number: int = 0
    name: str = ""


class ResearchState(Asked):
    """Of the research of one question. It is never stored: passages are here as they are."""

    query: NotRequired[str]
    only: NotRequired[bool]  # these documents, and no others, are meant
    wish: NotRequired[Wish | None]
    left_out: NotRequired[int]
    nearest: NotRequired[list[Json]]
    hits: NotRequired[list[Hit]]
    limits: NotRequired[list[str]]
    confidence: NotRequired[float]
    found: NotRequired[bool]
    doubtful: NotRequired[bool]
    evidence: NotRequired[list[Evidence]]
    findings: Annotated[list[Finding], gather]
    degraded: Annotated[list[str], gather]
    trace: Annotated[list[Json], gather]


class Researched(TypedDict):
    """What research leaves in the turn's state."""

    findings: Annotated[list[Finding], gather]
    degraded: Annotated[list[str], gather]
    trace: Annotated[list[Json], gather]


def said_as_json(said: Said) -> Json:
    return {**asdict(said), "citations": list(said.citations), "options": list(said.options)}


def said_from_json(stored: Json) -> Said:
    return Said(**{**stored, "citations": tuple(stored["citations"]), "options": tuple(stored["options"])})


def as_evidence(hit: Hit, section: Section, link: str) -> Evidence:
    passage = asdict(hit.passage)
    passage["headings"] = list(hit.passage.headings)
    return {
        "passage": passage,
        "score": hit.score,
        "cosine": hit.cosine,
        "places": [[anchor.offset, anchor.page, anchor.place] for anchor in section.places()],
        "link": link,
    }


def hit_of(evidence: Evidence) -> Hit:
    stored = evidence["passage"]
    passage = Passage(**{**stored, "headings": tuple(stored["headings"])})
    return Hit(passage, evidence["score"], evidence["cosine"])


def section_of(evidence: Evidence) -> Section:
    """The passage's section without its text: enough to tell a place."""
    anchors = tuple(Anchor(*place) for place in evidence["places"])
    return Section(evidence["passage"]["section"], (), "", anchors)
