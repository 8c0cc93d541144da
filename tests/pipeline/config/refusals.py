"""The error messages of invalid configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.config import load


def problems_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a YAML text as lines ``LINE: KEY: MESSAGE``."""
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(path, home=folder)
    assert "regard config reference" in (caught.value.remedy or "")
    return [line.removeprefix(f"{path}:") for line in caught.value.message.splitlines()]


def compare(lines: list[str], expected: str | list[str]) -> None:
    """Check the beginnings of all lines."""
    starts = [expected] if isinstance(expected, str) else expected
    assert len(lines) == len(starts), lines
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start), line
