"""The command line as it is written: `python -m bot COMMAND …`. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path

VERSION = "0.1.0"

DESCRIPTION = "Ask your team's files, in the thread."
EPILOG = """All state lies under DATA_DIR (default ./data). While `run` is on, the other commands speak to it; where it
is not, they do their work by themselves. Exit status: 0 done, 1 not done, 2 wrong usage."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bot", description=DESCRIPTION, epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"threadlore {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _common()

    def command(name: str, summary: str, more: str = "") -> argparse.ArgumentParser:
        text = f"{summary[0].upper()}{summary[1:]}. {more}".strip()
        return commands.add_parser(name, help=summary, description=text, parents=[common])

    command("run", "run every platform that is configured, and the page", "The page is at HOST:PORT.")
    _add(command("add", "post files, and show what became of each", "Folders are read with what is in them."))
    _ask(command("ask", "ask a question", "With the thread of a clarification it answers that."))
    _search(command("search", "search passages; questions come on standard input, one a line"))
    _docs(command("docs", "list the documents, or show one"))
    _channel(command("channel", "show a channel, or change it"))
    forget = command("forget", "end a document: it answers nothing from then on")
    forget.add_argument("document", metavar="DOCUMENT", help="its id or its name")
    command("reembed", "embed everything anew, after the embedding model has changed")
    backup = command("backup", "write a backup of everything that is kept")
    backup.add_argument("path", metavar="PATH", type=Path, help="where to; nothing may be there yet")
    command("doctor", "check each part and say what is wrong")
    return top


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("common options")
    group.add_argument("--workspace", default="local", help="default: local")
    group.add_argument("--channel", default="general", help="default: general; @USER is a person's own")
    group.add_argument("--user", default="me", help="default: me")
    group.add_argument("--json", action="store_true", help="print one JSON object a line")
    return common


def _add(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files and folders")
    command.add_argument(
        "--jsonl", metavar="FILE", type=Path, help='a file of {"_id", "title", "text"} lines: each is a document'
    )


def _ask(command: argparse.ArgumentParser) -> None:
    command.add_argument("question", metavar="QUESTION", nargs="+")
    command.add_argument("--thread", default="", help="go on in this thread")
    command.add_argument("--model", default="", help="the model that answers")
    command.add_argument("--trace", action="store_true", help="show what each step did")


def _search(command: argparse.ArgumentParser) -> None:
    command.add_argument("--limit", type=_limit, default=10, metavar="N", help="hits for each question, to 100")
    command.add_argument("--mode", choices=("hybrid", "dense", "keyword"), default="hybrid")


def _docs(command: argparse.ArgumentParser) -> None:
    command.add_argument("document", metavar="DOCUMENT", nargs="?", help="an id or a name")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--text", action="store_true", help="the document as it was read, in Markdown")
    what.add_argument("--passages", action="store_true", help="the passages that it was cut into")


def _channel(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="C", help="the channel")
    readers = command.add_mutually_exclusive_group()
    readers.add_argument("--private", action="store_true", help="only its members read it")
    readers.add_argument("--public", action="store_true", help="everyone reads it")
    command.add_argument("--member", metavar="U", action="append", help="a member of the private channel; repeatable")
    command.add_argument("--knowledge", choices=("on", "off"), help="whether files posted there are learned")


def _limit(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError("from 1 to 100")
    return number


def wrong_usage(arguments: argparse.Namespace) -> str:
    """What argparse can't say by itself; "" where all is well."""
    match arguments.command:
        case "add" if not arguments.paths and arguments.jsonl is None:
            return "name a file, a folder or --jsonl FILE"
        case "docs" if (arguments.text or arguments.passages) and arguments.document is None:
            return "name the DOCUMENT that is to be shown"
        case "channel" if arguments.member and not arguments.private:
            return "--member goes with --private: everyone reads a public channel"
    for name, value in vars(arguments).items():
        if any(
            isinstance(text, str) and not _is_text(text) for text in (value if isinstance(value, list) else [value])
        ):
            return f"{name}: these bytes are no text in this terminal's encoding; type it again, or set a UTF-8 locale"
    return ""


def _is_text(text: str) -> bool:
    """Bytes that the terminal's encoding doesn't know stand as surrogates. A path may hold them: it is no text."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
