"""Models in a folder with ``model.yaml``, ``weights.npz`` and SentencePiece models.

The format is for scripts that convert models of other frameworks; the names of the weights are
those of ``regard import npz --list``. See docs/how-to/import.md.
"""

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.common.tokenizers import create_tokenizers
from regard.components.importing.foreign_model import (
    ForeignModel,
    WeightReader,
    build_random,
    create_config,
    weight_name,
)
from regard.components.importing.token_table import NEVER, TokenTable
from regard.components.importing.tokenizer_files import ordinary_tokens, read_tokenizer, renumber
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import check_regular, read_regular
from regard.core.yaml_text import YAMLError, from_yaml
from regard.models import tasks
from regard.models.tags import user_symbols
from regard.models.tasks.text_to_text.settings import PARTS as TEXT_TO_TEXT
from regard.models.vocabulary import EOS, PAD, UNK

_SETTINGS, _WEIGHTS = "model.yaml", "weights.npz"
_KEYS = ("task", "model", "search", "tags", "licence")
_MAX_SETTINGS_BYTES = 1 << 20
_MAX_VOCABULARY_BYTES = 64 << 20
_SHARED = "shared"  # the name of the SentencePiece model of both sides
# The last parts of the names of weights with a row per token, and the axis of the rows.
_ROW_AXES = {"embedding/table": 0, "logits_bias": 0, "logits/kernel": 1, "logits/bias": 0}
_READ_ERRORS: Any = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)
_READ_ERRORS += (MemoryError, zlib.error)
_REMEDY = "See docs/how-to/import.md."
# The names of the special tokens in SentencePiece, JoeyNMT and OpenNMT.
_PADDINGS, _UNKNOWN = ("<pad>", "<blank>"), ("<unk>", "\u2047")
_BEGINNINGS, _ENDS = ("<s>", "<bos>"), ("</s>", "<eos>")


class NpzFolder:
    """The files of a folder, except the weights.

    Args:
        folder: the folder.

    Attributes:
        config: the sections of a configuration that describe the model.
        licence: the licence that ``model.yaml`` states.
        tokenizers: the serialized SentencePiece model of each side, with Regard's ids.
        tables: the tokens of each side, and their rows in the matrices of the folder.
        sizes: for each side the number of rows of its matrices.
        files: the names of the files that were read.
    """

    def __init__(self, folder: Path):
        self.folder, self.files = folder, [_SETTINGS]
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
        self.tokenizers: dict[str, bytes] = {}
        self.tables: dict[str, TokenTable] = {}
        self.sizes: dict[str, int] = {}
        for side in tasks.describe(self.config.task).text_features:
            name = f"{side if (folder / f'{side}.model').is_file() else _SHARED}.model"
            serialized = read_tokenizer(folder / name)
            vocabulary = folder / Path(name).with_suffix(".vocab")
            has_list = os.path.lexists(vocabulary)
            texts = _read_lines(vocabulary) if has_list else read_vocabulary(serialized)
            table = _table(texts, ordinary_tokens(serialized), tags, folder / name)
            self.tables[side], self.sizes[side] = table, len(texts)
            self.tokenizers[side] = renumber(folder / name, serialized, table)
            self.files += [name, *([vocabulary.name] if has_list else [])]


class NpzWeights(WeightReader):
    """The weights of ``weights.npz``.

    Args:
        files: the other files of the folder.
        path: the file.

    Raises:
        UserError: the file is missing or damaged, or has other names than the model.
    """

    def __init__(self, files: NpzFolder, path: Path):
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

    def __call__(self, name: str) -> np.ndarray:
        try:
            shape, expected = self._stored_shape(name), self._expected[name]
            if shape != expected:  # before an array of any size is read
                message = f"{name} has the shape {shape} instead of {expected}."
                raise UserError(message, str(self._path), self._remedy)
            value = np.asarray(self._arrays[name], np.float32)
        except _READ_ERRORS as error:
            raise UserError(f"{name} cannot be read: {error}", str(self._path), _REMEDY) from None
        axis = _row_axis(name)
        if axis is None:
            return value
        table = self._files.tables[_side(name)]
        value = value.take(table.rows, axis=axis)
        if name.endswith("bias"):
            value[table.copies] = NEVER
        return value

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
        if (axis := _row_axis(name)) is not None:
            sizes[axis] = files.sizes[_side(name)]
        shapes[name] = tuple(sizes)
    return shapes


def _side(name: str) -> str:
    """Return the text feature of the vocabulary of a weight."""
    return "source" if name.startswith("encoder/") else "target"


def _row_axis(name: str) -> int | None:
    """Return the axis of the tokens of a weight; None without one."""
    return _ROW_AXES.get(name.partition("/")[2])


def _read_settings(path: Path) -> dict[str, Any]:
    remedy = f"Write a mapping with {', '.join(_KEYS)}. {_REMEDY}"
    try:
        values = from_yaml(read_regular(path, _MAX_SETTINGS_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise NotFoundError("The file does not exist.", str(path), remedy) from None
    except (OSError, ValueError, YAMLError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path), remedy) from None
    if not isinstance(values, dict):
        raise UserError("The file has no mapping.", str(path), remedy)
    if unknown := sorted({*map(str, values)} - {*_KEYS}):
        raise UserError(f"There is no key {unknown[0]!r}.", str(path), remedy)
    return values


def _read_lines(path: Path) -> list[str]:
    """Return the tokens of a file with one on each line; what follows a tab does not count."""
    try:
        text = read_regular(path, _MAX_VOCABULARY_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path), _REMEDY) from None
    return [line.partition("\t")[0] for line in text.rstrip("\n").split("\n")]


def _table(texts: list[str], tokens: list[str], tags: list[str], path: Path) -> TokenTable:
    """Return the tokens of a side; ``texts`` gets the row of unknown tokens if it lacks one.

    Args:
        texts: the text of each row of the matrices.
        tokens: the tokens of the SentencePiece model, without the special ones.
        tags: the tags of sources.
        path: the SentencePiece model, for messages.
    """

    def find(names: tuple[str, ...], default: int | None = None) -> int | None:
        return next((texts.index(name) for name in names if name in texts), default)

    if find(_UNKNOWN) is None:  # OpenNMT-tf has one more row than tokens
        texts.append(_UNKNOWN[0])
    unknown, end = find(_UNKNOWN), find(_ENDS)
    if end is None or unknown is None:
        message = f"The vocabulary has no end of a sentence: {' or '.join(_ENDS)}."
        raise UserError(message, str(path), _REMEDY)
    special = {PAD: find(_PADDINGS, unknown) or 0, UNK: unknown, EOS: end}
    start = find(_BEGINNINGS, end) or 0
    rows = {text: row for row, text in reversed(list(enumerate(texts)))}
    symbols = {
        text: rows.get(text, rows.get(f"<{tag}>", unknown))
        for tag in tags
        for text in user_symbols([tag], "bpe")
    }
    missing = [text for text in tokens if text not in rows and text not in symbols]
    known = {row: f"<unused {row}>" if text in symbols else text for row, text in enumerate(texts)}
    return TokenTable.create(known, special, start, missing, symbols)
