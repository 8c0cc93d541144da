"""Convert the weights of a Transformer of Regard to JoeyNMT's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Weights = Mapping[str, np.ndarray]
# JoeyNMT has UNK before PAD in the vocabulary, Regard after it.
_ORDER = (1, 0)


def convert_weights(weights: Weights, model: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return JoeyNMT's state without its position tables.

    Args:
        weights: the weights by their Keras paths, of a Transformer with tie_embeddings: all.
        model: the section ``model``.

    Raises:
        KeyError: a weight is missing.
    """
    encoder, decoder = (_select(weights, f"transformer_{side}") for side in ("encoder", "decoder"))
    table = encoder["embedding/table"].copy()
    table[list(_ORDER)] = table[[0, 1]]
    bias = decoder["logits_bias"].copy()
    bias[list(_ORDER)] = bias[[0, 1]]
    state = {f"{side}_embed.lut.weight": table for side in ("src", "trg")}
    state |= {"decoder.output_layer.weight": table, "decoder.output_layer.bias": bias}
    for side, weights_of_side in (("encoder", encoder), ("decoder", decoder)):
        state |= _convert_norm(weights_of_side, "norm", f"{side}.layer_norm")
        for i in range(model[side]["layers"]):
            layer = _select(weights_of_side, f"layer_{i}", exact=True)
            state |= _convert_layer(layer, f"{side}.layers.{i}", has_cross=side == "decoder")
    return state


def _convert_layer(weights: Weights, to: str, has_cross: bool) -> dict[str, np.ndarray]:
    first, norm = ("trg_trg_att", "x_layer_norm") if has_cross else ("src_src_att", "layer_norm")
    state = _split_projection(weights, "attention/project", f"{to}.{first}", ("q", "k", "v"))
    state |= _convert_linear(weights, "attention/output", f"{to}.{first}.output_layer")
    state |= _convert_norm(weights, "attention_norm", f"{to}.{norm}")
    if has_cross:
        state |= _split_projection(weights, "cross/project_query", f"{to}.src_trg_att", ("q",))
        state |= _split_projection(weights, "cross/project_memory", f"{to}.src_trg_att", ("k", "v"))
        state |= _convert_linear(weights, "cross/output", f"{to}.src_trg_att.output_layer")
        state |= _convert_norm(weights, "cross_norm", f"{to}.dec_layer_norm")
    state |= _convert_linear(weights, "feed_forward/expand", f"{to}.feed_forward.pwff_layer.0")
    state |= _convert_linear(weights, "feed_forward/contract", f"{to}.feed_forward.pwff_layer.3")
    return state | _convert_norm(weights, "feed_forward_norm", f"{to}.feed_forward.layer_norm")


def _select(weights: Weights, name: str, exact: bool = False) -> dict[str, np.ndarray]:
    """The weights of a layer by their paths inside it; Keras may append a number to its name."""
    selected = {}
    for path, value in weights.items():
        _, _, rest = f"/{path}".partition(f"/{name}/" if exact else f"/{name}")
        if rest:
            selected[rest if exact else rest.partition("/")[2]] = value
    return selected


def _split_projection(
    weights: Weights, name: str, to: str, parts: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Split a joint projection into its parts."""
    kernels = np.split(weights[f"{name}/kernel"], len(parts), axis=1)
    biases = np.split(weights[f"{name}/bias"], len(parts))
    state = {}
    for part, kernel, bias in zip(parts, kernels, biases, strict=True):
        state[f"{to}.{part}_layer.weight"] = np.ascontiguousarray(kernel.T)
        state[f"{to}.{part}_layer.bias"] = bias
    return state


def _convert_linear(weights: Weights, name: str, to: str) -> dict[str, np.ndarray]:
    kernel = np.ascontiguousarray(weights[f"{name}/kernel"].T)
    return {f"{to}.weight": kernel, f"{to}.bias": weights[f"{name}/bias"]}


def _convert_norm(weights: Weights, name: str, to: str) -> dict[str, np.ndarray]:
    return {f"{to}.weight": weights[f"{name}/gamma"], f"{to}.bias": weights[f"{name}/beta"]}
