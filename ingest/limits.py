"""The bounds of one file."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileLimits:
    size: int = 100 * MEGABYTE  # bytes as posted
    seconds: float = 60  # to convert it
    memory: int = 1024 * MEGABYTE  # resident, in the child that converts it
    unpacked: int = 500 * MEGABYTE  # an archive's or Office file's entries together
    entries: int = 10_000  # of an archive or Office file
    passages: int = 50_000
