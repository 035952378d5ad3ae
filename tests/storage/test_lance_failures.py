"""What an operator reads where the knowledge store's folder can't be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storage.errors import StoreUnavailable
from storage.lance import LanceStore

_INTERNAL = re.compile(r"lance ?error|\.rs\b|cargo|registry|errno", re.IGNORECASE)


async def refusal(path: Path) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        await LanceStore.open(path, "test")
    return str(refused.value)


@pytest.mark.parametrize("content", [b"", b"not a manifest", bytes(range(256)) * 8])
async def test_a_damaged_store_is_named_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "passages"
    store = await LanceStore.open(folder, "test")
    await store.close()
    manifests = list(folder.rglob("*.manifest"))
    assert manifests
    for manifest in manifests:
        manifest.write_bytes(content)
    text = await refusal(folder)
    assert f"Move the folder {folder} away and run `python -m bot reembed`, or restore a backup." in text
    assert not _INTERNAL.search(text)


@pytest.mark.parametrize("below", ["", "deeper"])
async def test_a_file_in_the_place_of_the_folder_is_named_with_what_to_do(tmp_path: Path, below: str) -> None:
    (tmp_path / "passages").write_text("a file")
    text = await refusal(tmp_path / "passages" / below)
    assert str(tmp_path / "passages") in text and "Move it away" in text
    assert not _INTERNAL.search(text)


async def test_a_store_that_is_damaged_while_it_is_open_says_so_without_internal_words(tmp_path: Path) -> None:
    store = await LanceStore.open(tmp_path / "passages", "test")
    for file in (tmp_path / "passages").rglob("*"):
        if file.is_file():
            file.write_bytes(b"broken")
    with pytest.raises(StoreUnavailable) as refused:
        await store.drop_others()
        await store.forget_vectors()
        await store.compact()
    await store.close()
    assert str(tmp_path / "passages") in str(refused.value) and "restore a backup" in str(refused.value)
    assert not _INTERNAL.search(str(refused.value))
