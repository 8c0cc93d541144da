"""Which worker of a training this process is: the environment variable ``TF_CONFIG``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

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
        kinds, kind = sorted(cluster), task["type"]
        addresses, index = tuple(map(str, cluster["worker"])), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"it is no description of workers: {type(error).__name__}: {error}"
        raise UserError(message, VARIABLE, _REMEDY) from error
    if kinds != ["worker"] or kind != "worker":
        message = f"it has tasks of the kinds {', '.join(sorted({*kinds, kind}))}"
        raise UserError(message, VARIABLE, "Name all of them worker; index 0 is the chief.")
    if not 0 <= index < len(addresses):
        message = f"there is no worker {index} among {len(addresses)}"
        raise UserError(message, VARIABLE, _REMEDY)
    return Place(addresses, index)
