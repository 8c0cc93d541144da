"""What both protocols do with a request: find the model, check, ask, choose the outputs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving.local.manager import Manager
from serving.local.servable import DEFAULT
from serving.local.status import ServingError, invalid


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
    with manager.use(wanted.model, wanted.version, wanted.label) as used:
        assert used.servable is not None
        used.servable.check(wanted.signature, inputs)
        names = used.servable.outputs(wanted.signature, wanted.outputs)
        found = await manager.ask(used, wanted.signature, inputs)
        number = used.number
    rows = max((tensor.shape[0] for tensor in inputs.values() if tensor.ndim), default=1)
    manager.metrics.rows(wanted.model, rows)
    chosen = {name: found[name] for name in names}
    return Predicted(number, wanted.signature or DEFAULT, chosen)


@contextlib.contextmanager
def counted(manager: Manager, model: str, api: str, entry: str) -> Iterator[None]:
    """Counts a request to a model; see ``Metrics.request``."""
    started, status = time.monotonic(), "CANCELLED"
    try:
        yield
        status = "OK"
    except ServingError as error:
        status = error.code.name
        raise
    except Exception:
        status = "INTERNAL"
        raise
    finally:
        # Names that nobody serves are not kept: anybody could make up as many as they like.
        known = model if manager.serves(model) else ""
        manager.metrics.request(known, api, entry, status, time.monotonic() - started)


def not_of_this_kind(manager: Manager, wanted: Wanted, method: str) -> ServingError:
    """Why a model that predicts neither classifies nor regresses."""
    found = manager.find(wanted.model, wanted.version, wanted.label)
    assert found.servable is not None
    signature = found.servable.signature(wanted.signature)
    kind = {"classify": "classification", "regress": "regression"}[method]
    told = f"Expected {kind} signature method_name to be tensorflow/serving/{method}. Was: "
    return invalid(told, signature.method_name)
