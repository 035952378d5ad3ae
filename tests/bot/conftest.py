from __future__ import annotations

from tests.agent.conftest import embedder, empty_database

__all__ = ["embedder", "empty_database"]
