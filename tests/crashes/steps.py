"""The steps of the bot at which a test can stop it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RECEIVE = "bot.claiming:Claiming.receive"
LEASE = "storage.journal:Journal.lease"
CHECKPOINT = "storage.checkpoints:_FencedSaver.aput"
WRITES = "storage.checkpoints:_FencedSaver.aput_writes"
PRUNE = "storage.checkpoints:SqliteCheckpoints.prune"
FORGET = "storage.checkpoints:SqliteCheckpoints.forget"
TURN = "agent.agent:Agent.run"
BEGIN_TO_SEND = "bot.lanes:Lanes._begin_to_send"
SEND = "bot.adapters.web.platform:Web.send"
DELIVERED = "storage.transcript:Transcript.delivered"
REVISE = "storage.transcript:Transcript.revise"
ENDED = "bot.conversation:Conversation.ended"
KEEP = "bot.adapters.web.uploads:Uploads.keep"
CONVERT = "ingest.convert:Converter.convert"
SECTIONS = "storage.documents:Documents.store_sections"
ADD = "storage.lance:LanceStore.add"
SWAP = "storage.documents:Documents.swap"
BURY = "storage.documents:Documents.bury_post"
REMOVE = "storage.lance:LanceStore.remove"
STEPS = (
    RECEIVE,
    LEASE,
    CHECKPOINT,
    WRITES,
    PRUNE,
    FORGET,
    TURN,
    BEGIN_TO_SEND,
    SEND,
    DELIVERED,
    REVISE,
    ENDED,
    KEEP,
    CONVERT,
    SECTIONS,
    ADD,
    SWAP,
    BURY,
    REMOVE,
)


@dataclass(frozen=True, slots=True)
class Stop:
    """The first call of `step` that names these words, in what it is given or gives; or each such call."""

    step: str
    when: Literal["before", "after"]
    words: tuple[str, ...] = ()
    each_time: bool = False
