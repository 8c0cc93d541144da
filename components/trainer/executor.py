"""The Trainer's work: TFX's own executor, told what this run sets anew."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tfx.components.trainer import fn_args_utils
from tfx.components.trainer.executor import GenericExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from components import parameters
from components.errors import UserError
from components.files import sha256_file
from components.trainer.holding import held
from components.trainer.pulse import NODE

_LIMITS = ("max_epochs", "max_steps", "max_minutes", "early_stop")


class Executor(GenericExecutor):
    """Calls ``run_fn`` with the settings of this run, and holds the folder of its checkpoints."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Trains; waits first while another run is at the same training."""
        with contextlib.ExitStack() as self._held:
            super().Do(input_dict, output_dict, exec_properties)

    def _GetFnArgs(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> fn_args_utils.FnArgs:
        found = self.settled(input_dict, output_dict, exec_properties)
        self._held.enter_context(held(found.custom_config["checkpoints"], NODE))
        return found

    def settled(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> fn_args_utils.FnArgs:
        """What ``run_fn`` takes, with the settings of this run and the folder of its checkpoints.

        Raises:
            UserError: a setting is not possible, or nothing would end the training.
        """
        found = super()._GetFnArgs(input_dict, output_dict, exec_properties)
        config = parameters.applied(found.custom_config, exec_properties)
        _refuse_endless(config["training"])
        if config.pop("checkpoints_by_content", False):
            folders = [
                Path(artifact_utils.get_single_uri(input_dict["examples"])),
                Path(artifact_utils.get_single_uri(input_dict["transform_graph"]), "tokenizer"),
            ]
            config["checkpoints"] = checkpoints_of(config, folders)
        found.custom_config = config
        return found


def _refuse_endless(training: Mapping[str, Any]) -> None:
    """The configuration has an end; a run's own number of epochs may have taken it away."""
    if all(training[limit] is None for limit in _LIMITS):
        raise UserError(
            "nothing ends this training",
            where="max_epochs",
            remedy="Start a run with max_epochs above 0, or compile one with training.max_steps, "
            "training.max_minutes or training.early_stop.",
        )


def checkpoints_of(config: Mapping[str, Any], folders: Iterable[Path]) -> str:
    """The folder of the checkpoints, told apart by what nobody knew when the graph was made.

    That is the content of the examples and of the tokenizer, of the word vectors' files, and the
    settings of this run. A training that began with the same goes on there.

    Args:
        config: what ``run_fn`` takes; its ``checkpoints`` is the folder so far.
        folders: hold the files that are read; one that is not there has none.
    """
    digest = hashlib.sha256(json.dumps(config["training"], sort_keys=True).encode())
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(folder)} {sha256_file(path)}\n".encode())
    for named in _named_files(config["model"].get("pretrained") or {}):
        digest.update(f"{sha256_file(named)}\n".encode())
    return f"{config['checkpoints']}-{digest.hexdigest()[:16]}"


def _named_files(pretrained: Mapping[str, Any]) -> list[str]:
    """The files that the section ``model.pretrained`` names."""
    texts = (value for value in pretrained.values() if isinstance(value, str))
    return sorted(filter(os.path.isfile, texts))
