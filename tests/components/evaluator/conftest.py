from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.artifacts import Predictions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / Predictions.TYPE_NAME
    path.mkdir()
    return path
