"""The database of a pipeline's metadata is restored from its copy."""

import sqlite3

import pytest

from regard.core.errors import UserError
from regard.pipeline import metadata_file


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "metadata.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table facts (number)")
        database.executemany("insert into facts values (?)", [(i,) for i in range(10_000)])
    return path


def count(path):
    with sqlite3.connect(path) as database:
        return database.execute("select count(*) from facts").fetchone()[0]


def damages(path):
    content = path.read_bytes()
    half = len(content) // 2
    return [
        content[:half],
        b"damaged",
        b"",
        content[:half] + b"\xff" * 5000 + content[half + 5000 :],
        content.replace(b"(number)", b"(lumber)"),  # one bit
        content.replace(b"facts", b"fact\xf3"),  # one bit
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_damaged_database_is_replaced_by_its_copy(path, number):
    metadata_file.store_copy(path)
    damaged = damages(path)[number]
    path.write_bytes(damaged)
    metadata_file.check(path)
    assert count(path) == 10_000
    assert path.with_name("metadata.sqlite.damaged").read_bytes() == damaged


def leave_journal(path):
    """Copy the database in the middle of a transaction, with its journal."""
    with sqlite3.connect(path) as database:
        database.execute("pragma cache_size = 1")  # so that changed pages are written
        database.execute("update facts set number = -1")
        journal = path.with_name("metadata.sqlite-journal")
        files = {file: file.read_bytes() for file in (path, journal)}
        database.rollback()
    for file, content in files.items():
        file.write_bytes(content)
    return journal


def numbers(path):
    with sqlite3.connect(path) as database:
        return [row[0] for row in database.execute("select number from facts")]


def test_a_journal_is_rolled_back_first(path):
    metadata_file.store_copy(path)
    journal = leave_journal(path)
    metadata_file.check(path)
    assert not journal.exists()
    assert numbers(path) == list(range(10_000))
    assert list(path.parent.glob("*.damaged*")) == []


def test_a_journal_does_not_change_the_restored_copy(path):
    metadata_file.store_copy(path)
    journal = leave_journal(path)
    for number, damaged in enumerate(damages(path)):
        path.write_bytes(damaged)
        journal.write_bytes(b"damaged" if number else journal.read_bytes())
        metadata_file.check(path)
        assert not journal.exists()
        assert numbers(path) == list(range(10_000))


def test_without_an_intact_copy_it_is_an_error(path):
    copy = path.with_name("metadata.sqlite.copy")
    damaged = damages(path)[0]
    path.write_bytes(damaged)
    for content in (None, b"damaged"):
        if content:
            copy.write_bytes(content)
        with pytest.raises(UserError) as caught:
            metadata_file.check(path)
        assert caught.value.where == str(path)
    assert path.read_bytes() == damaged


def test_an_intact_empty_or_missing_database_stays(path, tmp_path):
    metadata_file.store_copy(path)
    with sqlite3.connect(path) as database:
        database.execute("insert into facts values (0)")
    metadata_file.check(path)
    assert count(path) == 10_001
    metadata_file.check(tmp_path / "none")
    (tmp_path / "empty").touch()
    metadata_file.check(tmp_path / "empty")
    assert list(tmp_path.glob("*.damaged")) == []


def test_executions_of_a_database_that_cannot_be_used(path, tmp_path):
    assert metadata_file.needed_executions(tmp_path / "none", ["run"]) is None
    assert metadata_file.keep_executions(path, None) == 0
    for use in (metadata_file.needed_executions, metadata_file.keep_executions):
        with pytest.raises(UserError, match="no such table") as caught:
            use(path, [])
        assert caught.value.where == str(path)
