"""The weights of a Transformer of Regard's by the names that JoeyNMT has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Weights = Mapping[str, np.ndarray]
# JoeyNMT has the unknown piece first and the padding second, Regard the other way round.
_ORDER = (1, 0)


def converted(weights: Weights, model: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """JoeyNMT's state, but for its tables of positions.

    Args:
        weights: by their paths, as Keras names them; of a Transformer whose embeddings are all
            one table.
        model: the YAML's section ``model``.

    Raises:
        KeyError: a weight is missing.
    """
    read, written = (_below(weights, f"transformer_{side}") for side in ("encoder", "decoder"))
    table = read["embedding/table"].copy()
    table[list(_ORDER)] = table[[0, 1]]
    bias = written["logits_bias"].copy()
    bias[list(_ORDER)] = bias[[0, 1]]
    found = {f"{side}_embed.lut.weight": table for side in ("src", "trg")}
    found |= {"decoder.output_layer.weight": table, "decoder.output_layer.bias": bias}
    for side, own in (("encoder", read), ("decoder", written)):
        found |= _norm(own, "norm", f"{side}.layer_norm")
        for i in range(model[side]["layers"]):
            to, layer = f"{side}.layers.{i}", _below(own, f"layer_{i}", whole=True)
            found |= _layer(layer, to, attends=side == "decoder")
    return found


def _layer(own: Weights, to: str, attends: bool) -> dict[str, np.ndarray]:
    first, norm = ("trg_trg_att", "x_layer_norm") if attends else ("src_src_att", "layer_norm")
    found = _split(own, "attention/project", f"{to}.{first}", ("q", "k", "v"))
    found |= _linear(own, "attention/output", f"{to}.{first}.output_layer")
    found |= _norm(own, "attention_norm", f"{to}.{norm}")
    if attends:
        found |= _split(own, "cross/project_query", f"{to}.src_trg_att", ("q",))
        found |= _split(own, "cross/project_memory", f"{to}.src_trg_att", ("k", "v"))
        found |= _linear(own, "cross/output", f"{to}.src_trg_att.output_layer")
        found |= _norm(own, "cross_norm", f"{to}.dec_layer_norm")
    found |= _linear(own, "feed_forward/expand", f"{to}.feed_forward.pwff_layer.0")
    found |= _linear(own, "feed_forward/contract", f"{to}.feed_forward.pwff_layer.3")
    return found | _norm(own, "feed_forward_norm", f"{to}.feed_forward.layer_norm")


def _below(weights: Weights, name: str, whole: bool = False) -> dict[str, np.ndarray]:
    """The weights of a layer, by their paths inside it; Keras may have put a number to its name."""
    found = {}
    for path, value in weights.items():
        _, _, rest = f"/{path}".partition(f"/{name}/" if whole else f"/{name}")
        if rest:
            found[rest if whole else rest.partition("/")[2]] = value
    return found


def _split(own: Weights, name: str, to: str, parts: tuple[str, ...]) -> dict[str, np.ndarray]:
    """One product of several projections side by side, as several."""
    kernels = np.split(own[f"{name}/kernel"], len(parts), axis=1)
    biases = np.split(own[f"{name}/bias"], len(parts))
    found = {}
    for part, kernel, bias in zip(parts, kernels, biases, strict=True):
        found[f"{to}.{part}_layer.weight"] = np.ascontiguousarray(kernel.T)
        found[f"{to}.{part}_layer.bias"] = bias
    return found


def _linear(own: Weights, name: str, to: str) -> dict[str, np.ndarray]:
    kernel = np.ascontiguousarray(own[f"{name}/kernel"].T)
    return {f"{to}.weight": kernel, f"{to}.bias": own[f"{name}/bias"]}


def _norm(own: Weights, name: str, to: str) -> dict[str, np.ndarray]:
    return {f"{to}.weight": own[f"{name}/gamma"], f"{to}.bias": own[f"{name}/beta"]}
