"""Transformers of OpenNMT-tf 2, in a folder with a checkpoint, vocabularies and tokenizers.

Klein et al. 2020, "The OpenNMT Neural Machine Translation Toolkit: 2020 Edition".
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.importing.folder_tokens import FolderTokens, find_tokenizer
from regard.components.importing.foreign_model import ForeignModel, create_config
from regard.components.importing.named_tensors import NamedTensors, count_layers
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import check_regular

_PREFIX, _SUFFIX = "model/", "/.ATTRIBUTES/VARIABLE_VALUE"
_EPSILON = 1e-3  # the default of Keras
_REMEDY = "See docs/how-to/import.md."
_NEWEST = "checkpoint"  # the name of the file that names the newest checkpoint
_MAX_ELEMENTS = 1 << 31
_READ_ERRORS = (tf.errors.OpError, ValueError, IndexError, OSError, RuntimeError)
_INPUTS = "examples_inputter/{}_inputter/embedding"
_SOURCE, _TARGET = _INPUTS.format("features"), _INPUTS.format("labels")
_OUTPUT, _OUTPUT_BIAS = "decoder/output_layer/kernel", "decoder/output_layer/bias"
# The parts of a layer: ours, and those of OpenNMT-tf.
_LAYER = {
    "attention/project": tuple(
        f"self_attention/layer/linear_{part}" for part in ("queries", "keys", "values")
    ),
    "attention/output": ("self_attention/layer/linear_output",),
    "attention_norm": ("self_attention/{norm}",),
    "cross/project_query": ("attention/0/layer/linear_queries",),
    "cross/project_memory": ("attention/0/layer/linear_keys", "attention/0/layer/linear_values"),
    "cross/output": ("attention/0/layer/linear_output",),
    "cross_norm": ("attention/0/{norm}",),
    "feed_forward/expand": ("ffn/layer/inner",),
    "feed_forward/contract": ("ffn/layer/outer",),
    "feed_forward_norm": ("ffn/{norm}",),
}
# OpenNMT-tf keeps these settings in another file. Its automatic configuration has this beam.
_SEARCH = {"type": "beam", "beam_size": 4, "length_penalty": 0.0}
_RELATIVE = "self_attention/layer/relative_position_"


def read_opennmt_tf(folder: Path, heads: int, read_end: bool = False) -> ForeignModel:
    """Read a folder with a checkpoint, SentencePiece models and vocabularies.

    Args:
        folder: the folder.
        heads: the number of attention heads, which a checkpoint does not record.
        read_end: whether sources end with ``</s>`` (``source_sequence_controls``).

    Raises:
        UserError: a file is missing or damaged, or the model computes something else than the
            Transformers of Regard.
    """
    path = _find_checkpoint(folder)
    tensors = CheckpointTensors(path)
    model = _model_section(tensors, heads, read_end, path)
    tokens = FolderTokens(folder)
    for side in ("source", "target"):
        tokenizer, vocabulary = find_tokenizer(folder, side)
        if vocabulary is None:
            missing = str(folder / Path(tokenizer).with_suffix(".vocab"))
            raise NotFoundError("The vocabulary does not exist.", missing, _REMEDY)
        tokens.read_side(side, tokenizer, vocabulary, last_is_unknown=True)
    for side, name in (("source", _SOURCE), ("target", _TARGET)):
        rows = tensors.shapes[tensors.table_name(name)][0]
        if rows != tokens.sizes[side]:
            message = f"The {side} vocabulary has {tokens.sizes[side] - 1:,} tokens, and the "
            message += f"embeddings of the checkpoint {rows:,} rows instead of one more."
            raise UserError(message, str(path), _REMEDY)
    sections = {"task": "translation", "model": model, "search": _SEARCH, "training": {}}
    return ForeignModel(
        kind="opennmt-tf",
        folder=folder,
        config=create_config({**sections, "tags": None}, path),
        tokenizers=tokens.tokenizers,
        read_weight=OpenNMTWeights(tensors, path, tokens.tables, is_transposed=False),
        files=[*_files(path), *dict.fromkeys(tokens.files)],
    )


def _find_checkpoint(folder: Path) -> Path:
    """Return the newest checkpoint of a folder, without the ends of its names."""
    checkpoints = {path.with_suffix("") for path in folder.glob("*.index")}
    try:
        check_regular(folder / _NEWEST)  # a pipe would never end
        latest = tf.train.latest_checkpoint(str(folder))
    except _READ_ERRORS:
        latest = None
    if latest is not None and folder / Path(latest).name in checkpoints:
        return folder / Path(latest).name
    if len(checkpoints) == 1:
        return checkpoints.pop()
    message = (
        f"The folder has {len(checkpoints)} checkpoints, and no file `checkpoint` that names one."
    )
    raise NotFoundError(message, str(folder), "Give a folder with one file *.index and its data.")


def _files(path: Path) -> list[str]:
    """Return the names of the files of a checkpoint."""
    data = sorted(path.parent.glob(f"{path.name}.data-*"))
    return [f"{path.name}.index", *(file.name for file in data)]


class CheckpointTensors(Mapping[str, np.ndarray]):
    """The weights of a model in a checkpoint, without the state of the optimizer.

    Args:
        path: the checkpoint, without the ends of its names.

    Attributes:
        shapes: the shape of each weight by its name.

    Raises:
        UserError: the checkpoint cannot be read.
    """

    def __init__(self, path: Path):
        self._path = path
        try:
            for name in _files(path):
                check_regular(path.parent / name)
            self._reader = tf.train.load_checkpoint(str(path))
            shapes = self._reader.get_variable_to_shape_map()
        except _READ_ERRORS as error:
            raise self._error(str(error)) from None
        self.shapes = {
            name[len(_PREFIX) : -len(_SUFFIX)]: tuple(shape)
            for name, shape in shapes.items()
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and "OPTIMIZER_SLOT" not in name
        }

    def _error(self, reason: str) -> UserError:
        message = f"The checkpoint cannot be read: {reason[:200]}"
        return UserError(message, str(self._path), "Copy the files of the checkpoint again.")

    def __getitem__(self, name: str) -> np.ndarray:
        if int(np.prod(self.shapes[name], dtype=float)) > _MAX_ELEMENTS:
            raise self._error(f"{name} is too large")
        try:
            value = self._reader.get_tensor(f"{_PREFIX}{name}{_SUFFIX}")
        except _READ_ERRORS as error:
            raise self._error(str(error)) from None
        return np.asarray(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def table_name(self, name: str) -> str:
        """Return the name under which a matrix of tokens is stored: shared ones have one name.

        Raises:
            UserError: there is none, so the model has other inputs than tokens.
        """
        order = {_SOURCE: (_SOURCE, _TARGET), _TARGET: (_TARGET, _SOURCE)}[name]
        for other in order:
            if len(self.shapes.get(other, ())) == 2:
                return other
        raise UserError(f"The checkpoint has no {name}.", str(self._path), _REMEDY)


def _model_section(
    tensors: CheckpointTensors, heads: int, read_end: bool, path: Path
) -> dict[str, Any]:
    """Return the section ``model``, which follows from the names and shapes of the weights."""
    width = tensors.shapes[tensors.table_name(_SOURCE)][1]
    if heads < 1 or width % heads:
        message = f"{heads} heads do not divide the width {width} of the model."
        raise UserError(message, "--heads", "Give num_heads of the model, by default 8.")
    is_shared = tensors.table_name(_SOURCE) == tensors.table_name(_TARGET)
    ties = "none" if _OUTPUT in tensors else "all" if is_shared else "output"
    sides = {side: _layers(tensors, side, heads, path) for side in ("encoder", "decoder")}
    sides["encoder"]["read_end"] = read_end
    return {
        "embedding": width,
        "tie_embeddings": ties,
        "attention": {"score": "scaled_dot"},
        **sides,
    }


def _layers(tensors: CheckpointTensors, side: str, heads: int, path: Path) -> dict[str, Any]:
    prefix = f"{side}/layers/"
    expand = tensors.shapes.get(f"{prefix}0/ffn/layer/inner/kernel", ())
    if len(expand) != 2:
        raise UserError(f"The checkpoint has no Transformer {side}.", str(path), _REMEDY)
    settings: dict[str, Any] = {
        "type": "transformer",
        "layers": count_layers(tensors, prefix, "/"),
        "heads": heads,
        "feed_forward": expand[1],
        "norm": "pre" if f"{side}/layer_norm/gamma" in tensors else "post",
        "norm_epsilon": _EPSILON,
    }
    relative = tensors.shapes.get(f"{prefix}0/{_RELATIVE}keys")
    if relative:
        return {**settings, "positions": "relative", "max_distance": relative[0] // 2}
    return {**settings, "positions": "sinusoidal_tensor2tensor", "first_position": 1}


class OpenNMTWeights(NamedTensors):
    """The weights of a checkpoint of OpenNMT-tf."""

    _tensors: CheckpointTensors

    def table_name(self, side: str) -> str:
        return self._tensors.table_name(_SOURCE if side == "encoder" else _TARGET)

    def output(self, kind: str) -> np.ndarray:
        if kind == "kernel":
            return self.tensor(_OUTPUT)
        if _OUTPUT_BIAS in self._tensors:
            return self.tensor(_OUTPUT_BIAS)
        return np.zeros(self._tensors.shapes[self.table_name("decoder")][0], np.float32)

    def names(self, side: str, part: str, kind: str) -> Sequence[str]:
        if part == "norm":
            return [f"{side}/layer_norm/{kind}"]
        layer, _, part = part.partition("/")
        prefix = f"{side}/layers/{layer.removeprefix('layer_')}"
        if part == "attention/relative":
            return [f"{prefix}/{_RELATIVE}{kind}"]
        is_pre = f"{side}/layer_norm/gamma" in self._tensors
        norm = "input_layer_norm" if is_pre else "output_layer_norm"
        return [f"{prefix}/{other.format(norm=norm)}/{kind}" for other in _LAYER[part]]
