"""`python -m bot`: the command line."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from bot.cli import parser, wrong_usage

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy.exc import SQLAlchemyError

    from bot.app import App
    from bot.settings import Settings

OURS = ("bot", "agent", "ingest", "storage")
INTERRUPTED = 130

log = logging.getLogger("bot")


def main(argv: Sequence[str] | None = None) -> int:
    top = parser()
    arguments = top.parse_args(argv)
    if wrong := wrong_usage(arguments):
        top.error(wrong)
    os.umask(0o077)  # what is kept is for this user alone
    if arguments.command == "run":
        signal.signal(signal.SIGTERM, _end)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _end(*_: object) -> None:
    """Nothing was opened yet."""
    sys.exit(0)


def _run(arguments: argparse.Namespace) -> int:
    import sqlite3

    from pydantic import ValidationError
    from sqlalchemy.exc import SQLAlchemyError

    from bot.client import ClientError
    from bot.platform import NotStarted
    from bot.settings import Settings
    from storage.errors import StorageError

    try:
        settings = Settings.model_validate({})
        _log(settings.log_level if arguments.command == "run" or settings.log_level == "DEBUG" else "ERROR")
        return asyncio.run(_serve(settings) if arguments.command == "run" else _command(arguments, settings))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors())
        return _complain(f"A setting is wrong. {wrong}")
    except (ClientError, StorageError, NotStarted) as error:
        return _complain(str(error))
    except BrokenPipeError:
        raise
    except (OSError, SQLAlchemyError, sqlite3.Error) as error:
        log.debug("storage", exc_info=True)
        return _complain(_storage_trouble(error))
    except Exception:  # the boundary: what nobody foresaw is for the log, not for who typed the command
        log.log(logging.ERROR if arguments.command == "run" else logging.DEBUG, "unforeseen", exc_info=True)
        return _complain("Something went wrong that nobody foresaw. With LOG_LEVEL=DEBUG the log on this screen tells.")


async def _serve(settings: Settings) -> int:
    """Until SIGTERM or SIGINT; one that comes while the bot starts ends it as soon as it has."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)

    from bot.app import collect_seldom, open_app

    async with open_app(settings) as app:
        collect_seldom()
        log.info("the page is at %s", app.url)
        await ended.wait()
        log.info("ending")
    return 0


async def _command(arguments: argparse.Namespace, settings: Settings) -> int:
    from bot import terminal

    return await terminal.run(arguments, settings, _open)


@contextlib.asynccontextmanager
async def _open(settings: Settings, *, any_model: bool) -> AsyncIterator[App]:
    """A bot in this process; its imports wait until one is needed."""
    from bot.app import open_app

    async with open_app(settings, port=0, any_model=any_model) as app:
        yield app


class _OneLine(logging.Formatter):
    """A record is a line, whatever it holds: nobody can write a record of their own into the log."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\r", "").replace("\n", " ⏎ ")


def _log(level: str) -> None:
    """To standard error: ours from `level` on, what we stand on from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=max(logging.WARNING, getattr(logging, level)), handlers=[handler])
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def _storage_trouble(error: OSError | SQLAlchemyError | sqlite3.Error) -> str:
    from storage.database import is_disk_full

    if is_disk_full(error):
        return "The disk is full. Free space under DATA_DIR, then try again."
    if isinstance(error, OSError):
        where = f"{error.filename} can't be used" if error.filename else "A file or an address can't be used"
        return (
            f"{where} ({error.strerror or 'no reason is given'}). Check that it is there and that this user may use it."
        )
    return (
        f"The database under DATA_DIR can't be used ({getattr(error, 'orig', error) or 'it answers with an error'}). "
        "Check that this user may write there, and that no other program holds it."
    )


def _complain(text: str) -> int:
    sys.stderr.write(" ".join(text.split()) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
