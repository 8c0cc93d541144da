"""The Trainer's executor: TFX's own with run-time parameters and the models to start from."""

from pathlib import Path

import tensorflow as tf
from tfx import types
from tfx.components.trainer import fn_args_utils
from tfx.components.trainer.executor import GenericExecutor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from regard.components.common import runtime_parameters
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.registry.records import WARM_START, WarmStartRecord
from regard.components.registry.starting_models import find_ensemble, find_warm_start
from regard.components.registry.store import Registry
from regard.components.settings.trainer import (
    CONFIG,
    RUN,
    RunInputs,
    TrainerConfig,
    TrainingData,
)
from regard.components.trainer.training_key import training_key
from regard.core.errors import UserError
from regard.core.modules import load_object
from regard.models.settings.training import TrainingConfig
from regard.serving.contract import CONTRACT

RUN_FN = "regard.components.trainer.run_fn.run_fn"
_KEY = "training.run_fn"  # of another one
_ENVIRONMENT = (
    OSError,
    MemoryError,
    tf.errors.AbortedError,
    tf.errors.DeadlineExceededError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
)


class TrainerExecutor(GenericExecutor):
    """Calls ``run_fn`` with the run-time parameters, and with the models to start from."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Train and export a model.

        Raises:
            UserError: a ``run_fn`` of the user's own fails, or its model cannot be used.
            Exception: its error is one of the machine, such as a full disk or a lost worker.
        """
        if exec_properties["run_fn"] == RUN_FN:
            super().Do(input_dict, output_dict, exec_properties)
            return
        try:
            load_object(":".join(exec_properties["run_fn"].rsplit(".", 1)))
            super().Do(input_dict, output_dict, exec_properties)
        except UserError as error:
            where = error.where or _KEY
            raise error.with_texts(error.message, where, error.remedy) from error
        except (Exception, SystemExit) as error:
            if _is_of_environment(error):  # a run has its own words, and may be repeated
                raise
            remedy = "The log of the run has the traceback."
            raise UserError(f"{type(error).__name__}: {error}", _KEY, remedy) from error
        model = path_utils.serving_model_path(artifact_utils.get_single_uri(output_dict["model"]))
        if not Path(model, CONTRACT).is_file():
            remedy = "Call regard.components.write_contract(fn_args.serving_model_dir, task) last."
            raise UserError("It has exported a model without a contract.", _KEY, remedy)

    def _GetFnArgs(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> fn_args_utils.FnArgs:
        """Return the arguments of ``run_fn``, with a parsed ``custom_config``.

        Raises:
            UserError: a parameter is invalid, nothing ends the training, or a model to start from
                does not exist.
        """
        fn_args = super()._GetFnArgs(input_dict, output_dict, exec_properties)
        compiled, inputs = fn_args.custom_config[CONFIG], fn_args.custom_config[RUN]
        settings = runtime_parameters.apply_parameters(compiled, exec_properties)
        config = TrainerConfig.model_validate(settings)
        _check_limits(config.training)
        if inputs.get("published"):
            data, model = TrainingData.from_fn_args(fn_args), output_dict["model"]
            inputs = {**inputs, **_find_models(config, inputs["published"], data, model)}
        fn_args.custom_config = {CONFIG: config, RUN: RunInputs.model_validate(inputs)}
        return fn_args


def _is_of_environment(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is one of the machine or of other workers."""
    while error is not None and not isinstance(error, _ENVIRONMENT):
        error = error.__cause__
    return error is not None


def _find_models(
    config: TrainerConfig, published: str, data: TrainingData, model: list[types.Artifact]
) -> dict[str, object]:
    """Return the models to start from, as ``RunInputs`` has them.

    Args:
        config: the settings of this run.
        published: the folder in the registry that the models of this pipeline are pushed to.
        data: the files of the training.
        model: the output ``model``. A property of it records the start, for the Pusher.

    Raises:
        UserError: a model does not exist.
    """
    registry, name = Registry(Path(published).parent), Path(published).name
    start: dict[str, str] = {}
    if config.training.warm_start:
        key = training_key(config, data)
        start = find_warm_start(config.training, registry, name, key)
        record = WarmStartRecord(start=start, training=key)
        artifact = artifact_utils.get_single_instance(model)
        artifact.set_string_custom_property(WARM_START, record.model_dump_json())
    ensemble = find_ensemble(config.training, registry, config.task)
    return {"start": start, "ensemble": ensemble}


def _check_limits(training: TrainingConfig) -> None:
    """Raise a UserError if no limit is left: a run-time parameter may remove ``max_epochs``."""
    limits = (training.max_epochs, training.max_steps, training.max_minutes)
    if all(limit is None for limit in (*limits, training.early_stopping)):
        remedy = "Start a run with max_epochs above 0, or compile the pipeline with "
        remedy += "training.max_steps, training.max_minutes or training.early_stopping."
        raise UserError(
            "The training has no limit and would never end.", "training.max_epochs", remedy
        )
