from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from storage.weaviate import Server, WeaviateStore
from tests.storage.knowledge_contract import KnowledgeContract
from tests.weaviate_server import WeaviateServer

_owners = itertools.count(1)


@pytest.fixture
def owner() -> str:
    """A catalog of its own for each test."""
    return f"test{next(_owners)}"


@pytest.fixture
async def store(weaviate: WeaviateServer, owner: str) -> AsyncIterator[WeaviateStore]:
    opened = await WeaviateStore.open(place(weaviate), "passages", owner=owner)
    yield opened
    await opened.close()


def place(server: WeaviateServer, *, patience: float = 0, api_key: str | None = None) -> Server:
    return Server(server.url, server.grpc_port, api_key, patience)


class TestWeaviate(KnowledgeContract):
    pass
