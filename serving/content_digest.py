"""The digest of everything that determines the outputs of a SavedModel."""

import os
from pathlib import Path

from regard.core.files import files_digest
from regard.serving.contract import IN_MEMORY, PIN, PROFILE, RECORD, TRAINING, WARMUP

_EXTRA = (IN_MEMORY, PROFILE, TRAINING, WARMUP)
# TensorFlow writes a random identifier to fingerprint.pb; the other files do not change outputs.
# Versions of earlier releases of Regard have a file mlmd_uuid.
_NOT_CONTENT = ("fingerprint.pb", "mlmd_uuid", RECORD, PIN, *(Path(file).name for file in _EXTRA))


def content_digest(model: Path) -> str:
    """Return a digest of a SavedModel in a folder, whatever its time, its record and its pin."""
    files = (path for path in model_tree(model) if path.is_file() and path.name not in _NOT_CONTENT)
    return files_digest(model, files)


def model_tree(folder: Path) -> list[Path]:
    """Return the folders and files below a folder, also behind links, sorted."""

    def raise_error(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return sorted(
        Path(parent, name)
        for parent, folders, files in os.walk(folder, onerror=raise_error, followlinks=True)
        for name in (*folders, *files)
    )
