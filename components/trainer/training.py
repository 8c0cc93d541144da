"""One training, from transformed rows to a trained model: what the Trainer and a trial share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow_transform as tft

from components import events
from components.errors import UserError
from components.trainer import precision, vectors, warm_start
from components.trainer.checkpoint import Checkpoints, NoCheckpoints, Position
from components.trainer.data import Batches
from components.trainer.export import read_pieces, read_tokenizers
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from components.trainer.pulse import NODE
from components.trainer.seeding import seed
from components.trainer.shares import note, shared
from components.trainer.team import Team
from components.trainer.together import Together
from components.trainer.validation import LOSS, decoder
from models import tasks
from models.tasks.base import Task
from models.trained import TrainedModel


@dataclasses.dataclass(frozen=True)
class Source:
    """What a training reads.

    Attributes:
        train_files: patterns of the transformed rows that are trained on.
        eval_files: of those that it is evaluated on.
        transform_graph: the folder of what transformed them, with the tokenizer.
    """

    train_files: Sequence[str]
    eval_files: Sequence[str]
    transform_graph: str


@dataclasses.dataclass(frozen=True)
class Trained:
    """A model with its best weights, and what was found on the way.

    Attributes:
        config: with what the machine decides filled in.
        task: the model's.
        model: as it is to be exported.
        position: where the training ended.
        held_out: the eval split.
        tokenizers: one a text feature.
        serialized: the same as serialized SentencePiece models.
        pieces: the sizes of their vocabularies.
        rows: how many rows each split has, by whether they are used.
        pretrained: what word vectors gave.
        started: which model the first weights are from.
    """

    config: Mapping[str, Any]
    task: Task
    model: TrainedModel
    position: Position
    held_out: Batches
    tokenizers: Mapping[str, Any]
    serialized: Mapping[str, bytes]
    pieces: Mapping[str, int]
    rows: Mapping[str, Mapping[str, int]]
    pretrained: Mapping[str, Any]
    started: Mapping[str, Any]


def train(
    config: Mapping[str, Any],
    source: Source,
    log_dir: str,
    team: Team | None = None,
    objective: str = LOSS,
) -> Trained | None:
    """Makes the model and trains it, or goes on where its checkpoints stand.

    Args:
        config: as ``run_fn`` takes it.
        source: the rows.
        log_dir: for TensorBoard.
        team: the devices that train together; None: one device.
        objective: a measure that evaluations must have beside what ``training`` asks for.

    Returns:
        What was trained; None in a worker that is not the chief.

    Raises:
        UserError: a split has no usable row.
    """
    config = precision.resolved(config)
    training = config["training"]
    task = tasks.get(config["task"])
    seed(training)

    graph = tft.TFTransformOutput(source.transform_graph)
    texts = task.description.text_features
    folder = f"{source.transform_graph}/tokenizer"
    tokenizers, serialized = read_tokenizers(folder, texts), read_pieces(folder, texts)
    pieces = {name: int(t.vocab_size().numpy()) for name, t in tokenizers.items()}
    learned, held_out = (
        Batches(
            files,
            graph.transformed_feature_spec(),
            task,
            batch_tokens=training["batch_tokens"],
            max_length=training["max_length"],
            seed=training["seed"],
            fixed_shapes=training["jit_compile"],
        )
        for files in (source.train_files, source.eval_files)
    )
    shares = shared(learned, team) if team is not None else learned
    rows = {"train": shares.count(), "eval": held_out.count()}
    for split, counts in rows.items():
        _check_rows(split, counts, training["max_length"])

    files = config["model"].get("pretrained") or {}

    def build() -> Any:
        model = task.build(config["model"], training, pieces)
        vectors.freeze(model, task, files)
        return model

    if team is not None and not team.chief:
        model = build()
        compile_model(model, training)
        nowhere, along = NoCheckpoints(config["checkpoints"]), Together(team, model, build)
        fit(model, shares, held_out, training, nowhere, "", together=along)
        return None
    model = task.build(config["model"], training, pieces)
    pretrained = vectors.apply(model, task, files, tokenizers) if files else {}
    compile_model(model, training)
    checkpoints = Checkpoints(config["checkpoints"])
    started = warm_start.begin(model, task, config, serialized, checkpoints)
    decode = decoder(held_out, task, config, tokenizers, pieces, objective)
    together = None
    if team is not None:
        together = Together(team, model, build)
        events.emit("note", node=NODE, text=note(shares, team, len(learned.paths())))
    position = fit(model, shares, held_out, training, checkpoints, log_dir, decode, together)
    return Trained(
        config=config,
        task=task,
        model=model,
        position=position,
        held_out=held_out,
        tokenizers=tokenizers,
        serialized=serialized,
        pieces=pieces,
        rows=rows,
        pretrained=pretrained,
        started=started,
    )


def _check_rows(split: str, counts: Mapping[str, int], longest: int) -> None:
    """Refuses a split without a usable row, and tells what is left out of it."""
    if not counts["usable"]:
        raise UserError(
            f"the {split} split has no row to train on: {counts['incomplete']} not whole (an empty "
            f"side, or an answer that cannot be given), {counts['too_long']} longer than {longest} "
            "pieces",
            where="training.max_length",
            remedy="Raise training.max_length, or bring more data.",
        )
    if counts["incomplete"] or counts["too_long"]:
        events.emit(
            "note",
            node=NODE,
            text=f"left out of {split}: longer than {longest} pieces: {counts['too_long']}, not "
            f"whole: {counts['incomplete']}",
        )
