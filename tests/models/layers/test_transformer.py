import numpy as np
import pytest

from regard.models.layers.transformer import DecoderBlock, EncoderBlock
from tests.models.layers import reference
from tests.models.tensors import weights_by_name
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(9)
MASK = np.array([[1, 1, 1], [1, 1, 0]], bool)


def filled(block):
    block.build()
    for weight in block.weights:
        near = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(near + RANDOM.normal(size=weight.shape) * 0.5)
    return block


class Reference:
    """Sublayers in float64 from the formulas of Vaswani et al. 2017, §3.1 to §3.3."""

    def __init__(self, block):
        self.weights = weights_by_name(block)
        self.attended = {}
        self.heads = block.settings["heads"]
        self.epsilon = block.settings["norm_epsilon"]
        self.residual = getattr(reference, f"{block.settings['norm']}_norm")

    def dense(self, x, name):
        return x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def norm(self, name):
        gamma, beta = (self.weights[f"{name}/{weight}"] for weight in ("gamma", "beta"))
        return lambda x: reference.layer_normalization(x, gamma, beta, self.epsilon)

    def attend(self, q, k, v, mask, name):
        contexts, attended = [], []
        for part in np.split(np.arange(q.shape[-1]), self.heads):
            scores = np.einsum("btd,bsd->bts", q[..., part], k[..., part]) / len(part) ** 0.5
            weights = np.exp(scores) * mask
            weights = weights / weights.sum(-1, keepdims=True)
            contexts.append(weights @ v[..., part])
            attended.append(weights)
        self.attended[name] = np.stack(attended, 1)
        return self.dense(np.concatenate(contexts, -1), f"{name}/output")

    def self_attention(self, mask):
        def sublayer(x):
            projected = np.split(self.dense(x, "attention/project"), 3, -1)
            return self.attend(*projected, mask, "attention")

        return sublayer

    def cross_attention(self, values, mask):
        def sublayer(x):
            query = self.dense(x, "cross/project_query")
            keys, projected = np.split(self.dense(values, "cross/project_memory"), 2, -1)
            return self.attend(query, keys, projected, mask, "cross")

        return sublayer

    def network(self, x):
        names = ("expand/kernel", "expand/bias", "contract/kernel", "contract/bias")
        return reference.feed_forward(x, *(self.weights[f"feed_forward/{name}"] for name in names))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 0.1])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_block_equals_the_paper(norm, epsilon):
    block = filled(EncoderBlock(8, 2, 6, norm=norm, norm_epsilon=epsilon))
    inputs = RANDOM.normal(size=(2, 3, 8)).astype("float32")
    parts = Reference(block)
    norms = [parts.norm(name) for name in ("attention_norm", "feed_forward_norm")]
    attention = parts.self_attention(MASK[:, None, :])
    expected = reference.encoder_block(inputs, attention, parts.network, norms, parts.residual)
    assert_close(block(inputs, mask=MASK), expected)
    _, weights = block.call_with_weights(inputs, mask=MASK)
    assert_close(weights, parts.attended["attention"])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 0.1])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_block_equals_the_paper(norm, epsilon):
    block = filled(DecoderBlock(8, 2, 6, memory_depth=5, norm=norm, norm_epsilon=epsilon))
    inputs = RANDOM.normal(size=(2, 4, 8)).astype("float32")
    values = RANDOM.normal(size=(2, 3, 5)).astype("float32")
    parts = Reference(block)
    names = ("attention_norm", "cross_norm", "feed_forward_norm")
    expected = reference.decoder_block(
        inputs,
        parts.self_attention(np.tril(np.ones((4, 4), bool))),
        parts.cross_attention(values, MASK[:, None, :]),
        parts.network,
        [parts.norm(name) for name in names],
        parts.residual,
    )
    outputs, attention = block(inputs, block.prepare(values, MASK))
    assert_close(outputs, expected)
    assert_close(attention.cross, parts.attended["cross"])
    assert_close(attention.target, parts.attended["attention"])
