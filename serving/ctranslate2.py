"""A Transformer from texts to texts as CTranslate2 runs it, an engine made for CPUs.

CTranslate2 builds a model from a specification: which layers there are, and their weights. See
https://opennmt.net/CTranslate2/python/ctranslate2.specs.html. Its own search takes the place of
ours, so what is equal is the probability of a given target, not every answer of a beam.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

QUANTIZATIONS = ("float32", "int8", "int16", "float16")  # bfloat16 would need PyTorch
EPSILON = 1e-5  # of the layer normalization
# The longest text; CTranslate2 reads positions from a table, wherever they come from.
POSITIONS = 2048
_BASE = 10000.0

Weights = Mapping[str, np.ndarray]


def obstacles(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What CTranslate2 has no layers for: the keys of the section ``model``, and why not.

    Args:
        settings: the section ``model``.
    """
    found = []
    for side in ("encoder", "decoder"):
        given = settings[side]["type"]
        if given != "transformer":
            found.append((f"model.{side}.type", f"is {given}, and it has Transformers alone"))
    if found:
        return found
    if settings["decoder"].get("pointer_generator"):
        found.append(("model.decoder.pointer_generator", "copies of the source are unknown to it"))
    attention = settings.get("attention") or {}
    for key, usual in (("score", "scaled_dot"), ("alignment", "soft")):
        given = attention.get(key, usual)
        name = given["type"] if isinstance(given, Mapping) else given
        if name != usual:
            found.append((f"model.attention.{key}", f"is {name}, and it has {usual} alone"))
    return found


def specification(
    weights: Weights, settings: Mapping[str, Any], pieces: Mapping[str, Sequence[str]]
) -> TransformerSpec:
    """The model in CTranslate2's terms.

    Args:
        weights: by their paths, as Keras names them.
        settings: the section ``model``, in which `obstacles` finds none.
        pieces: the vocabularies, ``source`` and ``target``, in the order of their ids.

    Raises:
        KeyError: a weight is missing.
    """
    from ctranslate2 import specs

    encoder, decoder = settings["encoder"], settings["decoder"]
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(encoder["layers"], encoder["heads"], **_kind(encoder)),
        specs.TransformerDecoderSpec(
            decoder["layers"],
            decoder["heads"],
            alignment_heads=0,  # the mean of all heads of the last layer
            **_kind(decoder),
        ),
    )
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = pieces["target"][2]
    spec.config.layer_norm_epsilon = EPSILON
    spec.register_source_vocabulary(list(pieces["source"]))
    spec.register_target_vocabulary(list(pieces["target"]))
    read, written = _part(weights, "transformer_encoder"), _part(weights, "transformer_decoder")
    table = read["embedding/table"]
    spec.encoder.embeddings[0].weight = table
    _fill(spec.encoder, read, encoder, table.shape[1])
    table = written.get("embedding/table", table)  # without one of its own it has the encoder's
    spec.decoder.embeddings.weight = table
    _fill(spec.decoder, written, decoder, table.shape[1])
    if "logits/kernel" in written:
        _linear(spec.decoder.projection, written, "logits")
    else:
        spec.decoder.projection.weight = table
        spec.decoder.projection.bias = written["logits_bias"]
    return spec


def _kind(side: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of CTranslate2's encoder or decoder, from its part of the section ``model``."""
    from ctranslate2.specs import Activation

    kinds = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
    activation = side["activation"]
    kind: dict[str, Any] = {
        "pre_norm": side["norm"] == "pre",
        "activation": kinds[activation],
        "ffn_glu": activation == "swiglu",
    }
    if side["positions"] == "rotary":
        kind |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": _BASE}
    return kind


def _part(weights: Weights, name: str) -> dict[str, np.ndarray]:
    """The weights of a layer, by their paths inside it; Keras may have put a number to its name."""
    found = {}
    for path, value in weights.items():
        _, _, rest = path.partition(f"/{name}")
        if rest:
            found[rest.partition("/")[2]] = value
    return found


def _fill(spec: Any, weights: Weights, side: Mapping[str, Any], depth: int) -> None:
    """An encoder or a decoder, all but its embeddings and its output."""
    encodings = _positions(side["positions"], weights, depth)
    if encodings is not None:
        spec.position_encodings.encodings = encodings
    for i, layer in enumerate(spec.layer):
        own = _below(weights, f"layer_{i}")
        _linear(layer.self_attention.linear[0], own, "attention/project")
        _linear(layer.self_attention.linear[1], own, "attention/output")
        _norm(layer.self_attention.layer_norm, own, "attention_norm")
        if hasattr(layer, "attention"):
            _linear(layer.attention.linear[0], own, "cross/project_query")
            _linear(layer.attention.linear[1], own, "cross/project_memory")
            _linear(layer.attention.linear[2], own, "cross/output")
            _norm(layer.attention.layer_norm, own, "cross_norm")
        if hasattr(layer.ffn, "linear_0_noact"):
            # Ours gives what opens the gate and what goes through it from one product.
            gate, through = np.split(own["feed_forward/expand/kernel"], 2, axis=1)
            layer.ffn.linear_0.weight = _turned(gate)
            layer.ffn.linear_0_noact.weight = _turned(through)
        else:
            _linear(layer.ffn.linear_0, own, "feed_forward/expand")
        _linear(layer.ffn.linear_1, own, "feed_forward/contract")
        _norm(layer.ffn.layer_norm, own, "feed_forward_norm")
    if side["norm"] == "pre":
        _norm(spec.layer_norm, weights, "norm")


def _below(weights: Weights, name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}/"
    return {
        path.removeprefix(prefix): value
        for path, value in weights.items()
        if path.startswith(prefix)
    }


def _linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight = _turned(weights[f"{name}/kernel"])
    if (bias := weights.get(f"{name}/bias")) is not None:
        spec.bias = bias


def _turned(kernel: np.ndarray) -> np.ndarray:
    """``[inputs, outputs]`` as ``[outputs, inputs]``."""
    return np.ascontiguousarray(kernel.T)


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}/gamma"], weights[f"{name}/beta"]


def _positions(kind: str, weights: Weights, depth: int) -> np.ndarray | None:
    """What is added to the embeddings, ``[POSITIONS, depth]``; None for rotations."""
    if kind == "rotary":
        return None
    if kind == "learned":
        table = weights["positions/table"]  # what is beyond its end has its last vector
        return table[np.minimum(np.arange(POSITIONS), len(table) - 1)]
    if kind == "none":
        return np.zeros((POSITIONS, depth), np.float32)
    exponents = np.arange((depth + 1) // 2, dtype=np.float32) * np.float32(2.0 / depth)
    phase = np.arange(POSITIONS, dtype=np.float32)[:, None] / np.power(np.float32(_BASE), exponents)
    waves = np.stack([np.sin(phase), np.cos(phase)], axis=-1)
    return waves.reshape(POSITIONS, -1)[:, :depth].astype(np.float32)
