"""What this installation must remember of itself."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, select

from storage.database import Database
from storage.schema import facts


class Facts:
    """Named JSON values."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> Any:
        """None where it was never set."""
        async with self._database.read() as connection:
            return await connection.scalar(select(facts.c.value).where(facts.c.name == name))

    async def put(self, name: str, value: Any) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(facts).where(facts.c.name == name))
            await connection.execute(insert(facts).values(name=name, value=value))
