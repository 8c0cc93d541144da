"""Which keys have secrets as values, by their names."""

from regard.models.settings.base import KeyPath

_NAMES = {"password"}
# The message about a literal secret.
LITERAL = 'must refer to an environment variable that is set, as "${MLMD_PASSWORD}" does'


def is_secret(path: KeyPath) -> bool:
    """Return whether a key, or one around it, has a secret, which no file or error must contain.

    Args:
        path: The path of the key. Its parts may be keys with dots.
    """
    return any(str(part).rpartition(".")[2] in _NAMES for part in path)
