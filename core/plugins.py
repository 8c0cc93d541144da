"""Scores, alignments, tasks and metrics of other packages, registered as entry points."""

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any, TypeVar

from regard.core.errors import EnvironmentFault, UserError

T = TypeVar("T")
_GROUPS = ("regard.scores", "regard.alignments", "regard.tasks", "regard.metrics")


class PluginTable(Mapping[str, T]):
    """Choices by name: the project's own, and those of other packages.

    Entry points are read only for names that are not the project's own, and loaded when used.

    Args:
        group: the group of the entry points, for example ``regard.metrics``.
        choices: the project's own; a text, ``module:name``, is imported when it is used.
        kind: the class of all choices, or their base class if the choices are classes.
        implementations: whether to return what the attribute ``implementation`` of an entry
            point's object names.
    """

    def __init__(
        self,
        group: str,
        choices: Mapping[str, Any],
        kind: type[Any],
        implementations: bool = False,
    ):
        self.group, self.own, self._kind = group, choices, kind
        self._implementations = implementations

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            value = self.own[name]
            return resolve_name(value) if isinstance(value, str) else value
        with self._blaming_the_package(name):
            value = self._points()[name].load()
            value = resolve_name(value.implementation) if self._implementations else value
            if not issubclass(value if isinstance(value, type) else type(value), self._kind):
                raise TypeError(f"it is no {self._kind.__name__}")
        return value

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self._points()])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def plugins(self) -> list[T]:
        """Return the choices of other packages."""
        return [self[name] for name in self._points()]

    def module(self, name: str) -> str:
        """Return the module that defines a choice."""
        if name in self.own:
            return self.own[name].partition(":")[0]
        return self._points()[name].module

    def resolve(self, name: str, reference: str) -> Any:
        """Return the object ``module:name`` that a choice refers to."""
        with self._blaming_the_package(name):
            return resolve_name(reference)

    @contextlib.contextmanager
    def _blaming_the_package(self, name: str) -> Iterator[None]:
        """Turn any error of a choice of another package into one that names the package."""
        try:
            yield
        except (Exception, SystemExit) as error:
            if name in self.own or name not in self._points():
                raise
            raise _error(self._points()[name], f"{type(error).__name__}: {error}") from error

    def _points(self) -> dict[str, EntryPoint]:
        points: dict[str, EntryPoint] = {}
        for point in find_points(self.group):
            if point.name in self.own or point.name in points:
                raise _error(point, "the name is already taken")
            points[point.name] = point
        return points


def find_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group in the packages on ``sys.path``.

    A search takes 15 ms, and a run needs the same ones many times: it is repeated only when
    ``sys.path`` changes.
    """
    return _search(tuple(sys.path), group)


@functools.cache
def _search(path: tuple[str, ...], group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def plugin_modules(*settings: str) -> list[str]:
    """Return the modules of all entry points whose names are values in JSON settings."""
    content = "\n".join(settings)
    modules = []
    for group in _GROUPS:
        for point in find_points(group):
            if f'"{point.name}"' in content:
                modules.append(point.module)
    return modules


def _error(point: EntryPoint, reason: str) -> UserError:
    package = point.dist.name if point.dist else "unknown"
    message = f"{point.value!r}, the entry point {point.name!r} of the package {package} in "
    message += f"{point.group}, cannot be used: {reason}."
    return EnvironmentFault(message, package, f"Update or uninstall {package}.")
