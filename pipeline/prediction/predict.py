"""Run a SavedModel on rows and print its predictions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from regard.components.common.errors import UserError
from regard.components.common.formatting import printable
from regard.components.common.native_output import silence_output
from regard.pipeline.prediction import output_format
from regard.pipeline.prediction.constraints import SIGNATURE, Constraints
from regard.pipeline.prediction.input_rows import InputParser, InputRow
from regard.pipeline.prediction.models import open_model
from regard.serving.contract import Contract, SavedModelError, input_kinds
from regard.serving.saved_model import InputLengthError, Prediction

RowPrediction = tuple[InputRow, Prediction | None]


@dataclasses.dataclass(frozen=True)
class PredictOptions:
    """What to print.

    Attributes:
        align: whether to print the attention as a table.
        as_json: whether to print JSON instead of text.
        picture: an HTML file for the attention, if any.
        width: the columns of the terminal.
        constraints: what the outputs must begin with and contain.
        server: the address of the server that runs the model; None: it runs here.
    """

    align: bool = False
    as_json: bool = False
    picture: Path | None = None
    width: int = 80
    constraints: Constraints | None = None
    server: str | None = None


def predict(name: str, registry: Path, texts: Sequence[str], options: PredictOptions) -> int:
    """Print the predictions of a model in order, one row on a line.

    Args:
        name: the model; see ``open_model``.
        registry: the registry's folder.
        texts: the inputs; none: read standard input.
        options: what to print.

    Returns:
        The number of inputs that the model truncated.

    Raises:
        UserError: the model or a row is invalid, or the attention cannot be shown.
    """
    if options.picture is not None:
        from regard.pipeline.prediction import attention_page  # imports the web server

        attention_page.validate_path(options.picture)
    with silence_output() as out:
        model = OpenModel(name, registry, options.server)
        _validate_options(model.contract, options)
        batches = InputParser(model.contract).read(texts)
        pairs: list[tuple[InputRow, Prediction]] = []
        truncated = 0
        needs_attention = options.align or options.picture is not None
        for row, prediction in model.predict(batches, needs_attention, options.constraints):
            if options.picture is not None and prediction is not None:
                pairs.append((row, prediction))
            if prediction is not None and prediction.truncated:
                truncated += 1
            text = _format(row, prediction, model.contract, options)
            out.write(f"{printable(text) if out.isatty() else text}\n")
            out.flush()
        if options.picture is not None:
            title = name.rpartition("/")[2]
            attention_page.write(options.picture, title, model.contract, pairs)
    return truncated


class OpenModel:
    """A model whose errors are user errors.

    Args:
        name: the model; see ``open_model``.
        registry: the registry's folder.
        server: the server that runs it, if any.

    Raises:
        UserError: there is no such model, or it cannot be used.
    """

    def __init__(self, name: str, registry: Path, server: str | None = None):
        self._model, _ = open_model(name, registry, server)
        self._name = name
        self.contract = self._model.contract

    def predict(
        self,
        batches: Iterable[list[InputRow]],
        with_attention: bool = False,
        constraints: Constraints | None = None,
    ) -> Iterator[RowPrediction]:
        """Yield each row with its prediction, in order; an empty row has none.

        Raises:
            UserError: the model rejects a row; the predictions before it have been yielded.
        """
        name = self.contract["detail"] if with_attention else "serving_default"
        return self.run(SIGNATURE if constraints else name, batches, constraints)

    def run(
        self,
        signature: str,
        batches: Iterable[list[InputRow]],
        constraints: Constraints | None = None,
    ) -> Iterator[RowPrediction]:
        """Yield each row with the outputs of a signature; see ``predict``."""
        for batch in batches:
            rows = [row for row in batch if row.values]
            if constraints:
                rows = [_constrain(row, constraints, self.contract) for row in rows]
            predictions = self._predict_batch(signature, rows)
            for row in batch:
                yield row, next(predictions) if row.values else None

    def _predict_batch(self, name: str, rows: list[InputRow]) -> Iterator[Prediction]:
        """Yield the predictions of one batch; those before a rejected row come first."""
        values = [row.values for row in rows if row.values is not None]
        try:
            yield from self._model.predict(name, values) if rows else []
        except InputLengthError as error:
            if len(rows) == 1:
                remedy = "Shorten it, or train with a larger search.max_source_length or with "
                remedy += "search.long_source: truncate."
                if error.is_too_short:
                    remedy = "Give more points, or train with a smaller model.min_points."
                raise UserError(str(error), where=rows[0].description, remedy=remedy) from None
            for row in rows:
                yield from self._predict_batch(name, [row])
        except SavedModelError as error:
            raise UserError(str(error), where=self._name) from error


def _constrain(row: InputRow, constraints: Constraints, contract: Contract) -> InputRow:
    return dataclasses.replace(row, values=constraints.inputs(row.values or {}, contract))


def _format(
    row: InputRow, prediction: Prediction | None, contract: Contract, options: PredictOptions
) -> str:
    if options.as_json:
        fields = output_format.json_fields(row, prediction, contract)
        return json.dumps(fields, ensure_ascii=False)
    text = output_format.one_line(prediction)
    if not options.align or prediction is None:
        return text
    attention, outputs = contract["looks"], prediction.outputs
    assert attention is not None  # checked before
    tokens = outputs[attention["columns"]], outputs[attention["rows"]]
    table = output_format.draw_table(*tokens, outputs[attention["weights"]], options.width)
    return "\n".join([text, *table, ""])


def _validate_options(contract: Contract, options: PredictOptions) -> None:
    """Reject options that need attention of another kind than the model has."""
    if options.constraints and SIGNATURE not in contract["signatures"]:
        remedy = "Leave out --prefix, --phrase and --glossary, or run the model's pipeline again."
        raise UserError("This model does not support constraints.", remedy=remedy)
    if options.constraints and (options.align or options.picture is not None):
        remedy = "Use either constraints, or --align and --picture."
        raise UserError("The attention of constrained outputs is not available.", remedy=remedy)
    is_table = options.align and not options.as_json
    option = "--picture" if options.picture is not None else "--align"
    attention = contract["looks"]
    if attention is None and (is_table or options.picture is not None):
        remedy = "Leave the option out; `--align --json` prints all outputs of the model."
        raise UserError("This model has no attention to show.", option, remedy)
    kind = input_kinds(contract).get(attention["columns"], "text") if attention else "text"
    if is_table and kind != "text":
        noun = {"image": "an image"}.get(kind, kind)
        message = f"This model attends to {noun}, which a table of tokens cannot show."
        remedy = "Use --picture to draw the attention, or --align --json for the weights."
        raise UserError(message, "--align", remedy)
