"""What one writes with Keras's own layers: a Transformer, and LSTMs with attention.

Both take the pieces of the source and what the decoder reads, and give the logits of the target's
pieces. Sizes come from the YAML's section ``model``, as Regard's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import layers, ops

from models.seq2seq import shift
from models.vocabulary import PAD


def of(model: Mapping[str, Any]) -> Callable[[Mapping[str, Any], int, int], keras.Model]:
    """What makes the counterpart of such a model, given its vocabulary and the longest text."""
    return transformer if model["encoder"]["type"] == "transformer" else recurrent


def row(batch: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """A batch of Regard's as Keras takes it: inputs, targets, and their weights."""
    target = batch["target"]
    inputs = (batch["source"], shift(target))
    return inputs, target, ops.cast(ops.not_equal(target, PAD), "float32")


def transformer(model: Mapping[str, Any], vocabulary: int, longest: int) -> keras.Model:
    """`MultiHeadAttention`, `Dense` and `LayerNormalization`, normalised before every part."""
    width, rate = model["embedding"], model["dropout"]
    source, before = _inputs()
    seen = layers.Lambda(lambda ids: ops.not_equal(ids, PAD)[:, None])(source)
    embed = layers.Embedding(vocabulary, width)
    place = layers.Embedding(longest + 1, width)

    def read(ids: Any) -> Any:
        positions = layers.Lambda(lambda ids: ops.cumsum(ops.ones_like(ids), axis=1) - 1)(ids)
        return layers.Dropout(rate)(embed(ids) + place(positions))

    def attend(inputs: Any, side: Mapping[str, Any], memory: Any = None, **options: Any) -> Any:
        query = layers.LayerNormalization()(inputs)
        attention = layers.MultiHeadAttention(side["heads"], width // side["heads"])
        found = attention(query, query if memory is None else memory, **options)
        return inputs + layers.Dropout(rate)(found)

    def feed(inputs: Any, side: Mapping[str, Any]) -> Any:
        hidden = layers.LayerNormalization()(inputs)
        hidden = layers.Dense(side["feed_forward"], activation="relu")(hidden)
        return inputs + layers.Dropout(rate)(layers.Dense(width)(hidden))

    memory, encoder, decoder = read(source), model["encoder"], model["decoder"]
    for _ in range(encoder["layers"]):
        memory = feed(attend(memory, encoder, attention_mask=seen), encoder)
    memory = layers.LayerNormalization()(memory)
    hidden = read(before)
    for _ in range(decoder["layers"]):
        hidden = attend(hidden, decoder, use_causal_mask=True)
        hidden = feed(attend(hidden, decoder, memory, attention_mask=seen), decoder)
    logits = layers.Dense(vocabulary, dtype="float32")(layers.LayerNormalization()(hidden))
    return keras.Model([source, before], logits)


def recurrent(model: Mapping[str, Any], vocabulary: int, longest: int) -> keras.Model:
    """`LSTM` and `Attention` with Luong's general score; no layer of Keras's feeds it back."""
    encoder, decoder, rate = model["encoder"], model["decoder"], model["dropout"]
    source, before = _inputs()
    seen = layers.Lambda(lambda ids: ops.not_equal(ids, PAD))(source)
    memory = layers.Dropout(rate)(layers.Embedding(vocabulary, model["embedding"])(source))
    for _ in range(encoder["layers"]):
        layer = layers.LSTM(encoder["units"], return_sequences=True, return_state=True)
        if encoder["bidirectional"]:
            layer = layers.Bidirectional(layer)
        memory, *states = layer(memory, mask=seen)
        memory = layers.Dropout(rate)(memory)
    hidden = layers.Dropout(rate)(layers.Embedding(vocabulary, model["embedding"])(before))
    for _ in range(decoder["layers"]):
        hidden = layers.LSTM(decoder["units"], return_sequences=True)(
            hidden, initial_state=states[:2]
        )
        hidden = layers.Dropout(rate)(hidden)
    keys = layers.Dense(decoder["units"], use_bias=False)(memory)
    context = layers.Attention()([hidden, memory, keys], mask=[None, seen])
    joined = layers.Concatenate()([hidden, context])
    joined = layers.Dropout(rate)(layers.Dense(decoder["units"], activation="tanh")(joined))
    return keras.Model([source, before], layers.Dense(vocabulary, dtype="float32")(joined))


def _inputs() -> tuple[Any, Any]:
    return tuple(layers.Input([None], dtype="int32", name=name) for name in ("source", "before"))
