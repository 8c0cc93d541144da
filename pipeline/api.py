"""Run pipelines and models from Python; imported from ``regard.pipeline``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common.run_record import INTERRUPTED
from regard.core.errors import UserError
from regard.core.native_output import silence_output
from regard.pipeline.cli import terminal
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.config import Config
from regard.pipeline.config.document import ConfigSource
from regard.pipeline.config.load import load
from regard.pipeline.prediction.input_rows import InputParser, split_batches
from regard.pipeline.prediction.models import open_model
from regard.pipeline.prediction.predict import predict_rows
from regard.pipeline.runs.launch import Runner, RunRequest, RunResult, run_pipeline
from regard.pipeline.workspace import Workspace
from regard.serving.contract import DEFAULT_SIGNATURE
from regard.serving.saved_model import Model, Prediction

AnyPath = str | os.PathLike[str]


def run(
    config: Config | AnyPath,
    *,
    first: str | None = None,
    last: str | None = None,
    runner: Runner = "local",
    publish_anyway: bool = False,
    wait: bool = False,
) -> RunResult:
    """Run a pipeline: prepare data, train, evaluate and publish a model.

    The nodes run in a separate process; the progress is printed on standard output, and redrawn in
    place in a terminal. Finished nodes are cached in the workspace, which the environment variable
    ``REGARD_HOME`` names. Ctrl-C, or the interruption of a notebook's kernel, stops the process; so
    does SIGTERM. Another call then resumes the run.

    Args:
        config: The configuration, or its YAML file.
        first: Run this node and all later ones again, as ``regard run --from``.
        last: Stop after this node, as ``regard run --to``.
        runner: ``local`` or ``beam``.
        publish_anyway: Whether to publish a model that does not pass evaluation.
        wait: Whether to wait for another run of the pipeline to end.

    Returns:
        The result. The status of a model that did not pass evaluation is ``not blessed``.

    Raises:
        UserError: The configuration, the data or the environment is invalid.
        RuntimeError: A node failed; the message names the log.
        KeyboardInterrupt: The run was stopped.
    """
    source = config if isinstance(config, Config) else Path(config)
    request = RunRequest(source, first, last, runner, wait, publish_anyway=publish_anyway)
    result = run_pipeline(request, TerminalDisplay(terminal.out()))
    failure = result.outcome.failure
    if result.status == INTERRUPTED:
        raise KeyboardInterrupt("The run was stopped. Another call resumes it.")
    if failure is not None:
        node = f"{failure.node} failed: " if failure.node is not None else "The run failed: "
        message = node + failure.error
        if failure.user:
            raise UserError(message, failure.where, failure.remedy)
        raise RuntimeError(f"{message}\nLog: {result.run.log}")
    return result


def load_config(source: ConfigSource) -> Config:
    """Load and check the configuration of a pipeline.

    Args:
        source: The YAML file, or its content as a mapping with paths relative to the working
            directory.

    Raises:
        UserError: A value is invalid. The message names every problem with its key.
    """
    return load(source)


def load_model(model: AnyPath, search: Mapping[str, Any] | None = None) -> Model:
    """Load a model, or connect to a served one.

    Args:
        model: ``NAME`` or ``NAME@VERSION`` in the workspace's registry, a folder with a
            SavedModel, or ``grpc://HOST:PORT/NAME`` of a server.
        search: Keys of the section ``search`` that replace those of the model.

    Returns:
        The model, with its ``contract``.

    Raises:
        UserError: There is no such model, or it cannot be used.
    """
    registry = Workspace.from_environment().registry
    with silence_output():
        return open_model(os.fspath(model), registry, search=search)[0]


def predict(
    model: Model | AnyPath,
    inputs: Sequence[str | Sequence[str]],
    *,
    attention: bool = False,
    tag: str | None = None,
) -> list[Prediction | None]:
    """Run a model on rows of inputs.

    Args:
        model: A model from `load_model`, or what that function takes. Loading takes seconds.
        inputs: For each row a text, the path of an image, or points as JSON; several of them for a
            model with several inputs.
        attention: Whether the outputs include tokens and attention weights; see
            ``Prediction.attention``.
        tag: The tag that begins every text, for a model with ``data.tags``.

    Returns:
        A prediction for each row, with ``hypothesis``, ``score`` and all ``outputs``; None for an
        empty row.

    Raises:
        UserError: The model or a row is invalid.
    """
    if isinstance(inputs, str):
        raise UserError("The inputs are one text.", "inputs", "Give a list of rows: [text].")
    loaded = load_model(model) if isinstance(model, str | os.PathLike) else model
    parser, remedy = InputParser(loaded.contract), "Give a text for each input of a row."
    rows = [
        parser.parse_row([row] if isinstance(row, str) else row, f"inputs[{index}]", remedy)
        for index, row in enumerate(inputs)
    ]
    signature = loaded.contract["detail"] if attention else DEFAULT_SIGNATURE
    with silence_output():
        pairs = list(predict_rows(loaded, "model", split_batches(rows), signature, tag=tag))
    return [prediction for _, prediction in pairs]
