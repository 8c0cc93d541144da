"""Errors that pass from one process to another."""

import errno
import pickle

import pytest

from regard.core.errors import UserError, pickle_error


@pytest.mark.parametrize(
    "error",
    [
        UserError("no row", "training.max_length", "Raise it."),
        FloatingPointError("the loss is nan at step 3"),
        OSError(errno.ENOSPC, "No space left on device", "/data"),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle_error(error))
    assert type(copy) is type(error)
    assert copy.args == error.args
    assert str(copy) == str(error)


class TwoArgumentError(Exception):
    """Can be pickled but not unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first}, {second}")


def test_errors_that_cannot_be_pickled_become_text():
    class LocalError(Exception):
        pass

    errors = (
        (LocalError("here"), "LocalError: here"),
        (TwoArgumentError(1, 2), "TwoArgumentError: 1, 2"),
    )
    for error, text in errors:
        copy = pickle.loads(pickle_error(error))
        assert type(copy) is RuntimeError
        assert str(copy) == text
