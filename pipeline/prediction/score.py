"""Print the log-probability that a model assigns to given outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.components.common.errors import UserError
from regard.components.common.formatting import printable
from regard.components.common.native_output import silence_output
from regard.pipeline.prediction.input_rows import InputParser, InputRow
from regard.pipeline.prediction.output_format import to_list
from regard.pipeline.prediction.predict import OpenModel
from regard.serving.saved_model import Prediction


def score(
    name: str,
    registry: Path,
    texts: Sequence[str],
    *,
    as_json: bool = False,
    server: str | None = None,
) -> None:
    """Print the natural logarithm of the probability of each row's output, one row on a line.

    Args:
        name: the model; see ``open_model``.
        registry: the registry's folder.
        texts: the inputs and the output of each row; none: read lines with tabs from standard
            input.
        as_json: whether to print JSON objects, which contain the scores of single tokens.
        server: the address of the server that runs the model; None: it runs here.

    Raises:
        UserError: the model cannot score outputs, or a row is invalid.
    """
    with silence_output() as out:
        model = OpenModel(name, registry, server)
        signature = model.contract["scored"]
        if signature is None:
            message = f"A model for {model.contract['task']} cannot score given outputs."
            raise UserError(message, name)
        entries = model.contract["signatures"][signature]["inputs"]
        batches = InputParser({**model.contract, "inputs": entries}).parse(texts)
        for row, scored in model.predict(batches, signature):
            text = json.dumps(_fields(row, scored), ensure_ascii=False)
            if not as_json:
                value = scored.score if scored else None
                text = "" if value is None else f"{value:.6f}"
            out.write(f"{printable(text) if out.isatty() else text}\n")
            out.flush()


def _fields(row: InputRow, scored: Prediction | None) -> dict[str, Any]:
    """Return the row, its score, and the tokens of the output with their scores."""
    fields = {**row.typed, "score": scored and scored.score}
    if scored is None:
        return fields
    name = next((key for key in scored.outputs if key.endswith("scores")), None)
    if name is not None:
        tokens = name.removesuffix("scores") + "pieces"
        fields["tokens"] = to_list(scored.outputs.get(tokens))
        fields["token_scores"] = to_list(scored.outputs[name])
    cuts = {name: count for name, count in scored.outputs.items() if name.endswith("cut")}
    return {**fields, **cuts}
