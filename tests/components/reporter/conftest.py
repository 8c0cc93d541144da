from __future__ import annotations

import pytest

from tests.components.reporter import runs


@pytest.fixture
def facts(tmp_path):
    """Of a run whose texts are answered with texts."""
    return runs.text_run(tmp_path)
