"""What all attention layers share: errors that explain arguments of Keras's layers."""

import inspect

import numpy as np
import pytest

from regard.models.attention import Attention, MultiHeadAttention, Pointer, base


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda q, m: MultiHeadAttention(num_heads=2, key_dim=4), "Use heads"),
        (lambda q, m: MultiHeadAttention(2, 8, value_dim=4), "Use width"),
        (lambda q, m: Attention(use_scale=True), "Use score='scaled_dot'"),
        (lambda q, m: Attention()([q, m]), r"Attention\(...\)\(query, memory\)"),
        (lambda q, m: Attention([q, m]), r"Attention\(...\)\(query, memory\)"),
        (lambda q, m: Pointer()([q, m]), r"Pointer\(...\)\(query, memory\)"),
        (lambda q, m: Attention()(q, value=m), "Use memory"),
        (lambda q, m: MultiHeadAttention(2, 8)(q, m, key=m), "Use memory for the keys"),
        (lambda q, m: MultiHeadAttention(2, 8)(q, use_causal_mask=True), "Use causal"),
        (lambda q, m: Attention()(q, m, return_attention_scores=True), "Use return_weights"),
        (lambda q, m: Attention()(q, m, attention_mask=None), "Use mask"),
    ],
)
def test_arguments_of_keras_name_ours(wrong, message):
    query, memory = np.zeros((1, 2, 8), "float32"), np.zeros((1, 3, 8), "float32")
    with pytest.raises(TypeError, match=message):
        wrong(query, memory)


@pytest.mark.parametrize("layer", [Attention, MultiHeadAttention, Pointer])
def test_no_argument_is_refused(layer):
    names = {
        *inspect.signature(layer.__init__).parameters,
        *inspect.signature(layer.call).parameters,
    }
    assert names & base._KERAS_ARGUMENTS.keys() == set()
