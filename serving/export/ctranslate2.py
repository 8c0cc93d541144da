"""Convert a text-to-text Transformer to CTranslate2, an inference engine for CPUs.

CTranslate2 builds a model from a specification of its layers and their weights; see
https://opennmt.net/CTranslate2/python/ctranslate2.specs.html. The probability of a given target is
the same as in TensorFlow, but CTranslate2 has its own beam search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

INFO_FILE = "regard.json"  # what a conversion needs in addition to CTranslate2's own files
_EPSILON = 1e-5  # of models older than the option
# Maximum length; CTranslate2 always reads positions from a table.
POSITIONS = 2048
_BASE = 10000.0
_BOS, _EOS = 2, 3
# The largest magnitude of an 8-bit weight. Processors without VNNI instructions add two products of
# an activation (at most 255) and a weight in 16 bits, and 2 * 255 * 127 would overflow.
_MAX_INT8 = 64

Weights = Mapping[str, np.ndarray]


def find_unsupported(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the keys of the section ``model`` that CTranslate2 does not support, with reasons.

    Args:
        settings: the section ``model``.
    """
    unsupported = []
    for side in ("encoder", "decoder"):
        part = settings[side]
        kind = part["type"] if isinstance(part, Mapping) else "a list"
        if kind != "transformer":
            unsupported.append((f"model.{side}.type", f"is {kind}, not transformer"))
    if unsupported:
        return unsupported
    for side in ("encoder", "decoder"):
        for key, value in (("positions", "alibi"), ("position_merge", "concat")):
            if settings[side].get(key) == value:
                unsupported.append((f"model.{side}.{key}", f"is {value}, which is not supported"))
    if settings["decoder"].get("pointer_generator"):
        unsupported.append(("model.decoder.pointer_generator", "is not supported"))
    encoder_epsilon, decoder_epsilon = (
        _norm_epsilon(settings, side) for side in ("encoder", "decoder")
    )
    if encoder_epsilon != decoder_epsilon:
        reason = f"is {decoder_epsilon}, but both sides need the {encoder_epsilon} of model.encoder"
        unsupported.append(("model.decoder.norm_epsilon", reason))
    attention = settings.get("attention") or {}
    supported_types = {"score": "scaled_dot", "alignment": "soft", "values": "shared"}
    for key, supported in supported_types.items():
        value = attention.get(key, supported)
        name = value["type"] if isinstance(value, Mapping) else value
        if name != supported:
            unsupported.append((f"model.attention.{key}", f"is {name}, not {supported}"))
    if any(first == _EOS for _, first in settings.get("first_tokens") or ()):
        unsupported.append(("model.first_tokens", "begins outputs with </s>, their end"))
    return unsupported


def first_token_pairs(
    settings: Mapping[str, Any], vocabularies: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return ``model.first_tokens`` as texts of tokens; see `target_prefixes`.

    Args:
        settings: the section ``model``.
        vocabularies: as for `create_specification`.
    """
    pairs: dict[str, str] = {}
    for tag, first in settings.get("first_tokens") or ():
        pairs.setdefault(vocabularies["source"][tag], vocabularies["target"][first])
    return list(pairs.items())


def target_prefixes(
    sources: Sequence[Sequence[str]], first_tokens: Sequence[tuple[str, str]]
) -> list[list[str]]:
    """Return the ``target_prefix`` of ``translate_batch``.

    CTranslate2 gives a prefix the log-probability 0. Its outputs, attention and lengths, also that
    of its length penalty, include the prefix. ``score_batch`` rates it as any other token.

    Args:
        sources: the tokens of each row.
        first_tokens: pairs of the token that a source begins with and the token before its output;
            the first pair is that of all other sources. Without pairs, the prefixes are empty.
    """
    if not first_tokens:
        return [[] for _ in sources]
    firsts, default = dict(first_tokens), first_tokens[0][1]
    return [[firsts.get(tag, default) for tag in (source or [""])[:1]] for source in sources]


def create_specification(
    weights: Weights, settings: Mapping[str, Any], vocabularies: Mapping[str, Sequence[str]]
) -> TransformerSpec:
    """Create the specification of a model.

    Args:
        weights: arrays by Keras path.
        settings: the section ``model``, which `find_unsupported` accepts.
        vocabularies: the tokens of ``source`` and ``target`` in the order of their ids.

    Raises:
        KeyError: a weight is missing.
    """
    from ctranslate2 import specs

    encoder, decoder = settings["encoder"], settings["decoder"]
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(
            encoder["layers"], encoder["heads"], **_layer_options(encoder)
        ),
        specs.TransformerDecoderSpec(
            decoder["layers"],
            decoder["heads"],
            alignment_heads=0,  # the mean of all heads of the last layer
            **_layer_options(decoder),
        ),
    )
    spec.config.add_source_eos = bool(encoder.get("read_end", True))
    spec.config.decoder_start_token = vocabularies["target"][_BOS]
    spec.config.layer_norm_epsilon = _norm_epsilon(settings, "encoder")
    spec.register_source_vocabulary(list(vocabularies["source"]))
    spec.register_target_vocabulary(list(vocabularies["target"]))
    encoder_weights = _layer_weights(weights, "transformer_encoder")
    decoder_weights = _layer_weights(weights, "transformer_decoder")
    table = encoder_weights["embedding/table"]
    spec.encoder.embeddings[0].weight = table
    spec.encoder.scale_embeddings = _scales_embeddings(settings, "source")
    spec.decoder.scale_embeddings = _scales_embeddings(settings, "target")
    _fill(spec.encoder, encoder_weights, encoder, table.shape[1])
    table = decoder_weights.get("embedding/table", table)  # or shared with the encoder
    spec.decoder.embeddings.weight = table
    _fill(spec.decoder, decoder_weights, decoder, table.shape[1])
    if "logits/kernel" in decoder_weights:
        _linear(spec.decoder.projection, decoder_weights, "logits")
    else:
        spec.decoder.projection.weight = table
        spec.decoder.projection.bias = decoder_weights["logits_bias"]
    return spec


def quantize(spec: TransformerSpec, quantization: str) -> None:
    """Convert the weights of a model to a type.

    CTranslate2's own int8 uses the whole range of 8 bits, whose products overflow on processors
    without VNNI instructions. This one uses 7 bits, so that all processors compute the same scores.

    Args:
        spec: a validated specification, which is changed.
        quantization: the type, for example ``int8``.
    """
    from ctranslate2.specs import model_spec

    if quantization != "int8":
        spec.optimize(quantization=quantization)
        return
    spec.optimize()
    model_spec.visit_spec(spec, _quantize_weight)


def _quantize_weight(layer: Any, path: str, value: Any) -> None:
    """Replace a weight by integers and a factor for each row, if the layer allows it."""
    from ctranslate2.specs import model_spec

    name = path.rpartition("/")[2]
    is_alias = isinstance(value, str)
    if is_alias or not hasattr(layer, f"{name}_scale"):
        return
    weights = value.numpy()
    largest = np.maximum(np.abs(weights).max(axis=1), 1e-20)  # a row may be zero
    factors = _MAX_INT8 / largest
    integers = np.rint(weights * factors[:, None]).astype(np.int8)
    setattr(layer, name, model_spec.NumpyVariable(integers))
    setattr(layer, f"{name}_scale", model_spec.NumpyVariable(factors.astype(np.float32)))


def _layer_options(side: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of CTranslate2's encoder or decoder."""
    from ctranslate2.specs import Activation

    activations = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "silu": Activation.SWISH,
        "swiglu": Activation.SWISH,
    }
    activation = side["activation"]
    options: dict[str, Any] = {
        "pre_norm": side["norm"] == "pre",
        "activation": activations[activation],
        "ffn_glu": activation == "swiglu",
        "relative_position": side["positions"] == "relative",
    }
    if side["positions"] == "rotary":
        options |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": _BASE}
    return options


def _norm_epsilon(settings: Mapping[str, Any], side: str) -> float:
    """Return the number that the layer normalizations of a side add to the variance."""
    return float(settings[side].get("norm_epsilon", _EPSILON))


def _scales_embeddings(settings: Mapping[str, Any], side: str) -> bool:
    """Return whether a side multiplies its embeddings; see ``TextNetwork.build``."""
    is_tied = settings["tie_embeddings"] != "none"
    has_vectors = bool((settings.get("pretrained") or {}).get(side))
    return bool(settings.get("scale_embeddings", True)) and (is_tied or not has_vectors)


def _layer_weights(weights: Weights, name: str) -> dict[str, np.ndarray]:
    """Return the weights of a layer by path; Keras may append a number to its name."""
    selected = {}
    for path, value in weights.items():
        _, _, rest = path.partition(f"/{name}")
        if rest:
            selected[rest.partition("/")[2]] = value
    return selected


def _fill(spec: Any, weights: Weights, side: Mapping[str, Any], depth: int) -> None:
    """Fill an encoder or a decoder, except its embeddings and its projection."""
    encodings = _positions(side, weights, depth)
    if encodings is not None:
        spec.position_encodings.encodings = encodings
    for i, layer in enumerate(spec.layer):
        nested = _nested_weights(weights, f"layer_{i}")
        _linear(layer.self_attention.linear[0], nested, "attention/project")
        _linear(layer.self_attention.linear[1], nested, "attention/output")
        _norm(layer.self_attention.layer_norm, nested, "attention_norm")
        if side["positions"] == "relative":
            layer.self_attention.relative_position_keys = nested["attention/relative/keys"]
            layer.self_attention.relative_position_values = nested["attention/relative/values"]
        if hasattr(layer, "attention"):
            _linear(layer.attention.linear[0], nested, "cross/project_query")
            _linear(layer.attention.linear[1], nested, "cross/project_memory")
            _linear(layer.attention.linear[2], nested, "cross/output")
            _norm(layer.attention.layer_norm, nested, "cross_norm")
        if hasattr(layer.ffn, "linear_0_noact"):
            # Regard computes the gate and the gated values with one kernel.
            gate, values = np.split(nested["feed_forward/expand/kernel"], 2, axis=1)
            layer.ffn.linear_0.weight = _transpose(gate)
            layer.ffn.linear_0_noact.weight = _transpose(values)
        else:
            _linear(layer.ffn.linear_0, nested, "feed_forward/expand")
        _linear(layer.ffn.linear_1, nested, "feed_forward/contract")
        _norm(layer.ffn.layer_norm, nested, "feed_forward_norm")
    if side["norm"] == "pre":
        _norm(spec.layer_norm, weights, "norm")


def _nested_weights(weights: Weights, name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}/"
    return {
        path.removeprefix(prefix): value
        for path, value in weights.items()
        if path.startswith(prefix)
    }


def _linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight = _transpose(weights[f"{name}/kernel"])
    if (bias := weights.get(f"{name}/bias")) is not None:
        spec.bias = bias


def _transpose(kernel: np.ndarray) -> np.ndarray:
    """Convert ``[inputs, outputs]`` to ``[outputs, inputs]``."""
    return np.ascontiguousarray(kernel.T)


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}/gamma"], weights[f"{name}/beta"]


def _positions(side: Mapping[str, Any], weights: Weights, depth: int) -> np.ndarray | None:
    """Return the position encodings, ``[POSITIONS, depth]``; None inside of attention."""
    kind = side["positions"]
    if kind in ("rotary", "relative"):
        return None
    if kind == "learned":
        table = weights["positions/table"]  # later positions use its last vector
        return table[np.minimum(np.arange(POSITIONS), len(table) - 1)]
    if kind == "none":
        return np.zeros((POSITIONS, depth), np.float32)
    half, step = (depth + 1) // 2, np.float32(2.0 / depth)
    if kind == "sinusoidal_tensor2tensor":
        half, step = depth // 2, np.float32(1.0 / max(depth // 2 - 1, 1))
    exponents = np.arange(half, dtype=np.float32) * step
    position = np.arange(POSITIONS, dtype=np.float32) + np.float32(side.get("first_position", 0))
    phase = position[:, None] / np.power(np.float32(_BASE), exponents)
    encodings = np.zeros((POSITIONS, max(depth, 2 * half)), np.float32)
    if kind == "sinusoidal":
        encodings[:, 0::2], encodings[:, 1::2] = np.sin(phase), np.cos(phase)
    else:
        encodings[:, :half], encodings[:, half : 2 * half] = np.sin(phase), np.cos(phase)
    return encodings[:, :depth]
