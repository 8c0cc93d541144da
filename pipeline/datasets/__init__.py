"""Data sets by name: generated, or downloaded from where they are published.

Modules are imported when a data set is needed, so that listing them is fast.
"""

import importlib
from collections.abc import Callable

from regard.core.errors import NotFoundError
from regard.core.suggestions import suggest

__all__ = ["DATASETS", "writer"]

# The command of ``regard data`` and the function of each data set.
DATASETS = {
    "copying": ("generate", "copying:generate"),
    "hull": ("generate", "point_sets:hull"),
    "multi30k": ("fetch", "fetch:fetch_multi30k"),
    "quickstart": ("generate", "quickstart:generate"),
    "scenes": ("generate", "scenes:generate"),
    "sorting": ("generate", "point_sets:sorting"),
    "stories": ("generate", "stories:generate"),
    "tours": ("generate", "point_sets:tours"),
}


def writer(command: str, name: str) -> Callable[..., dict[str, int]]:
    """Return the function that generates or downloads a data set.

    Args:
        command: ``generate`` for a function ``(directory, rows=, seed=, progress=)``, or ``fetch``
            for ``(directory, progress=)``; both return the number of rows of each split.
        name: the data set.

    Raises:
        UserError: the command cannot write a data set of this name.
    """
    known, function = DATASETS.get(name, (None, ""))
    if known == command:
        module, _, attribute = function.partition(":")
        loaded: Callable[..., dict[str, int]] = getattr(
            importlib.import_module(f"{__name__}.{module}"), attribute
        )
        return loaded
    choices = [name for name, (other, _) in DATASETS.items() if other == command]
    remedy = f"{suggest(name, choices)}."
    if known:
        remedy = f"Use `regard data {known} {name}`."
    raise NotFoundError(f"There is no data set {name!r} to {command}.", remedy=remedy)
