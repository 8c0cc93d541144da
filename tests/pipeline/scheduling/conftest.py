import pytest

from regard.pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing_corpus import GrowingCorpus
from tests.pipeline.scheduling.simulation import NIGHTLY, Simulation


@pytest.fixture
def corpus(tmp_path):
    return GrowingCorpus(tmp_path)


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path / "home").pipeline("tiny")


@pytest.fixture
def simulation(tmp_path, monkeypatch):
    """A nightly schedule at 3 o'clock that starts at half past 2."""
    simulation = Simulation(tmp_path, monkeypatch)
    simulation.configure(NIGHTLY)
    return simulation
