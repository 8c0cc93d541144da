"""``run_fn``: what TFX's Trainer calls."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from components import events
from components.files import atomic_write
from components.trainer import member
from components.trainer.checkpoint import Checkpoints
from components.trainer.export import export
from components.trainer.kept import keep
from components.trainer.pulse import NODE
from components.trainer.team import Team, gather
from components.trainer.training import Source, train

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
        UserError: a split has no usable row.
    """
    training = fn_args.custom_config["training"]
    if training["devices"] == "workers":
        member.lead(fn_args)
    else:
        train_with(fn_args, gather(training))


def train_with(fn_args: Any, team: Team | None) -> None:
    """The same, in this process and on the devices of a team."""
    source = Source(fn_args.train_files, fn_args.eval_files, fn_args.transform_graph_path)
    trained = train(fn_args.custom_config, source, fn_args.model_run_dir, team)
    if trained is None:
        return
    config = trained.config
    task, model, position = trained.task, trained.model, trained.position

    some = trained.held_out.rows().filter(task.is_complete).take(_ROWS_IN_MEMORY)
    asked = [task.asked(row, trained.tokenizers) for row in some]
    # A copy: TensorFlow puts containers of its own into those that an exported module holds.
    settings = copy.deepcopy(config)
    export(model, task, settings, trained.tokenizers, fn_args.serving_model_dir, asked)
    keep(Path(fn_args.serving_model_dir), model, config, trained.serialized)
    model.save(Path(fn_args.model_run_dir) / "model.keras")
    record = {
        "parameters": model.count_params(),
        "pieces": trained.pieces,
        "rows": trained.rows,
        "steps": position.step,
        "epochs": position.epoch,
        "seconds": round(position.seconds, 1),
        "target_tokens": position.tokens,
        "finished": position.finished,
        "history": position.history,
        "best_step": position.best_step,
        "averaged": position.averaged,
        "pretrained": trained.pretrained,
        "warm_start": trained.started,
        "devices": team.size if team else 1,
        "precision": config["training"]["precision"],
    }
    atomic_write(Path(fn_args.model_run_dir) / "training.json", json.dumps(record, indent=2))
    events.emit("note", node=NODE, text=f"ended by {position.finished}")
    Checkpoints(config["checkpoints"]).prune_others(keep=2)
