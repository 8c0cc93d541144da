"""Transformers of JoeyNMT 2, in the folder that its training writes.

Kreutzer et al. 2019, "Joey NMT: A Minimalist NMT Toolkit for Novices".
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.importing.folder_tokens import FolderTokens, SpecialNames
from regard.components.importing.foreign_model import ForeignModel, create_config, read_settings
from regard.components.importing.named_tensors import NamedTensors, count_layers
from regard.components.importing.pytorch_file import read_pytorch
from regard.components.importing.tensor_file import TensorFile, quote
from regard.core.errors import UserError
from regard.models.vocabulary import BOS, EOS, PAD, UNK

CHECKPOINT = "best.ckpt"
_SETTINGS, _STATE = "config.yaml", "model_state"
_SIDES = {"source": "src", "target": "trg"}
_EPSILON = 1e-6
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
_TIES = {(True, True): "all", (False, True): "output"}
# The longest output for each token of the source, EOS included, if there is no other limit.
_TOKENS_PER_SOURCE_TOKEN = 1.5
# The parts of a layer: ours, and those of JoeyNMT in the encoder and the decoder.
_OWN = {"encoder": "src_src_att", "decoder": "trg_trg_att"}
_NORMS = {"encoder": "layer_norm", "decoder": "x_layer_norm"}
_LAYER = {
    "attention/project": ("{own}.q_layer", "{own}.k_layer", "{own}.v_layer"),
    "attention/output": ("{own}.output_layer",),
    "attention_norm": ("{norm}",),
    "cross/project_query": ("src_trg_att.q_layer",),
    "cross/project_memory": ("src_trg_att.k_layer", "src_trg_att.v_layer"),
    "cross/output": ("src_trg_att.output_layer",),
    "cross_norm": ("dec_layer_norm",),
    "feed_forward/expand": ("feed_forward.pwff_layer.0",),
    "feed_forward/contract": ("feed_forward.pwff_layer.3",),
    "feed_forward_norm": ("feed_forward.layer_norm",),
}
_KINDS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
_OUTPUT, _SOURCE, _TARGET = (
    "decoder.output_layer.weight",
    "src_embed.lut.weight",
    "trg_embed.lut.weight",
)
_COMPUTED = {"encoder.pe.pe", "decoder.pe.pe"}  # sinusoids
# Settings whose other values compute something that Regard does not, with the only value or values.
_EXPECTED: dict[str, tuple[Any, ...]] = {
    "model.encoder.type": ("transformer",),
    "model.decoder.type": ("transformer",),
    "model.encoder.layer_norm": ("pre", "post"),
    "model.decoder.layer_norm": ("pre", "post"),
    "model.encoder.alpha": (1.0,),
    "model.decoder.alpha": (1.0,),
    "data.special_symbols.lang_tags": ([], None),
    "data.special_symbols.sep_token": (None,),
    "testing.repetition_penalty": (-1, 0, 1),
    "testing.no_repeat_ngram_size": (-1, 0, 1),
    **{
        f"data.{side}.{key}": values
        for side in ("src", "trg")
        for key, values in {
            "level": ("bpe",),
            "tokenizer_type": ("sentencepiece",),
            "lowercase": (False,),
            "normalize": (False,),
            "tokenizer_cfg.pretokenizer": ("none",),
        }.items()
    },
}
# What JoeyNMT uses without the key. The norm of an encoder has none: without the key, its layers
# and its last normalization have different ones.
_DEFAULTS = {
    "model.decoder.type": "transformer",
    "model.decoder.layer_norm": "post",
    "model.encoder.alpha": 1.0,
    "model.decoder.alpha": 1.0,
    "testing.repetition_penalty": -1,
    "testing.no_repeat_ngram_size": -1,
    **{
        f"data.{side}.{key}": value
        for side in ("src", "trg")
        for key, value in {
            "lowercase": False,
            "normalize": False,
            "tokenizer_cfg.pretokenizer": "none",
        }.items()
    },
}


def read_joeynmt(folder: Path, checkpoint: str = CHECKPOINT) -> ForeignModel:
    """Read a folder with ``config.yaml``, a checkpoint, vocabularies and SentencePiece models.

    Args:
        folder: the folder, ``model_dir`` of a training.
        checkpoint: the name of the checkpoint.

    Raises:
        UserError: a file is missing or damaged, or the model computes something else than the
            Transformers of Regard.
    """
    if Path(checkpoint).name != checkpoint:
        remedy = "Give the name of a file in the folder, such as best.ckpt."
        raise UserError(f"{checkpoint!r} is not the name of a file.", "--checkpoint", remedy)
    settings = JoeyNMTSettings(folder / _SETTINGS)
    tokens = FolderTokens(folder)
    names = settings.special_names()
    for (side, name), model in zip(_SIDES.items(), settings.tokenizer_files(), strict=True):
        tokens.read_side(side, model, f"{name}_vocab.txt", is_restricted=True, names=names)
    values: dict[str, Any] = {
        "task": "translation",
        "model": settings.model(),
        "search": settings.search(),
    }
    config = create_config({**values, "training": {}, "tags": None}, folder / _SETTINGS)
    rows = tokens.tables["target"].rows
    never = [PAD, *np.setdiff1d(np.flatnonzero(rows == rows[BOS]), [EOS])]
    if not settings.get("testing.generate_unk", True):
        never.append(UNK)
    path = folder / checkpoint
    tensors = read_pytorch(path, _STATE)
    _check_sizes(tensors, values["model"], tokens.sizes, path)
    return ForeignModel(
        kind="joeynmt",
        folder=folder,
        config=config,
        tokenizers=tokens.tokenizers,
        read_weight=JoeyNMTWeights(tensors, path, tokens.tables, is_transposed=True, never=never),
        files=[_SETTINGS, checkpoint, *dict.fromkeys(tokens.files)],
    )


class JoeyNMTSettings:
    """The settings of a model of JoeyNMT.

    Args:
        path: ``config.yaml``.

    Raises:
        UserError: the file cannot be read, or the model computes something else than Regard.
    """

    def __init__(self, path: Path):
        self._path = path
        self._values = read_settings(path, "Give the folder that JoeyNMT's training has written.")
        for key, expected in _EXPECTED.items():
            value = self.get(key)
            if not any(type(value) in (type(one), int, float) and value == one for one in expected):
                listed = " or ".join(quote(one) for one in expected if one is not None)
                problem = "is missing" if value is None else f"is {quote(value)}"
                allowed = f"Regard can import {listed}" if listed else "Regard has no such setting"
                raise self._error(key, f"{problem}; {allowed}")

    def get(self, key: str, default: object = None) -> Any:
        """Return a setting; the default of JoeyNMT without it."""
        value: Any = self._values
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return _DEFAULTS.get(key, default) if value is None else value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a setting that is a text.

        Raises:
            UserError: it is missing or something else.
        """
        value = self.get(key, default)
        if not isinstance(value, str) or not value:
            problem = "is missing" if value is None else f"is {quote(value)} instead of a text"
            raise self._error(key, problem)
        return value

    def tokenizer_files(self) -> list[str]:
        """Return the names of the SentencePiece models of the source and the target.

        Raises:
            UserError: one is missing, or JoeyNMT has copied one over the other.
        """
        keys = [f"data.{name}.tokenizer_cfg.model_file" for name in _SIDES.values()]
        paths = [Path(self.text(key)) for key in keys]
        if paths[0] != paths[1] and paths[0].name == paths[1].name:
            raise UserError(
                f"{keys[0]} and {keys[1]} are two files with one name, {paths[0].name}: JoeyNMT's "
                "training has copied one over the other.",
                str(self._path),
                "Copy both files into the folder under two names, and write these into the keys.",
            )
        return [path.name for path in paths]

    def special_names(self) -> SpecialNames:
        """Return the special tokens of both vocabularies."""
        names = {
            "padding": ("pad", "<pad>"),
            "unknown": ("unk", "<unk>"),
            "beginning": ("bos", "<s>"),
            "end": ("eos", "</s>"),
        }
        texts = {
            attribute: (self.text(f"data.special_symbols.{name}_token", default),)
            for attribute, (name, default) in names.items()
        }
        return SpecialNames(**texts, are_required=True)

    def _flag(self, key: str) -> bool:
        value = self.get(key, False)
        if not isinstance(value, bool):
            raise self._error(key, f"is {quote(value)} instead of true or false")
        return value

    def _error(self, key: str, problem: str) -> UserError:
        remedy = "Only models whose computation is the same can be imported."
        return UserError(f"{key} {problem}.", str(self._path), remedy)

    def model(self) -> dict[str, Any]:
        """Return the section ``model``."""
        ties = self._flag("model.tied_embeddings"), self._flag("model.tied_softmax")
        scales = [self._flag(f"model.{side}.embeddings.scale") for side in _OWN]
        if scales[0] != scales[1] and not ties[0]:  # tied embeddings are one layer
            raise self._error("model.decoder.embeddings.scale", "differs from that of the encoder")
        return {
            "embedding": self.get("model.encoder.hidden_size"),
            "dropout": self.get("model.encoder.dropout", 0.0),
            "tie_embeddings": _TIES.get(ties, "none"),
            "scale_embeddings": scales[0],
            "attention": {"score": "scaled_dot"},
            "encoder": self._layers("encoder"),
            "decoder": self._layers("decoder"),
        }

    def _layers(self, side: str) -> dict[str, Any]:
        key = f"model.{side}"
        activation = self.get(f"{key}.activation", "relu")
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            problem = f"is {quote(activation)}; Regard has {', '.join(_ACTIVATIONS)}"
            raise self._error(f"{key}.activation", problem)
        dropout = self.get(f"{key}.dropout", 0.0)
        return {
            "type": "transformer",
            "layers": self.get(f"{key}.num_layers"),
            "heads": self.get(f"{key}.num_heads"),
            "feed_forward": self.get(f"{key}.ff_size"),
            "norm": self.get(f"{key}.layer_norm"),
            "norm_epsilon": _EPSILON,
            "activation": _ACTIVATIONS[activation],
            "attention_dropout": dropout,
            "activation_dropout": dropout,
        }

    def search(self) -> dict[str, Any]:
        """Return the section ``search``."""
        key = "testing.max_output_length"
        max_tokens = self.get(key, -1)
        if type(max_tokens) is not int:
            raise self._error(key, f"is {quote(max_tokens)} instead of a whole number")
        is_limited = max_tokens > 0
        search = {
            "max_length_factor": 0.0 if is_limited else _TOKENS_PER_SOURCE_TOKEN,
            "max_length_offset": max_tokens if is_limited else 2,
        }
        size = self.get("testing.beam_size", 1)
        if size == 1:
            return {"type": "greedy", **search}
        # The older key has priority.
        alpha = self.get("testing.alpha", self.get("testing.beam_alpha", -1))
        penalty = max(alpha, 0) if isinstance(alpha, int | float) else alpha
        return {"type": "beam", "beam_size": size, "length_penalty": penalty, **search}


class JoeyNMTWeights(NamedTensors):
    """The weights of a checkpoint of JoeyNMT; its output layer has no bias."""

    def table_name(self, side: str) -> str:
        return _SOURCE if side == "encoder" else _TARGET

    def output(self, kind: str) -> np.ndarray:
        if kind == "kernel":
            return self.tensor(_OUTPUT).T
        return np.zeros(len(self._tensors[_OUTPUT]), np.float32)

    def names(self, side: str, part: str, kind: str) -> Sequence[str]:
        if part == "norm":
            return [f"{side}.layer_norm.{_KINDS[kind]}"]
        layer, _, part = part.partition("/")
        prefix = f"{side}.layers.{layer.removeprefix('layer_')}"
        parts = {"own": _OWN[side], "norm": _NORMS[side]}
        return [f"{prefix}.{other.format(**parts)}.{_KINDS[kind]}" for other in _LAYER[part]]

    def unread(self) -> Iterable[str]:
        rest = set(super().unread()) - _COMPUTED
        return sorted(name for name in rest if not self._is_tied(name))

    def _is_tied(self, name: str) -> bool:
        """Return whether a matrix of tokens is the one that was read."""
        return any(self.is_copy(name, other) for other in (_SOURCE, _TARGET) if other in self._used)


def _check_sizes(
    tensors: TensorFile, model: Mapping[str, Any], sizes: Mapping[str, int], path: Path
) -> None:
    """Compare sizes before anything is built, which wrong settings could make too large."""
    expected: dict[str, object] = {}
    actual: dict[str, object] = {}
    for side, table, feature in (("encoder", _SOURCE, "source"), ("decoder", _TARGET, "target")):
        key, own = f"model.{side}", f"{side}.layers."
        expected[f"{key}.num_layers"] = model[side]["layers"]
        actual[f"{key}.num_layers"] = count_layers(tensors, own, ".")
        shapes = {
            f"{key}.ff_size": (
                f"{own}0.feed_forward.pwff_layer.0.bias",
                (model[side]["feed_forward"],),
            ),
            f"{key}.hidden_size and {_SIDES[feature]}_vocab.txt": (
                table,
                (sizes[feature], model["embedding"]),
            ),
        }
        for setting, (name, shape) in shapes.items():
            stored = tensors.tensors.get(name)
            expected[setting], actual[setting] = shape, stored and stored.shape
    for setting, value in expected.items():
        if actual[setting] != value:
            message = f"{setting}: {value} in the settings, and {actual[setting]} in the weights."
            remedy = "Copy all files of the model again: they belong to different models."
            raise UserError(message, str(path), remedy)
