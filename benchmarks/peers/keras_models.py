"""A Transformer of Keras's layers, one of KerasHub's, and LSTMs with attention of Keras's.

All take the tokens of the source and of the decoder's input, and return the logits of the target
tokens. Sizes are those of the section ``model``, as for Regard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import layers, ops

from regard.models.seq2seq import shift
from regard.models.vocabulary import PAD


def builder_for(
    program: str, model: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], int, int], keras.Model]:
    """The function that builds the counterpart of a model from vocabulary size and text length."""
    if program == "keras-hub":
        return keras_hub_transformer
    return transformer if model["encoder"]["type"] == "transformer" else recurrent


def convert_batch(batch: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Convert a batch of Regard to inputs, targets and sample weights for Keras."""
    target = batch["target"]
    inputs = (batch["source"], shift(target))
    return inputs, target, ops.cast(ops.not_equal(target, PAD), "float32")


def transformer(model: Mapping[str, Any], vocabulary: int, longest: int) -> keras.Model:
    """`MultiHeadAttention`, `Dense` and `LayerNormalization`, with pre-normalization."""
    width, rate = model["embedding"], model["dropout"]
    source, before = _inputs()
    mask = layers.Lambda(lambda ids: ops.not_equal(ids, PAD)[:, None])(source)
    embed = layers.Embedding(vocabulary, width)
    position = layers.Embedding(longest + 1, width)

    def embed_with_positions(ids: Any) -> Any:
        positions = layers.Lambda(lambda ids: ops.cumsum(ops.ones_like(ids), axis=1) - 1)(ids)
        return layers.Dropout(rate)(embed(ids) + position(positions))

    def attend(inputs: Any, side: Mapping[str, Any], memory: Any = None, **options: Any) -> Any:
        query = layers.LayerNormalization()(inputs)
        attention = layers.MultiHeadAttention(side["heads"], width // side["heads"])
        output = attention(query, query if memory is None else memory, **options)
        return inputs + layers.Dropout(rate)(output)

    def feed(inputs: Any, side: Mapping[str, Any]) -> Any:
        hidden = layers.LayerNormalization()(inputs)
        hidden = layers.Dense(side["feed_forward"], activation="relu")(hidden)
        return inputs + layers.Dropout(rate)(layers.Dense(width)(hidden))

    memory, encoder, decoder = embed_with_positions(source), model["encoder"], model["decoder"]
    for _ in range(encoder["layers"]):
        memory = feed(attend(memory, encoder, attention_mask=mask), encoder)
    memory = layers.LayerNormalization()(memory)
    hidden = embed_with_positions(before)
    for _ in range(decoder["layers"]):
        hidden = attend(hidden, decoder, use_causal_mask=True)
        hidden = feed(attend(hidden, decoder, memory, attention_mask=mask), decoder)
    logits = layers.Dense(vocabulary, dtype="float32")(layers.LayerNormalization()(hidden))
    return keras.Model([source, before], logits)


def keras_hub_transformer(model: Mapping[str, Any], vocabulary: int, longest: int) -> keras.Model:
    """KerasHub's layers with pre-normalization; they have one dropout rate for everything."""
    from keras_hub import layers as hub

    width, rate, encoder, decoder = (
        model[x] for x in ("embedding", "dropout", "encoder", "decoder")
    )
    source, before = _inputs()
    embed = hub.TokenAndPositionEmbedding(vocabulary, longest + 1, width, mask_zero=True)
    memory = layers.Dropout(rate)(embed(source))
    hidden = layers.Dropout(rate)(embed(before))

    def options(side: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "intermediate_dim": side["feed_forward"],
            "num_heads": side["heads"],
            "dropout": rate,
            "normalize_first": True,
        }

    for _ in range(encoder["layers"]):
        memory = hub.TransformerEncoder(**options(encoder))(memory)
    memory = layers.LayerNormalization()(memory)
    for _ in range(decoder["layers"]):
        hidden = hub.TransformerDecoder(**options(decoder))(hidden, memory)
    logits = embed.token_embedding(layers.LayerNormalization()(hidden), reverse=True)
    return keras.Model([source, before], layers.Activation("linear", dtype="float32")(logits))


def recurrent(model: Mapping[str, Any], vocabulary: int, longest: int) -> keras.Model:
    """`LSTM` and `Attention` with Luong's general score, without input feeding."""
    encoder, decoder, rate = model["encoder"], model["decoder"], model["dropout"]
    source, before = _inputs()
    mask = layers.Lambda(lambda ids: ops.not_equal(ids, PAD))(source)
    memory = layers.Dropout(rate)(layers.Embedding(vocabulary, model["embedding"])(source))
    for _ in range(encoder["layers"]):
        layer = layers.LSTM(encoder["units"], return_sequences=True, return_state=True)
        if encoder["bidirectional"]:
            layer = layers.Bidirectional(layer)
        memory, *states = layer(memory, mask=mask)
        memory = layers.Dropout(rate)(memory)
    hidden = layers.Dropout(rate)(layers.Embedding(vocabulary, model["embedding"])(before))
    for _ in range(decoder["layers"]):
        hidden = layers.LSTM(decoder["units"], return_sequences=True)(
            hidden, initial_state=states[:2]
        )
        hidden = layers.Dropout(rate)(hidden)
    keys = layers.Dense(decoder["units"], use_bias=False)(memory)
    context = layers.Attention()([hidden, memory, keys], mask=[None, mask])
    joined = layers.Concatenate()([hidden, context])
    joined = layers.Dropout(rate)(layers.Dense(decoder["units"], activation="tanh")(joined))
    return keras.Model([source, before], layers.Dense(vocabulary, dtype="float32")(joined))


def _inputs() -> tuple[Any, Any]:
    return tuple(layers.Input([None], dtype="int32", name=name) for name in ("source", "before"))
