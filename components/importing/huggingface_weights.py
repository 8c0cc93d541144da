"""The weights of encoder-decoder Transformers as Hugging Face names them (BART's names)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.importing.foreign_model import WeightReader
from regard.components.importing.tensor_file import TensorFile
from regard.components.importing.token_table import NEVER, TokenTable
from regard.core.errors import UserError
from regard.models.layers.positions import create_positions

# The parts of a layer: ours, and those of Hugging Face, whose outputs are concatenated.
_LAYER = {
    "attention/project": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/output": ("self_attn.out_proj",),
    "attention_norm": ("self_attn_layer_norm",),
    "cross/project_query": ("encoder_attn.q_proj",),
    "cross/project_memory": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross/output": ("encoder_attn.out_proj",),
    "cross_norm": ("encoder_attn_layer_norm",),
    "feed_forward/expand": ("fc1",),
    "feed_forward/contract": ("fc2",),
    "feed_forward_norm": ("final_layer_norm",),
}
_KINDS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
# Those that are tied are equal, or are stored under one of the names.
_SHARED = "model.shared.weight"
_TOKEN_MATRICES = {
    _SHARED,
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
}
# Sinusoids, which some files have and which are computed again.
_ROUNDED = 5e-3  # of a sinusoid in 16 bits
_COMPUTED = {
    f"model.{side}.embed_positions.{name}"
    for side in ("encoder", "decoder")
    for name in ("weight", "weights")
}


class HuggingFaceWeights(WeightReader):
    """Weights of a file with Hugging Face's names.

    Args:
        tensors: the tensors of the file by name.
        path: the file.
        sides: the tokens of the ``encoder`` and the ``decoder``.
        never: further ids of the target that no output has.
        model: the section ``model``, whose sizes the tensors must have.

    Raises:
        UserError: the tensors have other sizes.

    Attributes:
        sides: the tokens of both sides.
        never: all ids of the target that no output has.
    """

    def __init__(
        self,
        tensors: TensorFile,
        path: Path,
        sides: Mapping[str, TokenTable],
        never: Sequence[int],
        model: Mapping[str, Any],
    ):
        self.sides, self._tensors, self._path = sides, tensors, path
        self.never = np.array([*sides["decoder"].copies, *never])
        self._used: set[str] = set()
        self._is_untied = model["tie_embeddings"] == "none"
        for side, table in sides.items():
            self._check_sizes(side, model[side], (table.size, model["embedding"]))

    def _check_sizes(
        self, side: str, section: Mapping[str, Any], vocabulary: tuple[int, int]
    ) -> None:
        """Compare sizes before anything is built, which wrong settings could make too large."""
        prefix = f"model.{side}.layers."
        layers = {name.split(".")[3] for name in self._tensors if name.startswith(prefix)}
        if len(layers) != section["layers"]:
            self._refuse_sizes(f"{side}_layers", section["layers"], len(layers))
        shapes = {
            f"{side}_ffn_dim": (f"{prefix}0.fc1.weight", (section["feed_forward"], vocabulary[1])),
            "d_model or vocab_size": (self._table_name(side), vocabulary),
        }
        for setting, (name, expected) in shapes.items():
            tensor = self._tensors.tensors.get(name)
            if tensor is not None and tensor.shape != expected:
                self._refuse_sizes(setting, expected, tensor.shape)

        self._check_positions(f"model.{side}.embed_positions.weight", section["positions"])

    def _check_positions(self, name: str, kind: str) -> None:
        """Compare stored position encodings with those that Regard computes."""
        if name not in self._tensors:
            return
        stored = np.asarray(self._tensors[name], np.float32)
        layer = create_positions({"positions": kind, "max_positions": 1, "position_merge": "add"})
        is_same = stored.ndim == 2 and stored.size > 0
        if is_same:
            computed = layer.position_vectors(np.arange(len(stored))[None], stored.shape[1])
            is_same = np.allclose(stored, np.asarray(computed)[0], atol=_ROUNDED)
        if not is_same:
            message = f"{name} has other values than the sinusoids of this kind of model."
            remedy = "Only models whose computation is the same can be imported."
            raise UserError(message, str(self._path), remedy)

    def _refuse_sizes(self, setting: str, expected: object, actual: object) -> None:
        message = f"{setting}: {expected} in config.json, and {actual} in the weights."
        remedy = "Fetch both files again: they belong to different models."
        raise UserError(message, str(self._path), remedy)

    def __call__(self, name: str) -> np.ndarray:
        """Return a weight as float32.

        Raises:
            UserError: the file lacks it, or it has another shape.
        """
        try:
            return self._weight(name)
        except (ValueError, IndexError):
            message = f"The tensors of {name} do not have the shapes of this kind of model."
            remedy = "Fetch the file again, and check that config.json belongs to it."
            raise UserError(message, str(self._path), remedy) from None

    def _weight(self, name: str) -> np.ndarray:
        side, _, rest = name.partition("/")
        part, _, kind = rest.rpartition("/")
        if rest == "embedding/table":
            return self._read(self._table_name(side))[self.sides[side].rows]
        if rest == "logits_bias" or part == "logits":
            return self._output(kind)
        if rest.startswith("norm/"):
            return self._read(f"model.{side}.layer_norm.{_KINDS[kind]}")
        layer, _, part = part.partition("/")
        prefix = f"model.{side}.layers.{layer.removeprefix('layer_')}"
        values = [self._read(f"{prefix}.{other}.{_KINDS[kind]}") for other in _LAYER[part]]
        if kind == "kernel":
            values = [value.T for value in values]
        return np.concatenate(values, axis=-1)

    def _table_name(self, side: str) -> str:
        own = f"model.{side}.embed_tokens.weight"
        if own not in self._tensors and _SHARED not in self._tensors:
            return "lm_head.weight"  # tied, and stored only once
        return own if own in self._tensors else _SHARED

    def _output(self, kind: str) -> np.ndarray:
        rows = self.sides["decoder"].rows
        if kind == "kernel":
            return self._read("lm_head.weight")[rows].T
        bias = np.zeros(len(rows), np.float32)
        if "final_logits_bias" in self._tensors:
            bias = self._read("final_logits_bias").reshape(-1)[rows]
        bias[self.never] = NEVER
        return bias

    def _read(self, name: str) -> np.ndarray:
        if name not in self._tensors:
            message = f"The weights have no {name}."
            remedy = "Fetch the file again, and check that config.json belongs to it."
            raise UserError(message, str(self._path), remedy)
        self._used.add(name)
        return np.asarray(self._tensors[name], np.float32)

    def unread(self) -> list[str]:
        rest = set(self._tensors) - self._used - _COMPUTED
        return [name for name in sorted(rest) if not self._is_copy(name)]

    def _is_copy(self, name: str) -> bool:
        """Return whether a tensor is a matrix of tokens, equal to one that was read.

        Where both sides have matrices of their own, Hugging Face does not use the shared one.
        """
        if name not in _TOKEN_MATRICES:
            return False
        if name == _SHARED and self._is_untied:
            return True
        others = (self._tensors[other] for other in self._used.intersection(_TOKEN_MATRICES))
        return any(np.array_equal(self._tensors[name], other) for other in others)
