"""Rollbacks: the served model, its record, and withdrawn models."""

import shutil

import pytest

from regard.components.registry import publish
from regard.components.registry.prune import pin
from regard.components.registry.publish import WithdrawnModelError
from regard.components.registry.records import WithdrawnModel, read_record
from regard.components.registry.rollback import rollback
from regard.components.registry.store import is_pinned
from regard.core.errors import UserError
from regard.serving.content_digest import content_digest
from regard.serving.server.model_config import VersionPolicy
from regard.serving.server.versions import list_versions
from tests.components.registry.models import push_model, push_models, weights_of


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 3, compared_with="9")


def go_back(*arguments, **options):
    """Roll back, and return the new version, the one of its model and the one it replaces."""
    record = rollback(*arguments, **options)
    return record.version, record.rollback_of, record.rolled_back_from


def served(registry):
    """Return the versions that a server loads from the folder."""
    return VersionPolicy().select(list(list_versions(registry.root / "m")))


def test_the_previous_version_is_published_again(registry):
    folder = registry.root / "m"
    old = read_record(folder / "2")
    assert go_back(registry, "m", reason="wrong amounts") == (4, 2, 3)
    assert served(registry) == [4]
    assert weights_of(registry) == 2
    assert content_digest(folder / "4") == content_digest(folder / "2")
    record = read_record(folder / "4")
    assert (record.version, record.rollback_of, record.rolled_back_from) == (4, 2, 3)
    assert record.reason == "wrong amounts"
    # The lineage is that of the model.
    for key in ("run", "recipe", "compared_with", "digest", "code"):
        assert getattr(record, key) == getattr(old, key)
    assert read_record(folder / "2") == old  # published versions do not change
    assert weights_of(registry, 3) == 3


def test_rollback_to_a_given_version(registry):
    assert go_back(registry, "m", 1) == (4, 1, 3)
    assert weights_of(registry) == 1


def test_repeated_rollback_skips_withdrawn_versions(registry):
    rollback(registry, "m")
    assert go_back(registry, "m") == (5, 1, 4)
    with pytest.raises(UserError, match="no version to go back to before m@5"):
        rollback(registry, "m")
    assert push_model(registry.root, 6) == (6, True)
    assert go_back(registry, "m") == (7, 1, 6)


def test_rollback_after_a_new_push(registry):
    rollback(registry, "m")
    push_model(registry.root, 5)
    assert go_back(registry, "m") == (6, 2, 5)


def test_a_withdrawn_model_is_not_pushed_again(registry):
    rollback(registry, "m")
    with pytest.raises(WithdrawnModelError) as caught:
        push_model(registry.root, 3)
    assert caught.value.version == 3
    push_model(registry.root, 5)  # another model is pushed
    with pytest.raises(WithdrawnModelError):
        push_model(registry.root, 3)
    assert registry.versions("m") == [1, 2, 3, 4, 5]
    assert len(list((registry.root / "m").iterdir())) == 5


def test_a_withdrawn_version_can_be_restored(registry):
    rollback(registry, "m")
    assert go_back(registry, "m", 3) == (5, 3, 4)
    assert weights_of(registry) == 3
    assert read_record(registry.path("m", 5)).withdrawn == [
        WithdrawnModel(version=2, digest=read_record(registry.path("m", 2)).digest)
    ]
    assert push_model(registry.root, 3) == (5, False)


def test_a_rollback_does_not_inherit_an_earlier_reason(registry):
    rollback(registry, "m", 2, reason="first")
    rollback(registry, "m", 3)
    rollback(registry, "m", 4)
    record = read_record(registry.path("m", 6))
    assert (record.rollback_of, record.rolled_back_from) == (2, 5)
    assert not record.reason


def test_warm_up_requests_are_copied_and_pins_are_not(registry):
    extra = registry.path("m", 2) / "assets.extra" / "tf_serving_warmup_requests"
    extra.parent.mkdir()
    extra.write_bytes(b"requests")
    pin(registry, "m", 2)
    rollback(registry, "m")
    new = registry.path("m", 4)
    assert (new / "assets.extra" / extra.name).read_bytes() == b"requests"
    assert not is_pinned(new)


def test_rollback_to_a_version_without_a_record(registry):
    (registry.path("m", 2) / "regard.json").unlink()
    assert rollback(registry, "m").rollback_of == 2
    record = read_record(registry.path("m", 4))
    assert record.digest == content_digest(registry.path("m", 2))
    assert (record.name, record.rollback_of) == ("m", 2)


@pytest.mark.parametrize("broken", ["emptied", "gone", "without variables"])
def test_a_modified_model_is_not_published(registry, broken):
    (weights,) = (registry.path("m", 2) / "variables").iterdir()
    if broken == "emptied":
        weights.write_bytes(b"")
    else:
        shutil.rmtree(weights.parent) if broken == "gone" else weights.unlink()
    with pytest.raises(UserError, match="files of m@2 have changed") as caught:
        rollback(registry, "m")
    assert caught.value.where == str(registry.path("m", 2))
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("n", None, "There is no model 'n'"),
        ("m", 7, "has no version '7'"),
        ("m", 3, "The model of m@3 is live already, as m@3"),
    ],
)
def test_an_impossible_rollback_changes_nothing(registry, name, version, message):
    with pytest.raises(UserError, match=message):
        rollback(registry, name, version)
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3"]


def test_rollback_to_the_live_model_is_an_error(registry):
    rollback(registry, "m")
    with pytest.raises(UserError, match="m@2 is live already, as m@4"):
        rollback(registry, "m", 2)


def test_a_concurrent_push_is_not_replaced(registry, monkeypatch):
    real = publish.shutil.copyfile

    def push_first(source, target):
        monkeypatch.setattr(publish.shutil, "copyfile", real)
        push_model(registry.root, 4)
        return real(source, target)

    monkeypatch.setattr(publish.shutil, "copyfile", push_first)
    with pytest.raises(UserError, match="m@4 was published while m@3 was being replaced"):
        rollback(registry, "m")
    assert weights_of(registry) == 4
    assert sorted(path.name for path in (registry.root / "m").iterdir()) == ["1", "2", "3", "4"]
