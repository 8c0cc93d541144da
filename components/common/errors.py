"""The errors of users, by the name that all import, and errors that pass between processes."""

import pickle

from regard.models.errors import UserError

__all__ = ["UserError", "pickle_error"]


def pickle_error(error: Exception) -> bytes:
    """Pickle an error, or its type and message if it cannot be unpickled."""
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return content
