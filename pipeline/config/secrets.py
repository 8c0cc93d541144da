"""Which keys of a YAML file have secrets as values, by their names."""

from regard.models.settings.base import KeyPath

_NAMES = {"password"}


def is_secret(path: KeyPath) -> bool:
    """Return whether a key, or one around it, has a secret, which the file must not contain.

    Args:
        path: The path of the key. Its parts may be keys with dots.
    """
    return any(str(part).rpartition(".")[2] in _NAMES for part in path)
