"""Run a SavedModel on rows and print its predictions, or the scores of given outputs."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import DataError, UserError
from regard.core.formatting import printable
from regard.core.kinds import TEXT
from regard.core.native_output import silence_output
from regard.pipeline.prediction import output_format
from regard.pipeline.prediction.constraints import SIGNATURE, OutputConstraints
from regard.pipeline.prediction.input_rows import InputParser, InputRow, with_tag
from regard.pipeline.prediction.mbr import open_sampled
from regard.pipeline.prediction.models import N_BEST, open_model
from regard.pipeline.prediction.output_format import to_list
from regard.serving.contract import DEFAULT_SIGNATURE, Contract, SavedModelError, input_kinds
from regard.serving.saved_model import InputLengthError, Model, Prediction

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
        search: keys of the section ``search`` that replace those of the model; with ``n_best`` or
            several ``samples``, all hypotheses are printed, each with the input before it. A model
            without a search can have ``n_best`` only.
        with_score: whether to print the log-probability before each output.
        server: the address of the server that runs the model; None: it runs here.
        tag: the tag that begins every text; None if the texts have them, or the model has none.
        mbr: the utility by which one of the samples is chosen; None: the search's own choice.
        min_confidence: outputs with a lower confidence are not printed; None: all are.
        on_note: called with a sentence about the columns of standard input.
        on_read: called with the number of lines so far, before more of standard input are read.
    """

    align: bool = False
    as_json: bool = False
    picture: Path | None = None
    width: int = 80
    constraints: OutputConstraints | None = None
    search: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    with_score: bool = False
    server: str | None = None
    tag: str | None = None
    mbr: str | None = None
    min_confidence: float | None = None
    on_note: Callable[[str], None] = lambda text: None
    on_read: Callable[[int], None] = lambda lines: None

    def needs_list(self, contract: Contract) -> bool:
        """Return whether all hypotheses of an input are printed."""
        has_list = N_BEST in contract["signatures"]
        if self.mbr is not None:
            return False
        return "n_best" in self.search or ("samples" in self.search and has_list)

    def signature(self, contract: Contract) -> str:
        """Return the signature whose outputs are shown.

        Raises:
            UserError: the model cannot show them, or they cannot be shown together.
        """
        _validate_options(contract, self)
        if self.needs_list(contract) and N_BEST in contract["signatures"]:
            return N_BEST
        shows_attention = self.align or self.picture is not None
        return contract["detail"] if shows_attention else DEFAULT_SIGNATURE

    def abstains(self, prediction: Prediction | None) -> bool:
        """Return whether the output is too uncertain to be printed."""
        if self.min_confidence is None or prediction is None:
            return False
        confidence = prediction.confidence
        return confidence is None or not confidence >= self.min_confidence


class InputCounts(NamedTuple):
    """The inputs that the model ``truncated``, and those whose output is ``uncertain``."""

    truncated: int
    uncertain: int


def predict(
    name: str, registry: Path, texts: Sequence[str], options: PredictOptions
) -> InputCounts:
    """Print the predictions of a model in order, one row on a line.

    Args:
        name: the model; see ``open_model``.
        registry: the registry's folder.
        texts: the inputs; none: read standard input.
        options: what to print.

    Returns:
        The numbers of inputs that the model truncated, and that it abstained from.

    Raises:
        UserError: the model or a row is invalid, or the attention cannot be shown.
    """
    if options.picture is not None:
        from regard.pipeline.prediction import attention_page  # imports the web server

        attention_page.validate_path(options.picture)
    with silence_output() as out:
        model = _open(name, registry, options, few_runs=bool(texts))
        signature = options.signature(model.contract)
        batches = InputParser(model.contract, options.on_note, options.on_read).parse(texts)
        pairs: list[tuple[InputRow, Prediction]] = []
        truncated = uncertain = 0
        constraints, tag = options.constraints, options.tag
        for row, prediction in predict_rows(model, name, batches, signature, constraints, tag):
            if options.picture is not None and prediction is not None:
                pairs.append((row, prediction))
            if prediction is not None and prediction.truncated:
                truncated += 1
            uncertain += options.abstains(prediction)
            text = _format(row, prediction, model.contract, options)
            out.write(f"{printable(text) if out.isatty() else text}\n")
            out.flush()
        if options.picture is not None:
            folder, _, last = name.rpartition("/")
            is_version = folder and last.isdecimal()
            title = f"{folder.rpartition('/')[2]}@{last}" if is_version else last
            attention_page.write(options.picture, title, model, pairs)
    return InputCounts(truncated, uncertain)


def _open(name: str, registry: Path, options: PredictOptions, few_runs: bool) -> Model:
    if options.mbr is not None:
        return open_sampled(name, registry, options.mbr, options.search, options.server)[0]
    return open_model(name, registry, options.server, options.search, few_runs)[0]


def predict_rows(
    model: Model,
    name: str,
    batches: Iterable[list[InputRow]],
    signature: str = DEFAULT_SIGNATURE,
    constraints: OutputConstraints | None = None,
    tag: str | None = None,
) -> Iterator[RowPrediction]:
    """Yield each row with its prediction, in order; an empty row has none.

    Args:
        model: the model.
        name: its name, for error messages.
        batches: the rows.
        signature: the signature to run, unless there are constraints.
        constraints: what the outputs must begin with and contain.
        tag: the tag that begins every text; None if the texts have them, or the model has none.

    Raises:
        UserError: a tag is missing or unknown, or the model rejects a row; the predictions before
            it have been yielded.
    """
    signature = SIGNATURE if constraints else signature
    for batch in batches:
        rows = [_prepare(row, model.contract, constraints, tag) for row in batch if row.values]
        try:
            predictions = _predict_batch(model, signature, rows)
            for row in batch:
                yield row, next(predictions) if row.values else None
        except SavedModelError as error:
            raise UserError(str(error), where=name) from error


def _predict_batch(model: Model, signature: str, rows: list[InputRow]) -> Iterator[Prediction]:
    """Yield the predictions of one batch; those before a rejected row come first."""
    values = [row.values for row in rows if row.values is not None]
    try:
        yield from model.predict(signature, values) if rows else []
    except InputLengthError as error:
        if len(rows) == 1:
            remedy = "Shorten it, or train with a larger search.max_source_length or with "
            remedy += "search.long_source: truncate."
            if "unknown characters" in str(error):
                remedy = "Use characters that the target sentences of the training contain."
            if "fewer than" in str(error):
                remedy = "Give more points, or train with a smaller model.min_points."
            raise DataError(str(error), where=rows[0].description, remedy=remedy) from None
        for row in rows:
            yield from _predict_batch(model, signature, [row])


def _prepare(
    row: InputRow, contract: Contract, constraints: OutputConstraints | None, tag: str | None
) -> InputRow:
    """Return a row with the inputs of its constraints, then its tag, which is no term of these."""
    values = row.values or {}
    values = constraints.inputs(values, contract) if constraints else values
    return dataclasses.replace(row, values=with_tag(values, contract, tag))


def _format(
    row: InputRow, prediction: Prediction | None, contract: Contract, options: PredictOptions
) -> str:
    abstains = options.abstains(prediction)
    hypotheses = output_format.split_hypotheses(prediction, options.search.get("n_best"))
    is_list = options.needs_list(contract)
    if options.as_json:
        rest = dataclasses.replace(row, typed={}) if is_list else row
        fields = [
            output_format.json_fields(rest, hypothesis, contract) for hypothesis in hypotheses
        ]
        value = {**row.typed, "hypotheses": fields} if is_list else fields[0]
        if options.min_confidence is not None:
            value |= {"abstained": abstains} | ({contract["answer"]: ""} if abstains else {})
        return json.dumps(value, ensure_ascii=False)
    inputs = [output_format.one_cell(value) for value in row.typed.values()] if is_list else []
    lines = []
    for hypothesis in hypotheses:
        cells = [*inputs, "" if abstains else output_format.one_line(hypothesis)]
        if options.with_score:
            cells.insert(0, _score_text(hypothesis))
        lines.append("\t".join(cells))
    text = "\n".join(lines)
    if not options.align or prediction is None or abstains:
        return text
    attention, outputs = contract["looks"], prediction.outputs
    assert attention is not None  # checked before
    tokens = outputs[attention["columns"]], outputs[attention["rows"]]
    table = output_format.draw_table(*tokens, outputs[attention["weights"]], options.width)
    return "\n".join([text, *table, ""])


def _validate_options(contract: Contract, options: PredictOptions) -> None:
    """Reject options that need attention of another kind than the model has."""
    if options.constraints and SIGNATURE not in contract["signatures"]:
        options_of_constraints = "--prefix, --phrase, --glossary"
        remedy = "Leave them out, or run the model's pipeline again."
        message = "This model does not support constraints."
        raise UserError(message, options_of_constraints, remedy)
    has_attention = options.align or options.picture is not None
    signatures = [bool(options.constraints), has_attention, options.needs_list(contract)]
    if signatures.count(True) > 1:
        remedy = "Use constraints, or --align and --picture, or lists such as --n-best."
        raise UserError("Constraints, attention and lists cannot be combined.", remedy=remedy)
    if options.with_score and contract["score"] is None:
        raise UserError("The outputs of this model have no log-probability.", "--score")
    if options.min_confidence is not None and not contract.get("confidence"):
        message = "This model has no confidence, or not with these options of the search."
        remedy = "Train it with serving.confidence, and keep its own search."
        raise UserError(message, "--min-confidence", remedy)
    if options.min_confidence is not None and (options.constraints or options.needs_list(contract)):
        message = "Lists and outputs with constraints have no confidence."
        raise UserError(message, "--min-confidence", "Use one of the options.")
    is_table = options.align and not options.as_json
    option = "--picture" if options.picture is not None else "--align"
    attention = contract["looks"]
    if attention is None and (is_table or options.picture is not None):
        remedy = "Leave the option out; `--align --json` prints all outputs of the model."
        raise UserError("This model has no attention to show.", option, remedy)
    kind = input_kinds(contract).get(attention["columns"], TEXT) if attention else TEXT
    if is_table and not kind.is_text:
        noun = "an image" if kind.names_file else kind.name
        message = f"This model attends to {noun}, which a table of tokens cannot show."
        remedy = "Use --picture to draw the attention, or --align --json for the weights."
        raise UserError(message, "--align", remedy)


def score(
    name: str,
    registry: Path,
    texts: Sequence[str],
    *,
    as_json: bool = False,
    server: str | None = None,
    tag: str | None = None,
    on_note: Callable[[str], None] = lambda text: None,
    on_read: Callable[[int], None] = lambda lines: None,
) -> None:
    """Print the natural logarithm of the probability of each row's output, one row on a line.

    Args:
        name: the model; see ``open_model``.
        registry: the registry's folder.
        texts: the inputs and the output of each row; none: read lines with tabs from standard
            input.
        as_json: whether to print JSON objects, which contain the scores of single tokens.
        server: the address of the server that runs the model; None: it runs here.
        tag: the tag that begins every text; None if the texts have them, or the model has none.
        on_note: called with a sentence about the columns of standard input.
        on_read: called with the number of lines so far, before more of standard input are read.

    Raises:
        UserError: the model cannot score outputs, or a row is invalid.
    """
    with silence_output() as out:
        model, _ = open_model(name, registry, server)
        signature, inputs = scored_signature(model.contract, name)
        batches = InputParser(inputs, on_note, on_read).parse(texts)
        for row, scored in predict_rows(model, name, batches, signature, tag=tag):
            text = json.dumps(_score_fields(row, scored), ensure_ascii=False)
            if not as_json:
                text = _score_text(scored)
            out.write(f"{printable(text) if out.isatty() else text}\n")
            out.flush()


def scored_signature(contract: Contract, name: str) -> tuple[str, Contract]:
    """Return the signature that scores given outputs, and the contract with its inputs.

    Raises:
        UserError: the model of that name cannot score outputs.
    """
    signature = contract["scored"]
    if signature is None:
        message = f"A model for {contract['task']} cannot score given outputs."
        raise UserError(message, name)
    return signature, {**contract, "inputs": contract["signatures"][signature]["inputs"]}


def _score_text(prediction: Prediction | None) -> str:
    """Return a log-probability; the empty string for an empty row."""
    if prediction is None or prediction.score is None:
        return ""
    return f"{prediction.score:.6f}"


def _score_fields(row: InputRow, scored: Prediction | None) -> dict[str, Any]:
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
