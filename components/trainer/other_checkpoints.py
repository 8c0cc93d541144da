"""The folders of the checkpoints of other trainings, which a new training does not resume."""

from pathlib import Path

from regard.components.settings.trainer import NODE
from regard.components.trainer.checkpoint import LAST, PREVIOUS
from regard.core import events, owned_folders


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
