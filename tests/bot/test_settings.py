"""The README's settings table and `.env.example` name every setting with its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.settings import Settings

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `([A-Z_]+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def defaults() -> dict[str, str]:
    return {name.upper(): _shown(field.default) for name, field in Settings.model_fields.items()}


def _shown(default: object) -> str:
    if default is None or default == "":
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_the_readme_lists_every_setting_with_its_default_and_meaning() -> None:
    rows = {
        name: (default.strip("` "), meaning) for name, default, meaning in ROW.findall((ROOT / "README.md").read_text())
    }
    assert {name: default for name, (default, _) in rows.items()} == defaults()
    meanings = {name.upper(): field.description for name, field in Settings.model_fields.items()}
    assert {name: meaning for name, (_, meaning) in rows.items()} == meanings


def test_the_example_of_an_environment_names_every_setting() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    named = {line.lstrip("# ").partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
    assert named == defaults()


def test_an_empty_variable_is_no_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setenv("PORT", "")
    assert Settings().port == 8420
    assert Settings().models == ()


def test_several_models_are_tried_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_MODEL", "large, small")
    assert Settings().models == ("large", "small")


@pytest.mark.parametrize(
    "url",
    [
        "weaviate",
        "host:8080",
        "ftp://host",
        "http://",
        "http://host:0",
        "http://host:port",
        "http://host/v1",
        "http://a@b",
    ],
)
def test_an_address_of_weaviate_is_a_host_and_nothing_after_it(url: str) -> None:
    with pytest.raises(ValidationError, match="a host and a port"):
        Settings(weaviate_url=url)


def test_an_address_of_weaviate_may_end_with_a_slash() -> None:
    assert Settings(weaviate_url="https://host/").weaviate_url == "https://host"
