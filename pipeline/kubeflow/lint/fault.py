"""One thing that is wrong in a pipeline's file, by its keys."""

from __future__ import annotations

import dataclasses

# What comes of it: an error before the run, nothing at all, or an error while it runs.
REFUSED, IGNORED, FAILS = "refused", "ignored", "fails"


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong: the rule, where, what, and what to do about it."""

    rule: str
    path: tuple[str | int, ...]
    message: str
    remedy: str
    effect: str = REFUSED
