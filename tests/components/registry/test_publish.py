"""Version numbers and content digests."""

from __future__ import annotations

import threading

import pytest

from regard.components.common.errors import UserError
from regard.components.registry import VersionRecord
from regard.components.registry.prune import prune
from regard.components.registry.publish import (
    content_digest,
    copy_model,
    publish,
    remove_leftovers,
    staging_folder,
)
from tests.components.registry.models import make_model, push_model, push_models


@pytest.mark.parametrize(
    ("existing", "number"),
    [("0", 3), ("7", 8), ("0007", 8), ("notes", 3), (str(2**63), 3), ("9" * 200, 3)],
)
def test_the_next_number_is_above_every_number_that_a_server_recognizes(tmp_path, existing, number):
    registry = push_models(tmp_path / "registry", 2)
    (registry.root / "m" / existing).mkdir()
    assert push_model(registry.root, 5) == (number, True)
    assert registry.latest("m") == number


def test_there_is_no_version_after_the_highest(tmp_path):
    registry = push_models(tmp_path / "registry", 1)
    (registry.root / "m" / str(2**63 - 1)).mkdir()
    with pytest.raises(UserError, match="do not support higher versions"):
        push_model(registry.root, 2)
    assert registry.versions("m") == [1]


def test_linked_folders_are_digested_and_copied(tmp_path):
    model = make_model(tmp_path / "model", b"weights")
    digest = content_digest(model)
    (model / "variables").rename(tmp_path / "elsewhere")
    (model / "variables").symlink_to(tmp_path / "elsewhere")
    assert content_digest(model) == digest
    (tmp_path / "copy").mkdir()
    copy_model(model, tmp_path / "copy")
    assert content_digest(tmp_path / "copy") == digest
    assert not (tmp_path / "copy" / "variables").is_symlink()


def test_leftover_links_are_removed(tmp_path):
    model = make_model(tmp_path / "model", b"weights")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".removed-1-abc").symlink_to(model)
    remove_leftovers(tmp_path / "m")
    assert list((tmp_path / "m").iterdir()) == []
    assert content_digest(model)


def test_concurrent_changes_never_reuse_a_number(tmp_path):
    """Another process pushes twice and prunes while the next number is being chosen."""
    registry = push_models(tmp_path / "registry", 1)
    folder, others = registry.root / "m", []

    def slow_record(newest):
        """Let other processes push and prune before the number is used."""
        if not others:
            others.append(threading.Thread(target=push_and_prune))
            others[0].start()
            others[0].join(1.0)
        return VersionRecord()

    def push_and_prune():
        push_model(registry.root, 3)
        push_model(registry.root, 4)
        prune(registry, "m", 1)

    with staging_folder(folder) as work:
        copy_model(make_model(tmp_path / "model", b"2"), work)
        version = publish(folder, work, slow_record).version
    others[0].join()
    assert version == 2
    assert registry.versions("m") == [4]
    assert push_model(registry.root, 5) == (5, True)
