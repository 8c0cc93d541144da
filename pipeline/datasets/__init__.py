"""Data sets by name: generated, or downloaded from where they are published.

Modules are imported when a data set is needed, so that listing them is fast.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from regard.components.common.errors import UserError
from regard.models.suggestions import did_you_mean
from regard.pipeline.datasets.dataset_files import Dataset, Progress

GENERATORS = {
    "copying": "regard.pipeline.datasets.copying:generate",
    "hull": "regard.pipeline.datasets.point_sets:hull",
    "quickstart": "regard.pipeline.datasets.quickstart:generate",
    "scenes": "regard.pipeline.datasets.scenes:generate",
    "sorting": "regard.pipeline.datasets.point_sets:sorting",
    "tours": "regard.pipeline.datasets.point_sets:tours",
}
FETCHERS = {"multi30k": "regard.pipeline.datasets.fetch:fetch_multi30k"}

__all__ = ["FETCHERS", "GENERATORS", "Dataset", "Progress", "fetcher", "generator", "verb"]


def verb(name: str) -> str | None:
    """Return the command of ``regard data`` for a data set; None if the name is unknown."""
    return "generate" if name in GENERATORS else "fetch" if name in FETCHERS else None


def generator(name: str) -> Callable[..., Dataset]:
    """Return the function ``(directory, rows=, seed=, ...) -> Dataset`` that generates a data set.

    Raises:
        UserError: no generator has this name.
    """
    return _load(name, "generate", GENERATORS)


def fetcher(name: str) -> Callable[..., Dataset]:
    """Return the function ``(directory, ...) -> Dataset`` that downloads a data set.

    Raises:
        UserError: no download has this name.
    """
    return _load(name, "fetch", FETCHERS)


def _load(name: str, command: str, table: dict[str, str]) -> Callable[..., Dataset]:
    if name not in table:
        other = verb(name)
        if other:
            remedy = f"Use `regard data {other} {name}`."
        else:
            remedy = f"{did_you_mean(name, table)}Choose one of: {', '.join(sorted(table))}."
        raise UserError(f"There is no data set {name!r} to {command}.", remedy=remedy)
    module, function = table[name].split(":")
    loaded: Callable[..., Dataset] = getattr(importlib.import_module(module), function)
    return loaded
