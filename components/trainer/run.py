"""``run_fn``: what TFX's Trainer calls."""

from __future__ import annotations

from typing import Any

from components.trainer import member
from components.trainer.team import gather
from components.trainer.train_and_export import train_and_export


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
        train_and_export(fn_args, gather(training))
