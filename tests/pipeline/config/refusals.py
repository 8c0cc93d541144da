"""Configurations as texts, and the error messages of invalid ones."""

from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.config import Config, load


def load_text(folder: Path, text: str, home: Path | None = None) -> Config:
    """Load a YAML text from a file in a folder."""
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    return load(folder / "x.yaml", home)


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a YAML text as lines ``LINE: KEY: MESSAGE``."""
    with pytest.raises(UserError) as caught:
        load_text(folder, text, home=folder)
    assert "regard config reference" in (caught.value.remedy or "")
    return [
        line.removeprefix(f"{folder / 'x.yaml'}:") for line in caught.value.message.splitlines()
    ]


def compare(lines: list[str], expected: str | list[str]) -> None:
    """Check the beginnings of all lines."""
    starts = [expected] if isinstance(expected, str) else expected
    assert len(lines) == len(starts), lines
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start), line
