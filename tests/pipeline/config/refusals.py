"""What is said of a configuration that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.config import load


def problems_of(folder: Path, text: str) -> list[str]:
    path = folder / "x.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load(path)
    return [line.removeprefix(f"{path}:") for line in caught.value.message.splitlines()]


def compare(lines: list[str], expected: list[str]) -> None:
    assert len(lines) == len(expected), lines
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start), line
