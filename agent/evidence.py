"""From hits to evidence: which passages are read, and what of their sections an answer is written from."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import zip_longest

from agent.context import Context
from agent.outcomes import Nearest
from agent.state import Evidence, Finding, Json, ResearchState, as_evidence
from storage.models import Document, Hit, Section, Version, versions_of

NEAREST = 2  # documents that are named where nothing was found
_WIDENED = 1200  # characters of a section that a model reads whole


def chosen_passages(hits: Sequence[Hit], most: int, *, each: bool) -> list[Hit]:
    """The first passages, no text twice; `each`: in turn from each document."""
    if each:
        by_document: dict[str, list[Hit]] = {}
        for hit in hits:
            by_document.setdefault(hit.passage.document, []).append(hit)
        hits = [hit for row in zip_longest(*by_document.values()) for hit in row if hit is not None]
    return list({hit.passage.text: hit for hit in reversed(hits)}.values())[::-1][:most]


async def read_sections(hits: Sequence[Hit], context: Context) -> list[Evidence]:
    """These passages with their places, as far as their documents live."""
    catalog = context.parts.documents
    living = await catalog.living(context.scope.workspace, versions_of(hits))
    sections = await catalog.sections_at(
        {(hit.passage.key, hit.passage.section) for hit in hits if hit.passage.key in living}
    )
    evidence: dict[str, Evidence] = {}
    for hit in hits:
        section = sections.get((hit.passage.key, hit.passage.section))
        if section is not None:
            wide = _widened(hit, section) if context.calls else hit
            evidence.setdefault(_place(wide), as_evidence(wide, section, living[hit.passage.key].link))
    return list(evidence.values())


def as_finding(state: ResearchState) -> Finding:
    evidence = state.get("evidence", [])
    finding: Finding = {
        "order": state["order"],
        "question": state["question"],
        "found": bool(evidence),
        "confidence": state["confidence"],
        "several": state["chosen"] and len(state["documents"]) > 1,
        "evidence": evidence,
        "nearest": [] if evidence else state.get("nearest") or _nearest(state["hits"]),
        "limits": state["limits"],
        "doubtful": state.get("doubtful", False),
    }
    return {**finding, "left_out": state["left_out"]} if "left_out" in state else finding


def nearest_of(evidence: Sequence[Evidence]) -> list[Json]:
    """The documents of passages that didn't answer after all."""
    near = {
        each["passage"]["document"]: Nearest(
            document=each["passage"]["document"],
            version=each["passage"]["version"],
            name=each["passage"]["name"],
            link=each["link"],
        ).model_dump()
        for each in reversed(evidence)
    }
    return list(near.values())[::-1][:NEAREST]


def without_dead(finding: Finding, living: Container[Version]) -> Finding:
    """The finding, as far as its documents live."""
    evidence = [
        each
        for each in finding["evidence"]
        if Version(each["passage"]["document"], each["passage"]["version"]) in living
    ]
    return {**finding, "evidence": evidence, "found": bool(evidence)}


def as_nearest(documents: Sequence[Document]) -> list[Json]:
    return [
        Nearest(document=each.document, version=each.version, name=each.name, link=each.link).model_dump()
        for each in documents[:NEAREST]
    ]


def _nearest(hits: Sequence[Hit]) -> list[Json]:
    firsts: dict[str, Hit] = {}
    for hit in hits:
        firsts.setdefault(hit.passage.document, hit)
    return [
        Nearest(document=key, version=hit.passage.version, name=hit.passage.name).model_dump()
        for key, hit in list(firsts.items())[:NEAREST]
    ]


def _widened(hit: Hit, section: Section) -> Hit:
    """The whole of a short section instead of a part of it."""
    if len(section.text) > _WIDENED or section.text[hit.passage.start : hit.passage.end] != hit.passage.text:
        return hit
    return replace(hit, passage=replace(hit.passage, start=0, end=len(section.text), text=section.text))


def _place(hit: Hit) -> str:
    passage = hit.passage
    return f"{passage.document}.{passage.version}.{passage.section}.{passage.start}"
