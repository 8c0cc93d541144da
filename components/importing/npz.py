"""Models in a folder with ``model.yaml``, ``weights.npz`` and SentencePiece models.

The format is for scripts that convert models of other frameworks; the names of the weights are
those of ``regard import npz --list``. See docs/how-to/import.md.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS
from regard.components.importing.foreign_model import ForeignModel, weight_name
from regard.components.importing.tokenizer_files import read_tokenizer, renumber
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import read_regular
from regard.core.yaml_text import YAMLError, from_yaml
from regard.models import tasks
from regard.models.tags import user_symbols

_SETTINGS, _WEIGHTS = "model.yaml", "weights.npz"
_KEYS = ("task", "model", "search", "tags", "licence")
_MAX_SETTINGS_BYTES = 1 << 20
_MAX_VOCABULARY_BYTES = 64 << 20
_SHARED = "shared"  # the name of the SentencePiece model of both sides
# The last parts of the names of weights with a row per token, and the axis of the rows.
_ROW_AXES = {"embedding/table": 0, "logits_bias": 0, "logits/kernel": 1, "logits/bias": 0}
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
        rows: for each side the row of each token in the matrices of the folder.
        sizes: for each side the number of rows of its matrices.
        files: the names of the files that were read.
    """

    def __init__(self, folder: Path):
        self.folder, self.files = folder, [_SETTINGS]
        values = _read_settings(folder / _SETTINGS)
        tags = values.get("tags") or []
        try:
            self.config = TrainerConfig.model_validate(
                {
                    "task": values.get("task", "translation"),
                    "model": values.get("model", {}),
                    "search": values.get("search", {}),
                    "training": {},
                    "tags": {"names": tags} if tags else None,
                }
            )
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise UserError(f"{key}: {first['msg']}", str(folder / _SETTINGS), _REMEDY) from None
        except KeyError:
            message = f"There is no task {values['task']!r}."
            raise UserError(message, str(folder / _SETTINGS), _REMEDY) from None
        self.licence = str(values.get("licence") or "")
        symbols = user_symbols(tags, "bpe")
        self.tokenizers: dict[str, bytes] = {}
        self.rows: dict[str, np.ndarray] = {}
        self.sizes: dict[str, int] = {}
        for side in tasks.describe(self.config.task).text_features:
            name = f"{side if (folder / f'{side}.model').is_file() else _SHARED}.model"
            serialized = read_tokenizer(folder / name)
            self.tokenizers[side] = renumber(folder / name, serialized, symbols=symbols)
            vocabulary = folder / Path(name).with_suffix(".vocab")
            has_list = vocabulary.is_file()
            texts = _read_lines(vocabulary) if has_list else read_vocabulary(serialized)
            tokens = read_vocabulary(self.tokenizers[side])[len(SPECIAL_TOKENS) :]
            self.rows[side] = _rows(texts, tokens, folder / name)
            self.sizes[side] = max(len(texts), int(self.rows[side].max()) + 1)
            self.files += [name, *([vocabulary.name] if has_list else [])]


def read_npz(folder: Path) -> ForeignModel:
    """Read a model from a folder.

    Raises:
        UserError: a file is missing or damaged, or settings and weights differ.
    """
    files = NpzFolder(folder)
    path = folder / _WEIGHTS
    try:
        arrays = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise NotFoundError("The file does not exist.", str(path), _REMEDY) from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"The weights cannot be read: {error}", str(path), _REMEDY) from None
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise UserError("The file is no archive of arrays.", str(path), _REMEDY)
    names = set(_names(files))
    if others := sorted({*arrays.files} ^ names):
        missing = [name for name in others if name in names]
        message = f"There is no weight {missing[0]}." if missing else f"{others[0]} is no weight."
        remedy = f"`regard import npz {folder} --list` prints the names."
        raise UserError(message, str(path), remedy)

    def read(name: str) -> np.ndarray:
        try:
            value = np.asarray(arrays[name], np.float32)
        except (OSError, ValueError, zipfile.BadZipFile, zipfile.error, EOFError) as error:
            raise UserError(f"{name} cannot be read: {error}", str(path), _REMEDY) from None
        rest = name.partition("/")[2]
        if rest not in _ROW_AXES:
            return value
        rows, axis = files.rows[_side(name)], _ROW_AXES[rest]
        if value.ndim <= axis or value.shape[axis] != files.sizes[_side(name)]:
            message = f"{name} has the shape {value.shape}; the vocabulary has "
            message += f"{files.sizes[_side(name)]:,} tokens."
            raise UserError(message, str(path), _REMEDY)
        return value.take(rows, axis=axis)

    return ForeignModel(
        kind="npz",
        folder=folder,
        config=files.config,
        tokenizers=files.tokenizers,
        read_weight=read,
        files=[*files.files, _WEIGHTS],
        licence=files.licence,
    )


def weight_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the weights that a folder has to contain.

    Raises:
        UserError: ``model.yaml`` or a SentencePiece model is missing or damaged.
    """
    files = NpzFolder(folder)
    shapes = dict(_names(files))
    for name, shape in shapes.items():
        rest = name.partition("/")[2]
        if rest in _ROW_AXES:
            sizes = list(shape)
            sizes[_ROW_AXES[rest]] = files.sizes[_side(name)]
            shapes[name] = tuple(sizes)
    return shapes


def _side(name: str) -> str:
    """Return the text feature of the vocabulary of a weight."""
    return "source" if name.startswith("encoder/") else "target"


def _names(files: NpzFolder) -> dict[str, tuple[int, ...]]:
    """Return the names of the weights with the shapes that they have in the model."""
    foreign = ForeignModel(
        "npz", files.folder, files.config, files.tokenizers, lambda name: np.zeros(0), ()
    )
    _, model, _ = foreign.build_random()
    return {weight_name(weight.path): tuple(weight.shape) for weight in model.weights}


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


def _rows(texts: list[str], tokens: list[str], path: Path) -> np.ndarray:
    """Return the row of each id of Regard in matrices whose rows are those of texts.

    Args:
        texts: the text of each row.
        tokens: the tokens from the id 4.
        path: the SentencePiece model, for messages.
    """
    rows = {text: number for number, text in reversed(list(enumerate(texts)))}
    # OpenNMT-tf has one more row for unknown tokens.
    unknown = next((rows[name] for name in _UNKNOWN if name in rows), len(texts))
    end = next((rows[name] for name in _ENDS if name in rows), None)
    if end is None:
        message = f"The vocabulary has no end of a sentence: {' or '.join(_ENDS)}."
        raise UserError(message, str(path), _REMEDY)
    begin = next((rows[name] for name in _BEGINNINGS if name in rows), end)
    padding = next((rows[name] for name in _PADDINGS if name in rows), unknown)
    return np.array([padding, unknown, begin, end, *(rows.get(text, unknown) for text in tokens)])
