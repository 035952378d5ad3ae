"""The data directory: one bot at a time has it, and says where it is to be reached."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.errors import MOVE_AWAY, DatabaseDamaged, DataDirInUse, StorageError


@dataclass(frozen=True, slots=True)
class Running:
    """A bot that has the data directory: where the other commands speak to it."""

    pid: int
    url: str
    token: str | None


class DataDirUnusable(StorageError):
    """The data directory can't be made or written to."""


class DataDir:
    """Everything that is kept lies under `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def database(self) -> Path:
        return self.path / "threadlore.sqlite"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints.sqlite"

    @property
    def passages(self) -> Path:
        return self.path / "passages"

    @property
    def uploads(self) -> Path:
        return self.path / "uploads"

    @property
    def work(self) -> Path:
        """What is needed for a moment only; a crash leaves it to the next start, which empties it."""
        return self.path / "work"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Have the directory until the block ends. Raises DataDirInUse, DataDirUnusable, DatabaseDamaged."""
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context((self.path / "lock").open("a"))
            except OSError as error:
                raise DataDirUnusable(
                    f"The data directory {self.path} can't be used ({error.strerror}). "
                    "Set DATA_DIR to a directory that this user may write to."
                ) from error
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DataDirInUse(
                    f"Another bot has {self.path}. Stop it first, or set DATA_DIR to another directory."
                ) from error
            stack.callback((self.path / "run.json").unlink, missing_ok=True)
            self._check_emptied()
            shutil.rmtree(self.work, ignore_errors=True)
            yield

    def _check_emptied(self) -> None:
        """An empty file is a new database to SQLite: beside passages it is one that was lost."""
        if self.passages.exists() and self.database.is_file() and not self.database.stat().st_size:
            raise DatabaseDamaged(
                f"the database {self.database} is empty, and passages are there. "
                f"{MOVE_AWAY}, and restore a backup in its place; it was not changed."
            )

    def announce(self, running: Running) -> None:
        """Say where this bot is to be reached. For the holder alone; readable by this user only."""
        target = self.path / "run.json"
        fresh = target.with_suffix(".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(running), file)
        fresh.replace(target)

    def running(self) -> Running | None:
        """The bot that has this directory, if one does and can be reached."""
        try:
            with (self.path / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            pass
        except FileNotFoundError:
            return None
        try:
            return Running(**json.loads((self.path / "run.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
