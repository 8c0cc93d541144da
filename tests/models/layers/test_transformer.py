import numpy as np
import pytest

from regard.models.layers.transformer import DecoderBlock, EncoderBlock
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
    """One block in float64 from the formulas of Vaswani et al. 2017, §3.1 to §3.3."""

    def __init__(self, block):
        self.weights = weights_by_name(block)
        self.attended = {}
        self.heads, self.pre = block.settings["heads"], block.settings["norm"] == "pre"

    def dense(self, x, name):
        return x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def around(self, x, name, part):
        if self.pre:
            return x + part(self.norm(x, name))
        return self.norm(x + part(x), name)

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

    def itself(self, x, mask):
        def part(x):
            return self.attend(
                *np.split(self.dense(x, "attention/project"), 3, -1), mask, "attention"
            )

        return self.around(x, "attention_norm", part)

    def memory(self, x, values, mask):
        def part(x):
            query = self.dense(x, "cross/project_query")
            keys, projected = np.split(self.dense(values, "cross/project_memory"), 2, -1)
            return self.attend(query, keys, projected, mask, "cross")

        return self.around(x, "cross_norm", part)

    def network(self, x):
        def part(x):
            hidden = np.maximum(self.dense(x, "feed_forward/expand"), 0)
            return self.dense(hidden, "feed_forward/contract")

        return self.around(x, "feed_forward_norm", part)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_block_equals_the_paper(norm):
    block = filled(EncoderBlock(8, 2, 6, norm=norm))
    inputs = RANDOM.normal(size=(2, 3, 8)).astype("float32")
    reference = Reference(block)
    expected = reference.network(reference.itself(inputs, MASK[:, None, :]))
    assert_close(block(inputs, mask=MASK), expected)
    _, weights = block.call_with_weights(inputs, mask=MASK)
    assert_close(weights, reference.attended["attention"])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_block_equals_the_paper(norm):
    block = filled(DecoderBlock(8, 2, 6, memory_depth=5, norm=norm))
    inputs = RANDOM.normal(size=(2, 4, 8)).astype("float32")
    values = RANDOM.normal(size=(2, 3, 5)).astype("float32")
    reference = Reference(block)
    hidden = reference.itself(inputs, np.tril(np.ones((4, 4), bool)))
    expected = reference.network(reference.memory(hidden, values, MASK[:, None, :]))
    outputs, attention = block(inputs, block.prepare(values, MASK))
    assert_close(outputs, expected)
    assert_close(attention.cross, reference.attended["cross"])
    assert_close(attention.target, reference.attended["attention"])
