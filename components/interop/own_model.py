"""What a ``run_fn`` of the user's own needs for the nodes after Regard's Trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common.tokenizers import read_tokenizers
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.models.tasks import describe
from regard.serving.c_api import INVALID_ARGUMENT
from regard.serving.contract import CONTRACT, DEFAULT_SIGNATURE, Contract, SavedModelError
from regard.serving.saved_model import InputLengthError, ServedModel, split_outputs
from regard.serving.server.sample_row import find_row
from regard.serving.session import Session, SessionError

_SCORE = "score"


def load_tokenizers(transform_graph: str | os.PathLike[str], task: str) -> dict[str, Any]:
    """Load the tokenizers of a Transform graph, of which a SavedModel can contain copies.

    They add neither BOS nor EOS. The ids are 0 for padding, 1 for unknown tokens, 2 for BOS and 3
    for EOS.

    Args:
        transform_graph: the folder of the Transform graph, ``fn_args.transform_graph_path``.
        task: the task.

    Returns:
        A ``tensorflow_text.SentencepieceTokenizer`` for each text feature by name, such as
        ``source`` and ``target``.
    """
    return read_tokenizers(Path(transform_graph, "tokenizer"), describe(task).text_features)


def write_contract(
    folder: str | os.PathLike[str],
    task: str,
    dimensions: Mapping[str, Sequence[str | None]] | None = None,
    tags: Sequence[str] = (),
) -> None:
    """Check a SavedModel of the user's own, and describe it for Regard's nodes.

    Predictor, Evaluator, ServingCheck, Pusher and ``regard serve`` then treat it as one of Regard's
    Trainer. The signature ``serving_default`` must take the inputs of the task by name, with a
    batch of any size, and return the output of the task by its name. It may return the natural
    logarithm of the output's probability as ``score``, float32 ``[batch]``.

    Args:
        folder: the SavedModel's folder, ``fn_args.serving_model_dir``.
        task: the task.
        dimensions: for each output, the outputs with the lengths of its dimensions after the batch,
            or None for a dimension without padding. By default, the outputs of the task have none
            if they are texts or numbers, and one without padding if they are positions.
        tags: the tags that begin the sources.

    Raises:
        UserError: the folder has no SavedModel, its signature does not fit the task, or it cannot
            run as TensorFlow Serving runs it.
    """
    described = describe(task)
    inputs: Any = [
        {"name": feature.name, "kind": feature.kind.name}
        | ({"dimensions": feature.dimensions} if feature.dimensions != 2 else {})
        for feature in described.features
        if feature.role == "input"
    ]
    positions = described.output_kind.has_length
    outputs = {described.output: [None] if positions else [], **(dimensions or {})}
    try:
        session = Session(folder, few_runs=True)
        default = session.signatures.get(DEFAULT_SIGNATURE)
        has_score = default is not None and _SCORE in default.outputs
        if has_score:
            outputs.setdefault(_SCORE, [])
        contract: Contract = {
            "task": task,
            "about": described.about,
            "inputs": inputs,
            "answer": described.output,
            "answer_kind": described.output_kind.name,
            "score": _SCORE if has_score else None,
            "detail": DEFAULT_SIGNATURE,
            "scored": None,
            "size": None,
            "looks": None,
            "heads": None,
            "cut": None,
            "tags": list(tags),
            "signatures": {DEFAULT_SIGNATURE: {"inputs": inputs, "outputs": outputs}},
        }
        model = ServedModel(session, contract)
        model.signature(DEFAULT_SIGNATURE)
    except (SavedModelError, SessionError) as error:
        message = f"The SavedModel does not fit: {error}"
        remedy = f"Export {DEFAULT_SIGNATURE} with the inputs and the output of the task {task}."
        raise UserError(message, os.fspath(folder), remedy) from None
    _run_one_row(model, session, Path(folder))
    session.close()
    write_json(Path(folder, CONTRACT), contract)


def _run_one_row(model: ServedModel, session: Session, folder: Path) -> None:
    """Run a model as TensorFlow Serving does; it may reject the row, but must not fail."""
    row = find_row(folder, session.signatures[DEFAULT_SIGNATURE])
    if row is None:
        return
    try:
        outputs = model.run(DEFAULT_SIGNATURE, row.inputs)
        split_outputs(model.contract, DEFAULT_SIGNATURE, outputs, 1)
    except InputLengthError:
        return
    except (SavedModelError, SessionError) as error:
        if getattr(error, "code", None) == INVALID_ARGUMENT:
            return
        message = f"The SavedModel cannot run in TensorFlow Serving: {error}"
        # TensorFlow's loader restores no variable that only an object of Keras owns.
        remedy = "Save a `tf.Module` with `module.weights = [w.value for w in model.weights]`."
        raise UserError(message, os.fspath(folder), remedy) from None
