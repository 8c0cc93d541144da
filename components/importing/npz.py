"""Models in a folder with ``model.yaml``, ``weights.npz`` and SentencePiece models.

The format is for scripts that convert models of other frameworks; the names of the weights are
those of ``regard import npz --list``. See docs/how-to/import.md.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.common.tokenizers import create_tokenizers
from regard.components.importing.folder_tokens import (
    FolderTokens,
    ReorderedWeights,
    find_tokenizer,
    row_axis,
    side_of,
)
from regard.components.importing.foreign_model import (
    ForeignModel,
    build_random,
    create_config,
    read_settings,
    weight_name,
)
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import check_regular
from regard.models import tasks
from regard.models.tasks.text_to_text.settings import PARTS as TEXT_TO_TEXT

_SETTINGS, _WEIGHTS = "model.yaml", "weights.npz"
_KEYS = ("task", "model", "search", "tags", "licence")
_READ_ERRORS: Any = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)
_READ_ERRORS += (MemoryError, zlib.error)
_REMEDY = "See docs/how-to/import.md."


class NpzFolder(FolderTokens):
    """The files of a folder, except the weights.

    Args:
        folder: the folder.

    Attributes:
        config: the sections of a configuration that describe the model.
        licence: the licence that ``model.yaml`` states.
    """

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.files.append(_SETTINGS)
        values = _read_settings(folder / _SETTINGS)
        tags, task = values.get("tags") or [], values.get("task", "translation")
        is_task = isinstance(task, str) and task in tasks.TASKS
        if not is_task or tasks.describe(task).parts != TEXT_TO_TEXT:
            message = f"There is no task {task!r} from texts to texts."
            raise UserError(message, str(folder / _SETTINGS), _REMEDY)
        self.config = create_config(
            {
                "task": task,
                "model": values.get("model", {}),
                "search": values.get("search", {}),
                "training": {},
                "tags": {"names": tags} if tags else None,
            },
            folder / _SETTINGS,
        )
        self.licence = str(values.get("licence") or "")
        for side in tasks.describe(self.config.task).text_features:
            self.read_side(side, *find_tokenizer(folder, side), tags)


class NpzWeights(ReorderedWeights):
    """The weights of ``weights.npz``.

    Args:
        files: the other files of the folder.
        path: the file.

    Raises:
        UserError: the file is missing or damaged, or has other names than the model.
    """

    def __init__(self, files: NpzFolder, path: Path):
        super().__init__(files.tables)
        self._files, self._path = files, path
        try:
            check_regular(path)  # a pipe would never end
            arrays = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise NotFoundError("The file does not exist.", str(path), _REMEDY) from None
        except _READ_ERRORS as error:
            raise UserError(f"The weights cannot be read: {error}", str(path), _REMEDY) from None
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise UserError("The file is no archive of arrays.", str(path), _REMEDY)
        self._arrays, self._expected = arrays, _shapes(files)
        if others := sorted({*arrays.files} ^ set(self._expected)):
            is_missing = others[0] in self._expected
            message = f"The file lacks {others[0]}." if is_missing else f"{others[0]} is no weight."
            raise UserError(message, str(path), self._remedy)

    @property
    def _remedy(self) -> str:
        return f"`regard import npz {self._files.folder} --list` prints the names and shapes."

    def read(self, name: str) -> np.ndarray:
        try:
            shape, expected = self._stored_shape(name), self._expected[name]
            if shape != expected:  # before an array of any size is read
                message = f"{name} has the shape {shape} instead of {expected}."
                raise UserError(message, str(self._path), self._remedy)
            return np.asarray(self._arrays[name], np.float32)
        except _READ_ERRORS as error:
            raise UserError(f"{name} cannot be read: {error}", str(self._path), _REMEDY) from None

    def _stored_shape(self, name: str) -> tuple[int, ...]:
        with zipfile.ZipFile(self._path) as archive, archive.open(f"{name}.npy") as file:
            version = np.lib.format.read_magic(file)
            headers = {(1, 0): np.lib.format.read_array_header_1_0}
            read = headers.get(version, np.lib.format.read_array_header_2_0)
            return tuple(read(file)[0])


def read_npz(folder: Path) -> ForeignModel:
    """Read a model from a folder.

    Raises:
        UserError: a file is missing or damaged, or settings and weights differ.
    """
    files = NpzFolder(folder)
    return ForeignModel(
        kind="npz",
        folder=folder,
        config=files.config,
        tokenizers=files.tokenizers,
        read_weight=NpzWeights(files, folder / _WEIGHTS),
        files=[*files.files, _WEIGHTS],
        licence=files.licence,
    )


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the weights that a folder has to contain.

    Raises:
        UserError: ``model.yaml`` or a SentencePiece model is missing or damaged.
    """
    return _shapes(NpzFolder(folder))


def _shapes(files: NpzFolder) -> dict[str, tuple[int, ...]]:
    model = build_random(files.folder, files.config, create_tokenizers(files.tokenizers))
    shapes = {}
    for weight in model.weights:
        name, sizes = weight_name(weight.path), list(weight.shape)
        if (axis := row_axis(name)) is not None:
            sizes[axis] = files.sizes[side_of(name)]
        shapes[name] = tuple(sizes)
    return shapes


def _read_settings(path: Path) -> dict[str, Any]:
    remedy = f"Write a mapping with {', '.join(_KEYS)}. {_REMEDY}"
    values = read_settings(path, remedy)
    if unknown := sorted({*map(str, values)} - {*_KEYS}):
        raise UserError(f"There is no key {unknown[0]!r}.", str(path), remedy)
    return values
