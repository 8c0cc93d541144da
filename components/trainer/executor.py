"""The Trainer's executor: TFX's own with run-time parameters and a lock on the checkpoints."""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from tfx.components.trainer import fn_args_utils
from tfx.components.trainer.executor import GenericExecutor
from tfx.types import artifact_utils

from regard.components.common import runtime_parameters
from regard.components.common.component import Artifacts, Properties
from regard.components.common.errors import UserError
from regard.components.common.files import folder_digest, sha256_file
from regard.components.registry.records import WARM_START, WarmStartRecord
from regard.components.registry.starting_models import find_ensemble, find_warm_start
from regard.components.registry.store import Registry
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.checkpoint import checkpoint_lock
from regard.models.settings.training import TrainingConfig


class TrainerExecutor(GenericExecutor):
    """Calls ``run_fn`` with the run-time parameters while it holds the checkpoint lock."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Trains, after any other run of the same training has ended."""
        with contextlib.ExitStack() as self._locks:
            super().Do(input_dict, output_dict, exec_properties)

    def _GetFnArgs(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> fn_args_utils.FnArgs:
        fn_args = self.resolve_fn_args(input_dict, output_dict, exec_properties)
        self._locks.enter_context(checkpoint_lock(fn_args.custom_config["checkpoints"]))
        return fn_args

    def resolve_fn_args(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> fn_args_utils.FnArgs:
        """Return the arguments of ``run_fn``, with run-time parameters and checkpoint folder.

        Raises:
            UserError: a parameter is invalid, nothing ends the training, or a model to start from
                does not exist.
        """
        fn_args = super()._GetFnArgs(input_dict, output_dict, exec_properties)
        settings = runtime_parameters.apply_parameters(fn_args.custom_config, exec_properties)
        config = TrainerConfig.model_validate(settings)
        _check_limits(config.training)
        if config.checkpoints_by_content:
            folders = [
                Path(artifact_utils.get_single_uri(input_dict["examples"])),
                Path(artifact_utils.get_single_uri(input_dict["transform_graph"]), "tokenizer"),
            ]
            folder = checkpoint_folder(config, folders)
            registry, name = Registry(Path(config.published).parent), Path(config.published).name
            key = os.path.basename(folder)
            start = find_warm_start(config.training, registry, name, key)
            if config.training.warm_start:
                model = artifact_utils.get_single_instance(output_dict["model"])
                record = WarmStartRecord(start=start, training=key)
                model.set_string_custom_property(WARM_START, record.model_dump_json())
                folder += f"-{start.get('digest', 'random')[:16]}"
            ensemble = find_ensemble(config.training, registry, config.task)
            settings |= {"checkpoints_by_content": False, "checkpoints": folder}
            settings |= {"start": start, "ensemble": ensemble}
            config = TrainerConfig.model_validate(settings)
        fn_args.custom_config = config.model_dump(mode="json")
        return fn_args


def _check_limits(training: TrainingConfig) -> None:
    """Raise a UserError if no limit is left: a run-time parameter may remove ``max_epochs``."""
    limits = (training.max_epochs, training.max_steps, training.max_minutes)
    if all(limit is None for limit in (*limits, training.early_stopping)):
        remedy = "Start a run with max_epochs above 0, or compile the pipeline with "
        remedy += "training.max_steps, training.max_minutes or training.early_stopping."
        raise UserError("The training has no limit and would never end.", "max_epochs", remedy)


def checkpoint_folder(config: TrainerConfig, folders: Iterable[Path]) -> str:
    """Return a checkpoint folder whose name depends on the content that the training reads.

    The content (examples, tokenizers, pretrained embeddings) and this run's settings are unknown
    when the graph is compiled. A training with equal content resumes from the same folder.

    Args:
        config: its ``checkpoints`` is the beginning of the name.
        folders: their files are read; a missing folder counts as empty.
    """
    digest = hashlib.sha256(config.training.training_json().encode())
    for folder in folders:
        digest.update(folder_digest(folder).encode())
    pretrained = getattr(config.model, "pretrained", None)
    for path in sorted(filter(os.path.isfile, pretrained.files().values() if pretrained else ())):
        digest.update(f"{sha256_file(path)}\n".encode())
    return f"{config.checkpoints}-{digest.hexdigest()[:16]}"
