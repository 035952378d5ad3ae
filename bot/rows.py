"""The journal's rows, and what a message is before anyone looks into it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.messages import Incoming, Kind
from bot.platform import Turn
from storage.channels import Channel, Channels
from storage.clarifications import Clarifications
from storage.database import Database
from storage.documents import Documents
from storage.journal import Journal, NewRow, Row
from storage.models import channel_audience, thread_audience
from storage.transcript import Place, Transcript

QUESTION = re.compile(
    r"[?？]|^(?:what|when|where|which|who|whom|whose|why|how|is|are|was|were|do|does|did|can|could|may|must|should|will|"
    r"would|summari[sz]e|explain|list|show|tell|find|compare|give|wer|was|wann|wo|wie|warum|welche[rs]?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stores:
    """Where everything is kept."""

    database: Database
    journal: Journal
    transcript: Transcript
    channels: Channels
    clarifications: Clarifications
    documents: Documents


def turn_of(row: Row) -> Turn:
    incoming = Incoming.model_validate(row.payload["message"] if row.kind == Kind.FILE else row.payload)
    return Turn(row.parent or row.id, incoming.where, row.message, row.user)


def place_of(row: Row) -> Place:
    return Place(row.platform, row.workspace, row.channel, row.thread)


def new_row(incoming: Incoming) -> NewRow:
    where = incoming.where
    thread_lane = str(where)
    return NewRow(
        platform=where.platform,
        workspace=where.workspace,
        channel=where.channel,
        message=incoming.message,
        kind=incoming.kind,
        revision=incoming.revision or incoming.attachment,
        thread=where.thread,
        lane=f"delete:{thread_lane}:{incoming.message}" if incoming.kind == Kind.DELETE else thread_lane,
        user=incoming.user,
        sent_at=incoming.sent_at,
        payload=incoming.model_dump(mode="json", exclude_defaults=True),
    )


def file_rows(incoming: Incoming, channel: Channel, new: NewRow) -> list[NewRow]:
    """A row for each file that is to be read: for the channel, or for this thread alone where a question came too."""
    if channel.knowledge:
        audience = channel_audience(new.channel)
    elif asks(incoming):
        audience = thread_audience(new.channel, new.thread)
    else:
        return []
    names = [attachment.name for attachment in incoming.attachments]
    return [
        NewRow(
            platform=new.platform,
            workspace=new.workspace,
            channel=new.channel,
            message=new.message,
            kind=Kind.FILE,
            revision=str(number),
            thread=new.thread,
            lane=f"file:{new.platform}:{new.workspace}:{audience}:{attachment.name}",
            user=new.user,
            sent_at=new.sent_at,
            payload={
                "attachment": attachment.model_dump(mode="json"),
                "audience": audience,
                "link": incoming.link,
                "twin": names.count(attachment.name) > 1,
                "message": {**new.payload, "attachments": [], "text": ""},
            },
        )
        for number, attachment in enumerate(incoming.attachments)
    ]


def asks(incoming: Incoming) -> bool:
    """A post of files alone is never a question; with words it is one where they ask."""
    if not incoming.addressed:
        return False
    if not incoming.attachments:
        return bool(incoming.text.strip())
    return bool(QUESTION.search(incoming.text.strip()))
