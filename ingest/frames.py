"""What passes between the bot and the child that converts a file: frames of a letter, a length and so many bytes."""

from __future__ import annotations

import struct

HEADER = struct.Struct("!cI")
LARGEST = 1 << 20

FILE = b"F"  # to the warm parent, with a connection
STARTED = b"S"  # the child's process id
DONE = b"D"  # [done, total]
PART = b"P"  # a part without its text, which follows in pieces
TEXT = b"T"
END = b"E"  # [pages, note]
REFUSED = b"R"  # the reason


def frame(letter: bytes, content: bytes = b"") -> bytes:
    return HEADER.pack(letter, len(content)) + content
