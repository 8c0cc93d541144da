"""A whole training on the devices of a team, and what it leaves behind."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from components import events
from components.files import atomic_write
from components.trainer.checkpoint import Checkpoints
from components.trainer.export import export
from components.trainer.kept import keep
from components.trainer.pulse import NODE
from components.trainer.team import Team
from components.trainer.training import Source, train

# Whose answers the serving check compares with those of the exported model.
_ROWS_IN_MEMORY = 8


def train_and_export(fn_args: Any, team: Team | None) -> None:
    """``run_fn`` in this process: the SavedModel, what a later training needs, and the record.

    Args:
        fn_args: as ``run_fn`` takes them.
        team: the devices that train; None for one.

    Raises:
        UserError: a split has no usable row.
    """
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
