import pytest

from tests.components.reporter import sample_runs


@pytest.fixture
def facts(tmp_path):
    """The facts of a run of a text-to-text task."""
    return sample_runs.text_run(tmp_path)
