"""The folder of a training's checkpoints, named by everything that the training depends on."""

from pathlib import Path

from regard.components.settings.trainer import NODE, TrainerConfig, TrainingData
from regard.components.trainer.checkpoint import LAST, PREVIOUS
from regard.components.trainer.training_key import training_key
from regard.core import events, owned_folders


def with_checkpoint_key(config: TrainerConfig, data: TrainingData) -> TrainerConfig:
    """Return the configuration with the name of this training's folder, if it has none yet.

    Args:
        config: the configuration, with the model of a warm start.
        data: the files are read.
    """
    if config.checkpoint_key:
        return config
    key = training_key(config, data)
    if config.training.warm_start:
        key += f"-{config.start.digest[:16] if config.start else 'random'}"
    return config.model_copy(update={"checkpoint_key": key})


def with_default_folder(config: TrainerConfig, run_folder: str) -> TrainerConfig:
    """Return the configuration with a folder for checkpoints, if it names none.

    It is next to the folders of the node's executions, so that a later execution resumes.

    Args:
        config: the configuration.
        run_folder: the folder of this execution.
    """
    if config.checkpoints:
        return config
    folder = Path(run_folder).absolute().parent / "checkpoints"
    return config.model_copy(update={"checkpoints": str(folder)})


def report_other_checkpoints(folder: Path) -> None:
    """Say that a new training does not resume from the checkpoints of others.

    Args:
        folder: the folder of the training's own checkpoints.
    """
    if _has_checkpoint(folder) or not folder.parent.is_dir():
        return
    if _has_checkpoint(folder.parent):
        text = (
            f"{folder.parent} contains the checkpoint of a training whose settings are unknown. "
            f"It is neither resumed nor changed. To resume it, move its files to {folder}."
        )
        events.emit("warning", node=NODE, text=text)
    elif any(_has_checkpoint(path) for path in folder.parent.iterdir() if _is_complete(path)):
        text = (
            f"The checkpoints in {folder.parent} are those of trainings with other settings, code "
            "or data. This training starts from the beginning."
        )
        events.emit("note", node=NODE, text=text)


def _is_complete(folder: Path) -> bool:
    return folder.is_dir() and not owned_folders.is_hidden(folder)


def _has_checkpoint(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (LAST, PREVIOUS))
