"""The attention of every layer and head of a Transformer, as pages draw it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.serving.contract import SavedModelError
from regard.serving.saved_model import InputLengthError, InputRow, Model
from regard.serving.session import SessionError

# The maximum number of weights of a row on a page, about 1 MB of text.
MAX_WEIGHTS = 200_000


def add_outputs(
    model: Model, signature: str, rows: Sequence[InputRow], outputs: Sequence[Any]
) -> list[InputRow]:
    """Return the inputs of a signature whose last one is a given output of the model."""
    names = [entry["name"] for entry in model.contract["signatures"][signature]["inputs"]]
    return [
        {name: row.get(name, output) for name in names}
        for row, output in zip(rows, outputs, strict=True)
    ]


def head_weights(model: Model, row: InputRow, output: Any) -> Mapping[str, Any] | None:
    """Return the weights of all heads for an output, with the labels of their axes, as lists.

    Args:
        model: the model.
        row: its inputs by name.
        output: the output.

    Returns:
        The outputs of the signature ``heads``; None if the model has no heads, or if the row is
        too long for a page.
    """
    heads = model.contract.get("heads")
    if heads is None:
        return None
    try:
        requests = add_outputs(model, heads["signature"], [row], [output])
        outputs = model.predict(heads["signature"], requests)[0].outputs
    except (InputLengthError, SavedModelError, SessionError):
        return None
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    if sum(array.size for array in arrays.values()) > MAX_WEIGHTS:
        return None
    return {
        name: (array.round(3) if array.dtype.kind == "f" else array).tolist()
        for name, array in arrays.items()
    }
