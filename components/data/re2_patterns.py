"""Patterns in the syntax of RE2, which runs in the graph of a model."""

import itertools

# What RE2 distinguishes around an empty match: the ends of a text or line, letters, and others.
_NEIGHBOURS = ("", "a", "-", "\n")


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern cannot find spans of a text; None if it can.

    Args:
        pattern: in RE2 syntax.
    """
    import pyarrow as pa  # 0.2 s, only for configurations with patterns
    import pyarrow.compute as pc

    def matches(text: str, expression: str) -> bool:
        return bool(pc.match_substring_regex(pa.array([text]), expression)[0].as_py())

    try:
        matches("", pattern)
    except (pa.ArrowException, ValueError) as error:
        return f"is no RE2 pattern: {str(error).removeprefix('Invalid regular expression: ')}"
    for left, right in itertools.product(_NEIGHBOURS, repeat=2):
        if matches(left + right, rf"\A{left}(?:{pattern}){right}\z"):
            return "matches the empty text; it must match at least one character"
    return None
