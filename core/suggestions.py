"""Suggestions for wrong names."""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

_MAX_CHOICES = 12  # all of them; of more, the closest ones
_MAX_CLOSEST = 5
_NONE: Mapping[str, str] = MappingProxyType({})


def closest_matches(
    name: object,
    choices: Iterable[str],
    n: int = 1,
    cutoff: float = 0.6,
    synonyms: Mapping[str, str] = _NONE,
) -> list[str]:
    """Return the choices that a name may stand for: synonyms, then those that are spelt like it.

    Args:
        name: The wrong name; case does not matter.
        choices: The valid names.
        n: The maximum number of matches.
        cutoff: The minimum similarity, from 0 to 1.
        synonyms: Names by wrong ones in small letters, which are not similar to them.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    word = str(name).lower()
    near = [synonyms[word]] if synonyms.get(word) in by_lower else []
    near += difflib.get_close_matches(word, by_lower, n, cutoff)
    return [by_lower[name] for name in dict.fromkeys(near)][:n]


def did_you_mean(
    name: object, choices: Iterable[str], n: int = 1, synonyms: Mapping[str, str] = _NONE
) -> str:
    """Return ``Did you mean X? `` with a trailing space, or an empty text without a close match."""
    matches = closest_matches(name, choices, n, synonyms=synonyms)
    return f"Did you mean {' or '.join(matches)}? " if matches else ""


def suggest(name: object, choices: Iterable[str], synonyms: Mapping[str, str] = _NONE) -> str:
    """Return a suggestion for a wrong name, and all choices; of over twelve, the closest."""
    names = list(choices)
    closest = closest_matches(name, names, _MAX_CLOSEST, cutoff=0.0, synonyms=synonyms)
    suggestion = did_you_mean(name, names, synonyms=synonyms)
    if len(names) <= _MAX_CHOICES:
        return f"{suggestion}Choices: {', '.join(names)}"
    visible = [choice for choice in names if choice in closest]
    rest = len(names) - len(visible)
    return f"{suggestion}Choices: {', '.join(visible)} and {rest} more"
