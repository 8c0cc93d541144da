"""Run, score and evaluate finished models from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.components.evaluator.results import Evaluation
from regard.core.errors import UserError
from regard.core.native_output import silence_output
from regard.pipeline.prediction import evaluate as evaluation
from regard.pipeline.prediction.constraints import OutputConstraints, read_glossary
from regard.pipeline.prediction.input_rows import InputParser, split_batches
from regard.pipeline.prediction.mbr import open_sampled
from regard.pipeline.prediction.models import open_model
from regard.pipeline.prediction.output_format import split_hypotheses
from regard.pipeline.prediction.predict import PredictOptions, predict_rows, scored_signature
from regard.pipeline.workspace import Workspace
from regard.serving.contract import Contract
from regard.serving.saved_model import Model, Prediction

AnyPath = str | os.PathLike[str]
# A row of inputs: a text, the path of an image, or points as JSON; several for several inputs.
Row = str | Sequence[str]


def load_model(
    model: AnyPath, search: Mapping[str, Any] | None = None, mbr: str | None = None
) -> Model:
    """Load a model, or connect to a served one.

    Args:
        model: ``NAME`` or ``NAME@VERSION`` in the workspace's registry, a folder with a
            SavedModel, or ``grpc://HOST:PORT/NAME`` of a server.
        search: Keys of the section ``search`` that replace those of the model.
        mbr: ``chrf``: Each output is the one of several samples that is most like all others.

    Returns:
        The model, with its ``contract``.

    Raises:
        UserError: There is no such model, or it cannot be used.
    """
    registry = Workspace.from_environment().registry
    with silence_output():
        if mbr is not None:
            return open_sampled(os.fspath(model), registry, mbr, search)[0]
        return open_model(os.fspath(model), registry, search=search)[0]


def predict(
    model: Model | AnyPath,
    inputs: Sequence[Row],
    *,
    attention: bool = False,
    search: Mapping[str, Any] | None = None,
    n_best: int | None = None,
    prefix: str = "",
    phrases: Sequence[str] = (),
    glossary: Mapping[str, str] | AnyPath | None = None,
    tag: str | None = None,
) -> list[Prediction | None]:
    """Run a model on rows of inputs, as ``regard predict``.

    Args:
        model: A model from `load_model`, or what that function takes. Loading takes seconds.
        inputs: For each row a text, the path of an image, or points as JSON; several of them for a
            model with several inputs.
        attention: Whether the outputs include tokens and attention weights; see
            ``Prediction.attention``.
        search: Keys of the section ``search`` that replace those of the model, such as
            ``{"beam_size": 10}``. For a loaded model, they are an argument of `load_model`.
        n_best: How many outputs of a row are in ``Prediction.hypotheses``; by default none, or all
            ``samples`` of ``search``. A loaded model has as many as its search returns.
        prefix: The beginning of every output.
        phrases: Texts that every output contains.
        glossary: Target terms by source terms, or a file with a source term, a tab and a target
            term on each line.
        tag: The tag that begins every text, for a model with ``data.tags``.

    Returns:
        A prediction for each row, with ``hypothesis``, ``score`` and all ``outputs``; None for an
        empty row.

    Raises:
        UserError: The model, an option or a row is invalid.
    """
    if search and not isinstance(model, str | os.PathLike):
        raise UserError("The model is loaded.", "search", "Use load_model(name, search).")
    keys = {**(search or {}), **({} if n_best is None else {"n_best": n_best})}
    loaded = _open(model, keys)
    terms = glossary or {}
    if not isinstance(terms, Mapping):
        terms = read_glossary(Path(terms))
    constraints = OutputConstraints(prefix, phrases, terms)
    options = PredictOptions(
        align=attention, as_json=True, constraints=constraints, search=keys, tag=tag
    )
    signature = options.signature(loaded.contract)
    predictions = _predict(loaded, loaded.contract, signature, inputs, constraints, tag)
    if not options.needs_list(loaded.contract):
        return predictions
    return [one and _with_hypotheses(one, n_best) for one in predictions]


def score(
    model: Model | AnyPath, rows: Sequence[Sequence[str]], *, tag: str | None = None
) -> list[Prediction | None]:
    """Return the log-probability of given outputs, as ``regard score``.

    Args:
        model: A model from `load_model`, or what that function takes.
        rows: For each row the inputs and the output: ``("A dog runs.", "Ein Hund läuft.")``.
        tag: The tag that begins every text, for a model with ``data.tags``.

    Returns:
        For each row ``score``, the natural logarithm of the probability of the whole output, and
        all ``outputs``, which include the scores of tokens; None for an empty row.

    Raises:
        UserError: The model cannot score outputs, or a row is invalid.
    """
    loaded = _open(model)
    signature, contract = scored_signature(loaded.contract, "model")
    return _predict(loaded, contract, signature, rows, None, tag)


def evaluate(
    models: AnyPath | Sequence[AnyPath],
    data: AnyPath | Sequence[AnyPath] | Mapping[str, AnyPath],
    *,
    metrics: Sequence[str] = (),
    columns: Mapping[str, int | str] | None = None,
    out: AnyPath | None = None,
    tag: str | None = None,
    explore: AnyPath | None = None,
    robustness: bool = False,
    search: Mapping[str, Any] | None = None,
    mbr: str | None = None,
) -> Evaluation:
    """Score one or two finished models on any data, as ``regard evaluate``.

    Args:
        models: The name, the folder or the address of a model, as in `load_model`; or two of them
            to compare the second with the first.
        data: Files with inputs and references in any format of ``data.train``; or one file for
            each side: ``{"source": "test.en", "target": "test.de"}``.
        metrics: The metrics; by default those of the model's own evaluation.
        columns: The columns of a table by feature: ``{"source": "en", "target": "fr"}``.
        out: A folder for outputs, metrics and ``report.html``.
        tag: The tag of all texts, for a model with ``data.tags``.
        explore: The file of a page about the rows on which two models differ.
        robustness: Whether to score the first model with changed inputs as well.
        search: Keys of the section ``search`` that replace those of the first model.
        mbr: As in `load_model`, for the first model.

    Returns:
        The ``metrics`` with 95% confidence intervals; those of the second model are in
        ``production``, with a significance test.

    Raises:
        UserError: A model, a file, a row or a metric is invalid.
    """
    names = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    if not all(isinstance(name, str | os.PathLike) for name in names):
        raise UserError("A model is loaded.", "models", "Give its name or folder instead.")
    if isinstance(data, str | os.PathLike):
        data = [data]
    absolute: Any = [str(Path(file).absolute()) for file in data]
    if isinstance(data, Mapping):
        absolute = {side: str(Path(file).absolute()) for side, file in data.items()}
    with silence_output():
        return evaluation.evaluate(
            [os.fspath(model) for model in names],
            Workspace.from_environment().registry,
            absolute,
            metrics,
            columns,
            None if out is None else Path(out),
            tag=tag,
            explore=None if explore is None else Path(explore),
            robustness=robustness,
            search=search,
            mbr=mbr,
        )


def _predict(
    model: Model,
    contract: Contract,
    signature: str,
    inputs: Sequence[Row],
    constraints: OutputConstraints | None,
    tag: str | None,
) -> list[Prediction | None]:
    """Run a signature on rows, whose inputs a contract describes."""
    if isinstance(inputs, str):
        raise UserError("The inputs are one text.", "inputs", "Give a list of rows: [text].")
    parser, remedy = InputParser(contract), "Give a text for each input of a row."
    rows = [
        parser.parse_row([row] if isinstance(row, str) else row, f"inputs[{index}]", remedy)
        for index, row in enumerate(inputs)
    ]
    with silence_output():
        pairs = predict_rows(model, "model", split_batches(rows), signature, constraints, tag)
        return [result for _, result in pairs]


def _open(model: Model | AnyPath, search: Mapping[str, Any] | None = None) -> Model:
    return load_model(model, search) if isinstance(model, str | os.PathLike) else model


def _with_hypotheses(prediction: Prediction, count: int | None) -> Prediction:
    """Return the first hypothesis of an n-best list, with all of them."""
    hypotheses = [one for one in split_hypotheses(prediction, count) if one is not None]
    return replace(hypotheses[0], hypotheses=hypotheses)
