"""Data sets by name: some are generated here, some are fetched from where they are published.

Both kinds are looked up by name and imported only when asked for, so that listing them costs
nothing.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import Any

from components.errors import UserError
from pipeline.datasets.summary import Progress, Summary

GENERATORS = {
    "copying": "pipeline.datasets.copying:generate",
    "hull": "pipeline.datasets.points:hull",
    "quickstart": "pipeline.datasets.quickstart:generate",
    "scenes": "pipeline.datasets.scenes:generate",
    "sorting": "pipeline.datasets.points:sorting",
    "tours": "pipeline.datasets.points:tours",
}
FETCHERS = {"multi30k": "pipeline.datasets.fetch:fetch_multi30k"}

__all__ = ["FETCHERS", "GENERATORS", "Progress", "Summary", "fetcher", "generator", "verb"]


def verb(name: str) -> str | None:
    """What ``regard data`` does to bring a data set: ``generate``, ``fetch``; None: not known."""
    return "generate" if name in GENERATORS else "fetch" if name in FETCHERS else None


def generator(name: str) -> Callable[..., Summary]:
    """The function ``(directory, rows=, seed=, ...) -> Summary`` that makes the data set ``name``.

    Raises:
        UserError: there is no generator of that name.
    """
    return _load(GENERATORS, name, "generate", FETCHERS, "fetch")


def fetcher(name: str) -> Callable[..., Summary]:
    """The function ``(directory, ...) -> Summary`` that downloads the data set ``name``.

    Raises:
        UserError: there is no fetcher of that name.
    """
    return _load(FETCHERS, name, "fetch", GENERATORS, "generate")


def _load(table: dict[str, str], name: str, verb: str, other: dict[str, str], hint: str) -> Any:
    if name not in table:
        close = difflib.get_close_matches(name, table, n=1)
        if name in other:
            remedy = f"Use `regard data {hint} {name}`."
        elif close:
            remedy = f"Did you mean {close[0]!r}?"
        else:
            remedy = f"Choose one of: {', '.join(sorted(table))}."
        raise UserError(f"no data set {name!r} to {verb}", remedy=remedy)
    module, function = table[name].split(":")
    return getattr(importlib.import_module(module), function)
