"""Transformers of OpenNMT-tf 2, in a folder with a checkpoint, vocabularies and tokenizers.

Klein et al. 2020, "The OpenNMT Neural Machine Translation Toolkit: 2020 Edition".
"""

import glob
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

from regard.components.importing.folder_tokens import FolderTokens, find_tokenizer
from regard.components.importing.foreign_model import ForeignModel, create_config
from regard.components.importing.named_tensors import NamedTensors, count_layers
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import check_regular, read_regular

_PREFIX, _SUFFIX = "model/", "/.ATTRIBUTES/VARIABLE_VALUE"
_EPSILON = 1e-3  # the default of Keras
_REMEDY = "See docs/how-to/import.md."
_NEWEST = "checkpoint"  # the name of the file that names the newest checkpoint
_MAX_STATE_BYTES = 1 << 20  # of the file `checkpoint`
_MAX_ELEMENTS = 1 << 31
_MAX_LAYERS = 256  # on a side; building thousands takes minutes
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


def read_opennmt_tf(folder: Path, heads: int | None = None, read_end: bool = False) -> ForeignModel:
    """Read a folder with a checkpoint, SentencePiece models and vocabularies.

    Args:
        folder: the folder.
        heads: the number of attention heads; None: it follows from relative positions. Without
            them, a checkpoint does not show it.
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
    remedy = "Give a folder with one file *.index and its data."
    if not folder.is_dir():
        raise NotFoundError("The folder does not exist.", str(folder), remedy)
    checkpoints = {path.with_suffix("") for path in folder.glob("*.index")}
    newest = _newest_name(folder / _NEWEST)
    if folder / newest in checkpoints:
        return folder / newest
    if len(checkpoints) == 1:
        return checkpoints.pop()
    message = "The folder has no checkpoint."
    if checkpoints:
        reason = f"names {newest[:200]!r}" if newest else "does not name one"
        message = f"The folder has {len(checkpoints)} checkpoints, and the file `checkpoint` "
        message += f"{reason}."
    raise NotFoundError(message, str(folder), remedy)


def _newest_name(path: Path) -> str:
    """Return the name of the checkpoint that the file ``checkpoint`` names, without its folder.

    The folder may be another one, because people move their trainings. Without a valid file, the
    name is empty.
    """
    state = tf.compat.v1.train.generate_checkpoint_state_proto(".", "none")  # of this type
    state.Clear()
    try:
        text_format.Parse(read_regular(path, _MAX_STATE_BYTES).decode(), state)
    except (OSError, ValueError, text_format.ParseError):
        return ""
    return Path(state.model_checkpoint_path).name


def _files(path: Path) -> list[str]:
    """Return the names of the files of a checkpoint."""
    data = sorted(path.parent.glob(f"{glob.escape(path.name)}.data-*"))
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
            self._check_size(shapes)
        except _READ_ERRORS as error:
            raise self._error(str(error)) from None
        self.shapes = {
            name[len(_PREFIX) : -len(_SUFFIX)]: tuple(shape)
            for name, shape in shapes.items()
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX) and "OPTIMIZER_SLOT" not in name
        }

    def _check_size(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Check that the files have as many bytes as the index declares: nothing is compressed."""
        types = self._reader.get_variable_to_dtype_map()
        declared = sum(
            math.prod(shape) * types[name].size
            for name, shape in shapes.items()
            if types[name] != tf.string
        )
        _, *data = _files(self._path)
        size = sum((self._path.parent / name).stat().st_size for name in data)
        if declared > size:
            message = f"its index declares {declared:,} bytes of weights, and its data files have "
            raise self._error(f"{message}{size:,}")

    def check_shape(self, name: str, shape: Sequence[int]) -> None:
        """Check that a weight exists, and that it has a shape.

        Raises:
            UserError: it does not.
        """
        if name not in self.shapes:
            raise UserError(f"The checkpoint has no {name}.", str(self._path), _REMEDY)
        if self.shapes[name] != tuple(shape):
            message = f"{name} has the shape {[*self.shapes[name]]} instead of {[*shape]}."
            raise UserError(message, str(self._path), _REMEDY)

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
    tensors: CheckpointTensors, heads: int | None, read_end: bool, path: Path
) -> dict[str, Any]:
    """Return the section ``model``, which follows from the names and shapes of the weights."""
    source, target = tensors.table_name(_SOURCE), tensors.table_name(_TARGET)
    width = tensors.shapes[source][1]
    rows = tensors.shapes[target][0]
    tensors.check_shape(target, (rows, width))
    if _OUTPUT in tensors:
        tensors.check_shape(_OUTPUT, (width, rows))
    heads = _count_heads(tensors, heads, width)
    ties = "none" if _OUTPUT in tensors else "all" if source == target else "output"
    sides = {side: _layers(tensors, side, heads, width, path) for side in ("encoder", "decoder")}
    sides["encoder"]["read_end"] = read_end
    return {
        "embedding": width,
        "tie_embeddings": ties,
        "attention": {"score": "scaled_dot"},
        **sides,
    }


def _count_heads(tensors: CheckpointTensors, heads: int | None, width: int) -> int:
    """Return the number of heads: that of the user, or the one that relative positions show."""
    remedy = "Give num_heads of the model: 8 in Transformer, 16 in TransformerBig."
    for side in ("encoder", "decoder"):
        shape = tensors.shapes.get(f"{side}/layers/0/{_RELATIVE}keys", ())
        if len(shape) != 2 or not shape[1] or width % shape[1]:
            continue
        count = width // shape[1]
        if heads not in (None, count):
            message = f"The model has {count} heads, as its relative positions show, not {heads}."
            raise UserError(message, "--heads", "Leave out --heads.")
        return count
    if heads is None:
        message = "The number of attention heads does not follow from the weights."
        raise UserError(message, "--heads", remedy)
    if heads < 1 or width % heads:
        message = f"{heads} heads do not divide the width {width} of the model."
        raise UserError(message, "--heads", remedy)
    return heads


def _layers(
    tensors: CheckpointTensors, side: str, heads: int, width: int, path: Path
) -> dict[str, Any]:
    prefix = f"{side}/layers/"
    expand = tensors.shapes.get(f"{prefix}0/ffn/layer/inner/kernel", ())
    if len(expand) != 2:
        raise UserError(f"The checkpoint has no {prefix}0.", str(path), _REMEDY)
    layers = count_layers(tensors, prefix, "/")
    if layers > _MAX_LAYERS:
        message = f"The {side} has {layers:,} layers; the maximum is {_MAX_LAYERS}."
        raise UserError(message, str(path), _REMEDY)
    is_pre = f"{side}/layer_norm/gamma" in tensors
    for number in range(layers):
        _check_layer(tensors, side, number, {"width": width, "feed_forward": expand[1]})
    if is_pre:
        for kind in ("gamma", "beta"):
            tensors.check_shape(f"{side}/layer_norm/{kind}", (width,))
    settings: dict[str, Any] = {
        "type": "transformer",
        "layers": layers,
        "heads": heads,
        "feed_forward": expand[1],
        "norm": "pre" if is_pre else "post",
        "norm_epsilon": _EPSILON,
    }
    name = f"{prefix}0/{_RELATIVE}keys"
    if name not in tensors:
        return {**settings, "positions": "sinusoidal_tensor2tensor", "first_position": 1}
    distance = next(iter(tensors.shapes[name]), 0) // 2
    for number in range(layers):
        for kind in ("keys", "values"):
            relative = f"{prefix}{number}/{_RELATIVE}{kind}"
            tensors.check_shape(relative, (2 * distance + 1, width // heads))
    return {**settings, "positions": "relative", "max_distance": distance}


def _check_layer(
    tensors: CheckpointTensors, side: str, number: int, sizes: Mapping[str, int]
) -> None:
    """Check that a layer has all its weights, and that they have the sizes of the first layer."""
    width, inner = sizes["width"], sizes["feed_forward"]
    shapes = {"feed_forward/expand": (width, inner), "feed_forward/contract": (inner, width)}
    for part in _LAYER:
        if part.startswith("cross") and side == "encoder":
            continue
        shape = shapes.get(part, (width, width))
        is_norm = part.endswith("norm")
        kinds = ("gamma", "beta") if is_norm else ("kernel", "bias")
        for kind in kinds:
            for name in _names(tensors, side, number, part, kind):
                tensors.check_shape(name, shape if kind == "kernel" else shape[-1:])


def _names(
    tensors: CheckpointTensors, side: str, number: int | str, part: str, kind: str
) -> list[str]:
    """Return the names of the weights of a part of a layer; see `NamedTensors.names`."""
    is_pre = f"{side}/layer_norm/gamma" in tensors
    norm = "input_layer_norm" if is_pre else "output_layer_norm"
    prefix = f"{side}/layers/{number}"
    return [f"{prefix}/{other.format(norm=norm)}/{kind}" for other in _LAYER[part]]


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
        number = layer.removeprefix("layer_")
        if part == "attention/relative":
            return [f"{side}/layers/{number}/{_RELATIVE}{kind}"]
        return _names(self._tensors, side, number, part, kind)
