from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from ingest.convert import Converter
from ingest.limits import FileLimits


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def converter() -> AsyncIterator[Converter]:
    """One warm parent for the tests of a module: it takes seconds to warm up."""
    async with Converter(FileLimits()) as warm:
        yield warm
