"""Hits made by hand, for tests of what reads them."""

from __future__ import annotations

from storage.models import Hit, Passage


def hit(text: str, name: str = "handbook.md", *, score: float = 1.0, cosine: float | None = None) -> Hit:
    passage = Passage(
        document=f"d-{name}",
        version=1,
        number=1,
        workspace="w",
        audience="channel:general",
        name=name,
        section=1,
        start=0,
        end=len(text),
        headings=(),
        page=None,
        place="",
        text=text,
    )
    return Hit(passage, score, cosine)
