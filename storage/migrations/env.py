"""Alembic's entry: uses the connection that it is handed, or makes one to write a new revision against."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine

from storage.schema import metadata

connection = context.config.attributes.get("connection") or create_engine("sqlite://").connect()
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
