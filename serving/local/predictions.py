"""What both protocols do with a request: find the model, check, ask, choose the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving.local.manager import Manager
from serving.local.servable import DEFAULT


@dataclass(frozen=True)
class Wanted:
    """Which model is asked, and for what.

    Attributes:
        model: its name.
        version: the number of the version; None for the newest.
        label: what the version is called, instead of its number.
        signature: its name; "" for the default one.
        outputs: those that are wanted; none: all.
    """

    model: str
    version: int | None = None
    label: str = ""
    signature: str = ""
    outputs: Sequence[str] = ()


@dataclass(frozen=True)
class Predicted:
    """An answer.

    Attributes:
        version: of the model that gave it.
        signature: that was asked.
        outputs: by name.
    """

    version: int
    signature: str
    outputs: dict[str, np.ndarray]


async def predict(manager: Manager, wanted: Wanted, inputs: Mapping[str, np.ndarray]) -> Predicted:
    """Answers a request; one version does all of it.

    Raises:
        ServingError: there is no such model or signature, the inputs are none of it, or it fails.
    """
    async with manager.use(wanted.model, wanted.version, wanted.label) as used:
        assert used.servable is not None
        used.servable.check(wanted.signature, inputs)
        names = used.servable.outputs(wanted.signature, wanted.outputs)
        found = await manager.ask(used, wanted.signature, inputs)
        number = used.number
    rows = max((tensor.shape[0] for tensor in inputs.values() if tensor.ndim), default=1)
    manager.metrics.rows(wanted.model, rows)
    chosen = {name: found[name] for name in names}
    return Predicted(number, wanted.signature or DEFAULT, chosen)
