from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import UserError
from components.predictor import parts
from components.predictor.parts import Told, WorkerError
from serving.saved_model import SavedModelError, SourceRefused

TOLD = Told(2, 0.5, "a", 1.25, "CPU", 1, 7)


def table(*rows: int) -> pa.Table:
    return pa.table({"row": list(rows)})


def test_what_is_told_of_parts_comes_back(tmp_path):
    assert parts.done(tmp_path, {}) == {}
    parts.write(tmp_path, 12, table(4, 3), TOLD)
    (tmp_path / ".00000013.parquet.aaaa.tmp").write_bytes(b"half")
    assert parts.done(tmp_path, {}) == {12: TOLD}
    assert pq.read_table(parts.path(tmp_path, 12)).to_pydict() == {"row": [4, 3]}


def test_what_is_known_is_not_read_again(tmp_path):
    parts.write(tmp_path, 1, table(0), TOLD)
    known = parts.done(tmp_path, {})
    parts.path(tmp_path, 1).write_bytes(b"unreadable")
    parts.write(tmp_path, 0, table(1), TOLD)
    assert parts.done(tmp_path, known) == {0: TOLD, 1: TOLD}


def test_a_batch_that_is_answered_twice_counts_once(tmp_path):
    for _ in range(2):
        parts.write(tmp_path, 3, table(1, 2), TOLD)
    assert list(parts.done(tmp_path, {})) == [3]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UserError("wrong", "a.yaml:3", "Mend it."), UserError, "a.yaml:3: wrong\nMend it."),
        (SavedModelError("no model"), SavedModelError, "no model"),
        (SourceRefused("a source has more"), SourceRefused, "a source has more"),
        (KeyError("x"), WorkerError, "KeyError: 'x'"),
    ],
)
def test_errors_are_handed_on(tmp_path, error, kind, text):
    with pytest.raises(type(error)), parts.failing(tmp_path):
        raise error
    found = parts.failure(tmp_path)
    assert type(found) is kind
    assert str(found) == text


def test_where_nothing_fails_there_is_no_word_of_it(tmp_path):
    with parts.failing(tmp_path):
        pass
    assert parts.failure(tmp_path) is None
