"""The warm parent: it imports what the readers need, and forks a child for each file.

Run as `python -m ingest.warm FD`, where FD is a socket from which it takes a connection for each file. It ends when its
standard input does, and its children end with it. A child reads one file and says what is in it; nothing of it reaches
the next.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ingest import frames
from ingest.limits import FileLimits
from ingest.parts import Part, Refused
from ingest.readers.reading import import_all, read

PIECE = 1 << 18  # characters of one frame of text
BETWEEN_REPORTS = 0.1  # seconds
REST_AFTER_SECONDS = 3.0  # it imports the rest: until then a child whose file needs that does so itself
CHARACTERS_A_PASSAGE = 2048
TOO_MUCH_MEMORY = "it needs too much memory to be read: split it and post the parts"
TOO_MUCH_TEXT = "it has more text than can be taken in: split it and post the parts"
FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.", "ftplib.")
_PR_SET_PDEATHSIG = 1


def main() -> None:
    asked = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps
    rest_due: float | None = time.monotonic() + REST_AFTER_SECONDS
    while True:
        patience = None if rest_due is None else max(0.0, rest_due - time.monotonic())
        ready, _, _ = select.select([asked, sys.stdin], [], [], patience)
        if sys.stdin in ready:
            return
        if rest_due is not None and time.monotonic() >= rest_due:
            import_all()
            rest_due = None
        if not ready:
            continue
        _, (connection,), _, _ = socket.recv_fds(asked, 1, 1)
        with socket.socket(fileno=connection) as file:
            if os.fork() == 0:
                _live_as_child(asked, file)


def _live_as_child(asked: socket.socket, connection: socket.socket) -> None:
    """Never returns. An end without END or REFUSED says that the reader fell over the file."""
    try:
        asked.close()
        _die_with_parent()
        _convert(connection)
        connection.shutdown(socket.SHUT_RDWR)
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if parent == 1 or os.getppid() != parent:
            os._exit(1)


def _convert(connection: socket.socket) -> None:
    connection.sendall(frames.frame(frames.STARTED, str(os.getpid()).encode()))
    asked = json.loads(_line(connection))
    limits = FileLimits(**asked["limits"])
    _confine(limits)
    try:
        converted = read(Path(asked["path"]), asked["name"], limits, _reporter(connection))
        _send(connection, converted.parts, limits)
        end = json.dumps([converted.pages, converted.note]).encode()
        connection.sendall(frames.frame(frames.END, end))
    except Refused as refused:
        connection.sendall(frames.frame(frames.REFUSED, refused.reason.encode()))
    except MemoryError:
        connection.sendall(frames.frame(frames.REFUSED, TOO_MUCH_MEMORY.encode()))


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        received = connection.recv(65536)
        if not received:
            os._exit(1)
        line += received
    return line


def _confine(limits: FileLimits) -> None:
    """What the system itself holds: nothing is written, and no limit is passed between two looks from outside."""
    seconds = int(limits.seconds) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        address_space = pages * resource.getpagesize() + limits.memory * 3 // 2
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(devnull, stream)
    sys.addaudithook(_forbid)


def _forbid(event: str, _: tuple[object, ...]) -> None:
    """A file is never a reason to open a connection or to start a program."""
    if event.startswith(FORBIDDEN):
        raise PermissionError(event)


def _reporter(connection: socket.socket) -> Callable[[int, int], None]:
    last = 0.0

    def report(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > BETWEEN_REPORTS:
            last = time.monotonic()
            connection.sendall(frames.frame(frames.DONE, json.dumps([done, total]).encode()))

    return report


def _send(connection: socket.socket, parts: tuple[Part, ...], limits: FileLimits) -> None:
    if sum(len(part.text) for part in parts) > limits.passages * CHARACTERS_A_PASSAGE:
        raise Refused(TOO_MUCH_TEXT)
    for part in parts:
        described = {**asdict(part), "text": ""}
        connection.sendall(frames.frame(frames.PART, json.dumps(described).encode()))
        for start in range(0, len(part.text), PIECE):
            text = part.text[start : start + PIECE].encode("utf-8", "replace")
            connection.sendall(frames.frame(frames.TEXT, text))


if __name__ == "__main__":
    main()
