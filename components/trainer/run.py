"""``run_fn``: what TFX's Trainer calls."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import tensorflow_transform as tft

from components import events
from components.errors import UserError
from components.files import atomic_write
from components.trainer import member, precision, vectors, warm_start
from components.trainer.checkpoint import Checkpoints, NoCheckpoints
from components.trainer.data import Batches
from components.trainer.export import export, read_pieces, read_tokenizers
from components.trainer.fitting import fit
from components.trainer.kept import keep
from components.trainer.optimizer import compile_model
from components.trainer.pulse import NODE
from components.trainer.seeding import seed
from components.trainer.shares import note, shared
from components.trainer.team import Team, gather
from components.trainer.together import Together
from components.trainer.validation import decoder
from models import tasks

# Whose answers the serving check compares with those of the exported model.
_ROWS_IN_MEMORY = 8


def run_fn(fn_args: Any) -> None:
    """Trains the model and exports it.

    Args:
        fn_args: TFX's ``FnArgs``. ``custom_config`` holds ``task``, the YAML's sections
            ``model``, ``training`` and ``search``, and ``checkpoints``, the folder of this
            training's checkpoints, which outlives the run: a killed training goes on from there,
            and a finished one whose search alone has changed is only exported again. ``start`` is
            what ``warm_start.begin`` takes.

    Raises:
        UserError: the train split has no usable row.
    """
    training = fn_args.custom_config["training"]
    if training["devices"] == "workers":
        member.lead(fn_args)
    else:
        train_with(fn_args, gather(training))


def train_with(fn_args: Any, team: Team | None) -> None:
    """The same, in this process and on the devices of a team."""
    config = precision.resolved(fn_args.custom_config)
    training = config["training"]
    task = tasks.get(config["task"])
    seed(training)

    graph = tft.TFTransformOutput(fn_args.transform_graph_path)
    texts = task.description.text_features
    folder = f"{fn_args.transform_graph_path}/tokenizer"
    tokenizers, serialized = read_tokenizers(folder, texts), read_pieces(folder, texts)
    pieces = {name: int(t.vocab_size().numpy()) for name, t in tokenizers.items()}
    train, held_out = (
        Batches(
            files,
            graph.transformed_feature_spec(),
            task,
            batch_tokens=training["batch_tokens"],
            max_length=training["max_length"],
            seed=training["seed"],
            fixed_shapes=training["jit_compile"],
        )
        for files in (fn_args.train_files, fn_args.eval_files)
    )
    rows = _counted(train, held_out, training["max_length"])
    files = config["model"].get("pretrained") or {}

    def build() -> Any:
        model = task.build(config["model"], training, pieces)
        vectors.freeze(model, task, files)
        return model

    if team is not None and not team.chief:
        model = build()
        compile_model(model, training)
        nowhere, along = NoCheckpoints(config["checkpoints"]), Together(team, model, build)
        fit(model, shared(train, team), held_out, training, nowhere, "", together=along)
        return
    model = task.build(config["model"], training, pieces)
    pretrained = vectors.apply(model, task, files, tokenizers) if files else {}
    compile_model(model, training)
    checkpoints = Checkpoints(config["checkpoints"])
    started = warm_start.begin(model, task, config, serialized, checkpoints)
    decode = decoder(held_out, task, config, tokenizers, pieces)
    together, shares = None, None
    if team is not None:
        together, shares = Together(team, model, build), shared(train, team)
        events.emit("note", node=NODE, text=note(shares, team, len(train.paths())))
    position = fit(
        model,
        shares or train,
        held_out,
        training,
        checkpoints,
        fn_args.model_run_dir,
        decode,
        together,
    )

    some = held_out.rows().filter(task.is_complete).take(_ROWS_IN_MEMORY)
    asked = [task.asked(row, tokenizers) for row in some]
    # A copy: TensorFlow puts containers of its own into those that an exported module holds.
    export(model, task, copy.deepcopy(config), tokenizers, fn_args.serving_model_dir, asked)
    keep(Path(fn_args.serving_model_dir), model, config, serialized)
    model.save(Path(fn_args.model_run_dir) / "model.keras")
    record = {
        "parameters": model.count_params(),
        "pieces": pieces,
        "rows": rows,
        "steps": position.step,
        "epochs": position.epoch,
        "seconds": round(position.seconds, 1),
        "target_tokens": position.tokens,
        "finished": position.finished,
        "history": position.history,
        "best_step": position.best_step,
        "averaged": position.averaged,
        "pretrained": pretrained,
        "warm_start": started,
        "devices": team.size if team else 1,
        "precision": training["precision"],
    }
    atomic_write(Path(fn_args.model_run_dir) / "training.json", json.dumps(record, indent=2))
    events.emit("note", node=NODE, text=f"ended by {position.finished}")
    checkpoints.prune_others(keep=2)


def _counted(train: Batches, held_out: Batches, longest: int) -> dict[str, dict[str, int]]:
    """How many rows both splits have; tells of those that are left out.

    Raises:
        UserError: a split has none to train on.
    """
    rows = {"train": train.count(), "eval": held_out.count()}
    for split, counts in rows.items():
        if not counts["usable"]:
            raise UserError(
                f"the {split} split has no row to train on: {counts['incomplete']} not whole "
                f"(an empty side, or an answer that cannot be given), {counts['too_long']} longer "
                f"than {longest} pieces",
                where="training.max_length",
                remedy="Raise training.max_length, or bring more data.",
            )
        if counts["incomplete"] or counts["too_long"]:
            events.emit(
                "note",
                node=NODE,
                text=f"left out of {split}: longer than {longest} pieces: "
                f"{counts['too_long']}, not whole: {counts['incomplete']}",
            )
    return rows
