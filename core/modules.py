"""Modules of the user's own: where they are found, and the objects in them."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.suggestions import suggest

# How a file names an object of a module.
REFERENCE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def module_of(reference: str) -> str:
    """Return the module of ``MODULE:NAME``."""
    return reference.partition(":")[0]


def add_folder(folder: str | None) -> None:
    """Make the modules of a folder importable in this process and in its children.

    Installed packages come first in this process.

    Args:
        folder: The folder; None: nothing is added.
    """
    if folder is None or folder in sys.path:
        return
    sys.path.append(folder)
    paths = [os.environ.get("PYTHONPATH", ""), folder]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


@contextlib.contextmanager
def importable(folder: str | None) -> Iterator[None]:
    """Make the modules of a folder importable in a block; None: no folder."""
    if folder is None or folder in sys.path:
        yield
        return
    sys.path.append(folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)


def is_missing(module: str) -> bool:
    """Return whether the top-level package of a module is neither importable nor imported."""
    name = module.partition(".")[0]
    return name not in sys.modules and importlib.util.find_spec(name) is None


def load_object(reference: str, folder: str | None = None) -> Any:
    """Return the object that ``MODULE:NAME`` refers to.

    Args:
        reference: The module and the name.
        folder: A folder on the path. If it has the module, the object must come from it.

    Raises:
        UserError: The module cannot be imported, or has no such name. It does not say where.
    """
    module, _, name = reference.partition(":")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{module} cannot be imported: {error}") from error
        place = f" in {folder}" if folder is not None else ""
        message = f"there is no module {error.name}{place}, nor among the installed packages"
        raise UserError(message) from None
    except (Exception, SystemExit) as error:
        raise UserError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    _check_folder(module, folder)
    if not hasattr(loaded, name):
        names = [choice for choice in vars(loaded) if not choice.startswith("_")]
        raise UserError(f"{module} has no {name!r}. {suggest(name, names)}")
    return getattr(loaded, name)


def _check_folder(module: str, folder: str | None) -> None:
    """Refuse a module that hides one of the same name in the folder."""
    name = module.partition(".")[0]
    spec = PathFinder.find_spec(name, [folder]) if folder is not None else None
    if spec is None or spec.origin is None:
        return
    origin = getattr(sys.modules[name], "__file__", None)
    if origin is None or Path(origin).resolve() != Path(spec.origin).resolve():
        message = f"another module {name}, {origin}, hides {spec.origin}; rename one of them, or "
        raise UserError(f"{message}use another process if both are yours")
