"""Production goes back: which model is served, what is told of it, and what does not come again."""

from __future__ import annotations

import shutil
import threading
import time

import pytest

from components.errors import UserError
from components.registry import publishing, read_record
from components.registry.pins import is_pinned, pin
from components.registry.publishing import Withdrawn, content_digest, locked
from components.registry.rollback import RolledBack, rollback
from serving.local.model_config import Policy
from serving.local.versions import versions_in
from tests.components.registry.models import push_model, push_models, weights_of


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 3, compared_with="9")


def served(registry):
    """What a server takes that watches the folder."""
    return Policy().choose(list(versions_in(registry.root / "m")))


def test_the_version_before_is_published_again(registry):
    folder = registry.root / "m"
    old = read_record(folder / "2")
    assert rollback(registry, "m", reason="wrong amounts") == RolledBack(4, 2, 3)
    assert served(registry) == [4]
    assert weights_of(registry) == 2
    assert content_digest(folder / "4") == content_digest(folder / "2")
    record = read_record(folder / "4")
    assert (record["version"], record["rollback_of"], record["rolled_back_from"]) == (4, 2, 3)
    assert record["reason"] == "wrong amounts"
    # The lineage is the model's: its run, its recipe, what it was compared with.
    for key in ("run", "recipe", "compared_with", "digest", "code"):
        assert record[key] == old[key]
    assert read_record(folder / "2") == old  # what is there does not change
    assert weights_of(registry, 3) == 3


def test_a_named_version_however_old(registry):
    assert rollback(registry, "m", 1) == RolledBack(4, 1, 3)
    assert weights_of(registry) == 1


def test_going_back_again_goes_further_back_and_never_to_what_was_withdrawn(registry):
    rollback(registry, "m")
    assert rollback(registry, "m") == RolledBack(5, 1, 4)
    with pytest.raises(UserError, match="no version to go back to before m@5"):
        rollback(registry, "m")
    assert push_model(registry.root, 6) == (6, True)
    assert rollback(registry, "m") == RolledBack(7, 1, 6)


def test_after_a_new_push_it_goes_back_to_what_was_live_before(registry):
    rollback(registry, "m")
    push_model(registry.root, 5)
    assert rollback(registry, "m") == RolledBack(6, 2, 5)


def test_a_model_that_was_withdrawn_is_not_pushed_again(registry):
    rollback(registry, "m")
    with pytest.raises(Withdrawn) as caught:
        push_model(registry.root, 3)
    assert caught.value.version == 3
    push_model(registry.root, 5)  # another one is
    with pytest.raises(Withdrawn):
        push_model(registry.root, 3)
    assert registry.versions("m") == [1, 2, 3, 4, 5]
    assert len(list((registry.root / "m").iterdir())) == 5


def test_what_is_named_is_brought_back(registry):
    rollback(registry, "m")
    assert rollback(registry, "m", 3) == RolledBack(5, 3, 4)
    assert weights_of(registry) == 3
    assert read_record(registry.path("m", 5))["withdrawn"] == [
        {"version": 2, "digest": read_record(registry.path("m", 2))["digest"]}
    ]
    assert push_model(registry.root, 3) == (5, False)


def test_a_rollback_does_not_inherit_what_another_one_was_for(registry):
    rollback(registry, "m", 2, reason="first")
    rollback(registry, "m", 3)
    rollback(registry, "m", 4)
    record = read_record(registry.path("m", 6))
    assert (record["rollback_of"], record["rolled_back_from"]) == (2, 5)
    assert "reason" not in record


def test_neither_pin_nor_warm_up_are_lost_or_copied_wrongly(registry):
    extra = registry.path("m", 2) / "assets.extra" / "tf_serving_warmup_requests"
    extra.parent.mkdir()
    extra.write_bytes(b"requests")
    pin(registry, "m", 2)
    rollback(registry, "m")
    new = registry.path("m", 4)
    assert (new / "assets.extra" / extra.name).read_bytes() == b"requests"
    assert not is_pinned(new)


def test_a_version_of_other_hands_without_a_record(registry):
    (registry.path("m", 2) / "regard.json").unlink()
    assert rollback(registry, "m").of == 2
    record = read_record(registry.path("m", 4))
    assert record["digest"] == content_digest(registry.path("m", 2))
    assert (record["name"], record["rollback_of"]) == ("m", 2)


def test_a_folder_that_is_a_link_is_followed(registry, tmp_path):
    variables = registry.path("m", 2) / "variables"
    variables.rename(tmp_path / "elsewhere")
    variables.symlink_to(tmp_path / "elsewhere")
    rollback(registry, "m")
    assert weights_of(registry) == 2


@pytest.mark.parametrize("broken", ["emptied", "gone", "without variables"])
def test_a_model_that_is_no_longer_what_was_pushed_is_not_published(registry, broken):
    (weights,) = (registry.path("m", 2) / "variables").iterdir()
    if broken == "emptied":
        weights.write_bytes(b"")
    else:
        shutil.rmtree(weights.parent) if broken == "gone" else weights.unlink()
    with pytest.raises(UserError, match="m@2 is no longer what was pushed") as caught:
        rollback(registry, "m")
    assert caught.value.where == str(registry.path("m", 2))
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "version", "told"),
    [
        ("n", None, "there is no model 'n'"),
        ("m", 7, "has no version '7'"),
        ("m", 3, "the model of m@3 is live already, as m@3"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(registry, name, version, told):
    with pytest.raises(UserError, match=told):
        rollback(registry, name, version)
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3"]


def test_the_model_that_is_live_under_another_number(registry):
    rollback(registry, "m")
    with pytest.raises(UserError, match="m@2 is live already, as m@4"):
        rollback(registry, "m", 2)


def test_a_push_in_between_is_not_silently_replaced(registry, monkeypatch):
    real = publishing.shutil.copyfile

    def push_first(source, target):
        monkeypatch.setattr(publishing.shutil, "copyfile", real)
        push_model(registry.root, 4)
        return real(source, target)

    monkeypatch.setattr(publishing.shutil, "copyfile", push_first)
    with pytest.raises(UserError, match="m@4 was published while m@3 was being replaced"):
        rollback(registry, "m")
    assert weights_of(registry) == 4
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3", "4"]


def test_two_people_at_once_go_back_one_step(registry):
    done, refused = [], []

    def go_back():
        try:
            done.append(rollback(registry, "m"))
        except UserError as error:
            refused.append(error.message)

    folder = registry.root / "m"
    people = [threading.Thread(target=go_back) for _ in range(2)]
    with locked(folder):
        for thread in people:
            thread.start()
        time.sleep(0.2)  # both have seen what is live, and wait
    for thread in people:
        thread.join()
    assert done == [RolledBack(4, 2, 3)]
    assert refused == ["m@4 was published while m@3 was being replaced"]


def test_a_version_that_is_pruned_while_it_waits_is_not_published_empty(registry):
    refused = []

    def go_back():
        with pytest.raises(UserError) as caught:
            rollback(registry, "m", 1)
        refused.append(caught.value.message)

    person = threading.Thread(target=go_back)
    with locked(registry.root / "m"):
        person.start()
        time.sleep(0.2)
        shutil.rmtree(registry.path("m", 1))
    person.join()
    assert refused == ["model 'm' has no version '1'"]
    assert registry.versions("m") == [2, 3]
