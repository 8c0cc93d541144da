"""A schedule removes old runs and versions after each run."""

import pytest

from regard.core.errors import UserError
from regard.pipeline.runs import store
from regard.pipeline.workspace import lock_pipeline
from tests.components.registry.models import push_model
from tests.pipeline.scheduling.simulation import NIGHTLY


@pytest.fixture
def nights(simulation):
    """Serve a number of nights with a new span each."""
    spans = iter(range(2, 100))

    def serve(count):
        write = {24 * n + 2: lambda: simulation.write_span(next(spans)) for n in range(count)}
        return simulation.serve(24 * count + 0.9, write)

    return serve


def test_old_runs_are_removed_after_each_run(simulation, nights):
    nights(2)
    assert len(store.runs_of(simulation.paths)) == 3
    simulation.configure(NIGHTLY + "  keep: 2\n")
    daemon = nights(2)
    newest = [attempt.run for attempt in simulation.state.history[-2:]]
    assert [run.id for run in store.runs_of(simulation.paths)] == newest
    assert simulation.statuses == ["pushed"] * 5
    assert daemon.starting_with("old runs") == []


def test_old_versions_are_removed_after_each_run(simulation, nights):
    registry = simulation.workspace.registry
    for weights in range(3):
        push_model(registry, weights)
    (registry / "m").rename(registry / "tiny")
    simulation.configure(NIGHTLY + "  keep_versions: 2\n")
    nights(1)
    assert sorted(path.name for path in (registry / "tiny").iterdir()) == ["2", "3"]
    assert len(store.runs_of(simulation.paths)) == 2


def test_an_error_of_the_cleaning_does_not_stop_the_schedule(simulation, nights, monkeypatch):
    simulation.configure(NIGHTLY + "  keep: 1\n")

    def clean_in_use(workspace, name, keep):
        with lock_pipeline(simulation.paths.lock):
            clean(workspace, name, keep)

    from regard.pipeline.scheduling import daemon as module

    clean = module.clean
    monkeypatch.setattr(module, "clean", clean_in_use)
    daemon = nights(1)
    assert simulation.statuses == ["pushed", "pushed"]
    (first, _) = daemon.starting_with("old runs cannot be removed: ")
    assert "The pipeline tiny is in use" in first


def test_a_registry_that_cannot_be_read_does_not_stop_the_schedule(simulation, nights, monkeypatch):
    simulation.configure(NIGHTLY + "  keep_versions: 1\n")

    def open_registry(root):
        raise UserError("The object store reports: timeout")

    monkeypatch.setattr("regard.pipeline.scheduling.daemon.Registry", open_registry)
    daemon = nights(1)
    assert simulation.statuses == ["pushed", "pushed"]
    assert "timeout" in daemon.starting_with("old runs cannot be removed: ")[0]
