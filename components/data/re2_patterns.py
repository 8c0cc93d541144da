"""Patterns in the syntax of RE2, which runs in the graph of a model."""

# Texts in which a pattern that can match the empty text does so at the first place.
_PROBES = ("", "a", "aa", " ", "a ", " a", "1", "-", "\n")


def pattern_error(pattern: str) -> str | None:
    """Return why a pattern cannot find spans of a text; None if it can.

    Args:
        pattern: in RE2 syntax.
    """
    import pyarrow as pa  # 0.2 s, only for configurations with patterns
    import pyarrow.compute as pc

    try:
        # RE2 names the first group that a name begins with.
        matches = pc.extract_regex(pa.array(_PROBES), f"(?P<span>{pattern})")
    except (pa.ArrowException, ValueError) as error:
        return f"is no RE2 pattern: {str(error).removeprefix('Invalid regular expression: ')}"
    if any(match is not None and match["span"] == "" for match in matches.to_pylist()):
        return "matches the empty text; it must match at least one character"
    return None
