"""Beam's pipeline options as Beam's own parsers know them; imports Beam."""

from __future__ import annotations

import argparse
import difflib
import functools
from collections.abc import Sequence
from typing import Any, NoReturn

_SHOWN = 5


class Unknown(Exception):
    """Beam has no such option; ``near`` are those whose names are most like it."""

    def __init__(self, near: list[str]):
        super().__init__(near)
        self.near = near


class Refused(Exception):
    """Beam has the option, but not this value of it."""


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        raise Refused(message.partition(": ")[2] or message)


def check(name: str, arguments: Sequence[str]) -> None:
    """Lets Beam's parsers read an option, which by themselves pass over what they do not know.

    Args:
        name: of the option.
        arguments: it with its value, as often as it is given.

    Raises:
        Unknown: there is no option of this name.
        Refused: it does not take such a value.
    """
    parser, names = _parser()
    if name not in names:
        raise Unknown(difflib.get_close_matches(name, names, _SHOWN, cutoff=0.5))
    parser.parse_known_args(arguments)


@functools.cache
def _parser() -> tuple[argparse.ArgumentParser, frozenset[str]]:
    """A parser of all of Beam's options, and their names."""
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = _Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    names: set[str] = set()
    add = parser.add_argument

    def noting(*flags: str, **given: Any) -> argparse.Action:
        names.update(flag.removeprefix("--") for flag in flags)
        return add(*flags, **given)

    parser.add_argument = noting  # type: ignore[method-assign]
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)  # what Beam asks every class of options to have
    return parser, frozenset(names)
