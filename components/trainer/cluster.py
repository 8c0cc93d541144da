"""Which worker of a training this process is: the environment variable ``TF_CONFIG``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from components.errors import UserError

VARIABLE = "TF_CONFIG"
_EXAMPLE = '{"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, "task": {"type": "worker", '
_REMEDY = (
    f"Set it for every worker, each with its own index: TF_CONFIG='{_EXAMPLE}\"index\": 0}}}}'."
)


@dataclasses.dataclass(frozen=True)
class Place:
    """One worker among all.

    Attributes:
        addresses: ``HOST:PORT`` of every worker.
        index: which of them this process is; 0 is the chief.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def chief(self) -> bool:
        """Whether this worker runs the pipeline and writes what the training makes."""
        return self.index == 0


def place(environ: Mapping[str, str]) -> Place:
    """The place that ``TF_CONFIG`` gives this process.

    Raises:
        UserError: it is not set, or does not describe workers alone.
    """
    text = environ.get(VARIABLE, "").strip()
    if not text:
        raise UserError("it is not set, so this process knows no other worker", VARIABLE, _REMEDY)
    try:
        given = json.loads(text)
        cluster, task = given["cluster"], given["task"]
        kinds, kind = set(_checked(cluster, dict, "cluster")), _checked(task["type"], str, "type")
        if {*kinds, kind} != {"worker"}:
            message = f"it has tasks of the kinds {', '.join(sorted({*kinds, kind}))}"
            raise UserError(message, VARIABLE, "Name all of them worker; index 0 is the chief.")
        addresses, index = _addresses(cluster["worker"]), _index(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"it is no description of workers: {type(error).__name__}: {error}"
        raise UserError(message, VARIABLE, _REMEDY) from error
    if not 0 <= index < len(addresses):
        message = f"there is no worker {index} among {len(addresses)}"
        raise UserError(message, VARIABLE, _REMEDY)
    return Place(addresses, index)


def _addresses(given: Any) -> tuple[str, ...]:
    """The workers' addresses, each ``HOST:PORT`` and another one."""
    listed = _checked(given, list, "worker")
    addresses = tuple(_checked(address, str, "an address") for address in listed)
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not _number(port) or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{address!r} is not HOST:PORT")
    if twice := [one for one in addresses if addresses.count(one) > 1]:
        raise ValueError(f"{twice[0]!r} stands there twice")
    return addresses


def _index(given: Any) -> int:
    """The number of a worker, which may also be given as text."""
    if type(given) is int or (isinstance(given, str) and _number(given)):  # a bool is an int, too
        return int(given)
    raise TypeError(f"the index {given!r} is no whole number")


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _checked(given: Any, kind: type, what: str) -> Any:
    """What is given, if it is of that kind.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(given, kind):
        raise TypeError(f"{what} is {given!r}, not a {kind.__name__}")
    return given
