"""Alembic migrations, run at start inside the caller's transaction."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def configuration() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


def upgrade(connection: Connection) -> None:
    """Bring the schema behind `connection` to the newest revision."""
    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
