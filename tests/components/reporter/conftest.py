"""Facts and rendered pages of sample runs."""

import functools

import pytest

from regard.components.reporter import page
from tests.components.reporter import sample_runs


@pytest.fixture
def facts(tmp_path):
    """The facts of a run of a text-to-text task."""
    return sample_runs.text_run(tmp_path)


@pytest.fixture(scope="session")
def report_file(tmp_path_factory):
    """A function that returns the report of a sample run of a kind, which is rendered once."""
    root = tmp_path_factory.mktemp("reports")

    @functools.cache
    def render(kind):
        file = root / f"{kind}.html"
        facts = sample_runs.KINDS[kind](root / kind)
        file.write_text(page.render(facts), encoding="utf-8")
        return file

    return render
