"""What is removed, what stays and why; pins."""

from __future__ import annotations

import threading

import pytest

from components.errors import UserError
from components.registry import publishing
from components.registry.pins import is_pinned, pin, unpin
from components.registry.pruning import prune
from components.registry.rollback import rollback
from serving.local.versions import Version, versions_in
from tests.components.registry.models import push_model, push_models, weights_of


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 5)


def kept(verdicts):
    return {verdict.version: verdict.kept for verdict in verdicts}


def names(registry):
    return sorted(path.name for path in (registry.root / "m").iterdir())


def test_the_newest_stay(registry):
    expected = {5: "live", 4: "among the newest 2", 3: None, 2: None, 1: None}
    dry = prune(registry, "m", 2, dry_run=True)
    assert kept(dry) == expected
    assert names(registry) == ["1", "2", "3", "4", "5"]
    assert prune(registry, "m", 2) == dry
    assert names(registry) == ["4", "5"]
    assert dry[-1].bytes > 10
    assert kept(prune(registry, "m", 2)) == {5: "live", 4: "among the newest 2"}


def test_pinned_and_held_versions_stay(registry):
    assert pin(registry, "m", 1)
    assert not pin(registry, "m", 1)
    found = prune(registry, "m", 1, {2: "in models.config"})
    assert kept(found) == {5: "live", 4: None, 3: None, 2: "in models.config", 1: "pinned"}
    assert names(registry) == ["1", "2", "5"]
    assert unpin(registry, "m", 1)
    assert not unpin(registry, "m", 1)
    assert not is_pinned(registry.path("m", 1))
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_what_a_server_has_loaded_stays_until_it_lets_go(registry):
    loaded = Version(3)
    loaded.hold(registry.path("m", 3))
    assert kept(prune(registry, "m", 1, dry_run=True))[3] == "in use"
    assert kept(prune(registry, "m", 1))[3] == "in use"
    assert names(registry) == ["3", "5"]
    loaded.release()
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_folders_that_are_no_versions_are_let_alone(registry):
    (registry.root / "m" / "3" / "saved_model.pb").unlink()
    (registry.root / "m" / "notes").mkdir()
    assert 3 not in kept(prune(registry, "m", 1))
    assert names(registry) == ["3", "5", "notes"]


def test_numbers_rise_also_after_pruning_and_going_back(registry):
    rollback(registry, "m")
    prune(registry, "m", 1)
    assert names(registry) == ["6"]
    assert weights_of(registry) == 4
    # What was withdrawn is known without the version.
    with pytest.raises(publishing.Withdrawn):
        push_model(registry.root, 5)
    assert push_model(registry.root, 7) == (7, True)


def test_an_unknown_model_is_told(registry):
    with pytest.raises(UserError, match="there is no model 'n'"):
        prune(registry, "n", 1)


def test_pruning_and_pushes_side_by_side(registry):
    """Every push gets its version, and at every moment there is a whole one to serve."""
    folder, seen, done = registry.root / "m", [], threading.Event()

    def push_some(first):
        for weights in range(first, first + 10):
            seen.append(push_model(registry.root, weights)[0])

    def look():
        while not done.is_set():
            newest = max(versions_in(folder).items())[1]
            # It may be superseded and pruned between the two looks, and is gone as a whole then.
            empty.append(not (newest / "regard.json").is_file() and newest.exists())

    empty: list[bool] = []
    pushing = [threading.Thread(target=push_some, args=(first,)) for first in (100, 200)]
    looking = threading.Thread(target=look)
    looking.start()
    for thread in pushing:
        thread.start()
    while any(thread.is_alive() for thread in pushing):
        prune(registry, "m", 1)
    for thread in pushing:
        thread.join()
    done.set()
    looking.join()
    assert sorted(seen) == list(range(6, 26))
    assert set(empty) == {False}
    prune(registry, "m", 1)
    assert names(registry) == ["25"]
