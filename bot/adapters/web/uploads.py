"""Files that are posted on the page: on the disk before their message is acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aiohttp import BodyPartReader

from bot.adapters.web.errors import WebError
from bot.adapters.web.names import file_name
from bot.messages import Attachment
from bot.platform import FetchFailed

MEGABYTE = 1024 * 1024
READ_ON = 20  # times the largest upload: so much of a too large file is read, so that the rest of its post is taken
UNFINISHED = ".part"
_REFERENCE = re.compile(r"[0-9a-f]{32}")
_UPLOAD = re.compile(_REFERENCE.pattern + rf"({re.escape(UNFINISHED)})?")


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of a post. Of a too large one no bytes are kept, only its size as it was counted."""

    name: str
    reference: str
    size: int
    digest: str


class Uploads:
    def __init__(self, folder: Path, largest: int) -> None:
        self._folder = folder
        self._largest = largest

    def open(self, living: Collection[str]) -> None:
        """Make the folder, and drop what no message waits for: a crash came before its message was claimed, or before
        the file was discarded."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for rest in self._folder.iterdir():
            if rest.name not in living and _UPLOAD.fullmatch(rest.name):
                rest.unlink(missing_ok=True)

    async def take(self, part: BodyPartReader) -> Upload:
        """Read one part of a multipart body to a file of its own, which `keep` gives its name."""
        name = file_name(part.filename or "")
        reference = secrets.token_hex(16)
        path = self._unfinished(reference)
        try:
            with path.open("xb") as file:
                size, digest = await self._copy(part, file)
                if size > self._largest:
                    file.truncate(0)
                await asyncio.to_thread(_flush, file)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Upload(name, reference, size, digest)

    async def keep(self, uploads: Sequence[Upload]) -> None:
        if uploads:
            await asyncio.to_thread(self._keep, uploads)

    async def drop(self, uploads: Iterable[Upload]) -> None:
        for upload in uploads:
            self._unfinished(upload.reference).unlink(missing_ok=True)
            self._finished(upload.reference).unlink(missing_ok=True)

    async def discard(self, reference: str) -> None:
        """Remove a file that is not needed any more; one that is gone already is no trouble."""
        if _REFERENCE.fullmatch(reference):
            await asyncio.to_thread(self._finished(reference).unlink, missing_ok=True)

    async def fetch(self, attachment: Attachment, target: Path) -> None:
        if attachment.size > self._largest:
            raise FetchFailed(
                f"too large: {attachment.size / MEGABYTE:.0f} MB, and {self._largest / MEGABYTE:g} MB is the most. "
                "Split it, or post only what is needed."
            )
        if not _REFERENCE.fullmatch(attachment.reference):
            raise FetchFailed("its upload has no valid name. Post the file again.")
        try:
            await asyncio.to_thread(_link, self._finished(attachment.reference), target)
        except FileNotFoundError:
            raise FetchFailed("its upload is no longer there. Post the file again.") from None

    async def _copy(self, part: BodyPartReader, file: BinaryIO) -> tuple[int, str]:
        size = 0
        digest = hashlib.sha256()
        while chunk := await part.read_chunk(256 * 1024):
            size += len(chunk)
            digest.update(chunk)
            if size <= self._largest:
                file.write(chunk)
            elif size > self._largest * READ_ON:
                raise WebError(413, f"A file is far too large: {self._largest / MEGABYTE:g} MB is the most.")
        return size, digest.hexdigest()

    def _keep(self, uploads: Sequence[Upload]) -> None:
        for upload in uploads:
            self._unfinished(upload.reference).rename(self._finished(upload.reference))
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unfinished(self, reference: str) -> Path:
        return self._folder / (reference + UNFINISHED)

    def _finished(self, reference: str) -> Path:
        return self._folder / reference


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _link(source: Path, target: Path) -> None:
    with contextlib.suppress(FileExistsError, PermissionError, OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)
