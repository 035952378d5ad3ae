"""The command line, in this process or in one of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.__main__ import main
from tests.running import PROJECT

SETTINGS = {"QUESTIONS_PER_MINUTE": "1000"}
SECONDS = 300  # of a command on a busy machine: a hundred files are one


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


class Shell:
    """Runs commands on one data directory: in this process, or `apart` in one of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.settings = {"PYTHONPATH": str(PROJECT), "DATA_DIR": str(home / "data"), **SETTINGS}

    def run(self, *arguments: str, said: str = "", **settings: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.home)
            patch.setattr("sys.stdin", io.StringIO(said))
            for name, value in {**self.settings, **settings}.items():
                patch.setenv(name, value)
            status = main(arguments)
        return Done(status, out.getvalue(), err.getvalue())

    def apart(self, *arguments: str, **settings: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "bot", *arguments],
            cwd=self.home,
            env={**self.settings, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str, said: str = "", status: int = 0) -> list[Any]:
        done = self.run(*arguments, "--json", said=said)
        assert done.returncode == status, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def says(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def fails(self, *arguments: str, **settings: str) -> str:
        """The reason, in one line."""
        done = self.run(*arguments, **settings)
        assert done.returncode == 1, done.stdout
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr
