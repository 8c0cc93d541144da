"""The number that a version gets, and what its content is."""

from __future__ import annotations

import threading

import pytest

from components.errors import UserError
from components.registry.pruning import prune
from components.registry.publishing import (
    content_digest,
    copy,
    publish,
    remove_leftovers,
    workplace,
)
from tests.components.registry.models import make_model, push_model, push_models


@pytest.mark.parametrize(
    ("there", "number"),
    [("0", 3), ("7", 8), ("0007", 8), ("notes", 3), (str(2**63), 3), ("9" * 200, 3)],
)
def test_the_next_number_is_higher_than_any_that_a_server_would_take(tmp_path, there, number):
    registry = push_models(tmp_path / "registry", 2)
    (registry.root / "m" / there).mkdir()
    assert push_model(registry.root, 5) == (number, True)
    assert registry.latest("m") == number


def test_after_the_highest_number_there_is_none(tmp_path):
    registry = push_models(tmp_path / "registry", 1)
    (registry.root / "m" / str(2**63 - 1)).mkdir()
    with pytest.raises(UserError, match="can count no further"):
        push_model(registry.root, 2)
    assert registry.versions("m") == [1]


def test_a_folder_behind_a_link_is_content_and_is_copied(tmp_path):
    model = make_model(tmp_path / "model", b"weights")
    digest = content_digest(model)
    (model / "variables").rename(tmp_path / "elsewhere")
    (model / "variables").symlink_to(tmp_path / "elsewhere")
    assert content_digest(model) == digest
    (tmp_path / "copy").mkdir()
    copy(model, tmp_path / "copy")
    assert content_digest(tmp_path / "copy") == digest
    assert not (tmp_path / "copy" / "variables").is_symlink()


def test_what_is_left_of_a_link_goes_too(tmp_path):
    model = make_model(tmp_path / "model", b"weights")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".removed-1-abc").symlink_to(model)
    remove_leftovers(tmp_path / "m")
    assert list((tmp_path / "m").iterdir()) == []
    assert content_digest(model)


def test_no_number_is_given_twice_where_versions_come_and_go_meanwhile(tmp_path):
    """One looks for the next number; another one pushes twice and prunes before it is taken."""
    registry = push_models(tmp_path / "registry", 1)
    folder, others = registry.root / "m", []

    def slow(newest):
        """What the others do now, they do before the number is taken, or after it."""
        if not others:
            others.append(threading.Thread(target=come_and_go))
            others[0].start()
            others[0].join(1.0)
        return {}

    def come_and_go():
        push_model(registry.root, 3)
        push_model(registry.root, 4)
        prune(registry, "m", 1)

    with workplace(folder) as work:
        copy(make_model(tmp_path / "model", b"2"), work)
        given = publish(folder, work, slow)
    others[0].join()
    assert given == 2
    assert registry.versions("m") == [4]
    assert push_model(registry.root, 5) == (5, True)
