"""The neural language model of Rush et al. 2015 with each of its encoders, in NumPy's float64."""

import keras
import numpy as np
import pytest

from regard.models.decoders import FeedForwardDecoder
from regard.models.encoders import EmbeddingEncoder, TextConvolutionEncoder
from regard.models.seq2seq import Seq2Seq
from tests.marks import slow_except
from tests.models.tensors import fill, gradients, train, weights_by_name
from tests.tolerances import assert_close

SOURCE = np.array([[5, 6, 7, 8, 4, 6, 3], [4, 8, 3, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0]], "int32")
TOKENS = np.array([[2, 5, 6, 7], [2, 4, 0, 0], [2, 8, 8, 5]], "int32")
CONVOLUTIONS = {"units": 4, "layers": 2, "kernel_size": 5, "pooling": True}
KINDS = {
    "attention": (EmbeddingEncoder, {}, {"attention": {"score": "general"}}),
    "attention, no neighbours": (EmbeddingEncoder, {}, {"attention": {}, "smoothing": 0}),
    "bag of words": (EmbeddingEncoder, {}, {}),
    "convolutional": (TextConvolutionEncoder, CONVOLUTIONS, {"pooling": "max"}),
    "convolutional, gated mean": (TextConvolutionEncoder, CONVOLUTIONS, {"pooling": "gate"}),
    "one token": (EmbeddingEncoder, {}, {"attention": {}, "context_size": 1}),
}


def created(kind, **changes):
    create, options, settings = KINDS[kind]
    encoder = create(9, embedding=4, **options)
    settings = {"embedding": 3, "units": 5, "context_size": 3, **settings, **changes}
    decoder = FeedForwardDecoder(9, encoder.depth, **settings)
    encoder.build()
    decoder.build()
    model = Seq2Seq(encoder, decoder)
    model.build()
    return fill(model, np.random.default_rng(6), 0.6)


def convolve(w, ids, layers=2, size=5):
    """§3.2, "Convolutional Encoder": convolution, the maximum of pairs, tanh; then over time."""
    table = w["embedding/table"]
    x = table[ids] * np.sqrt(table.shape[1]) @ w["project/kernel"] + w["project/bias"]
    for i in range(layers):
        kernel = w[f"layer_{i}/kernel"].reshape(size, x.shape[1], -1)
        padded = np.pad(x, [(size // 2, size // 2), (0, 0)])
        sums = [np.einsum("kd,kdu->u", padded[t : t + size], kernel) for t in range(len(x))]
        sums = np.array(sums) + w[f"layer_{i}/bias"]
        x = np.array([np.tanh(sums[t : t + 2].max(0)) for t in range(0, len(x), 2)])
    return x.max(0), np.zeros(len(ids))


def read(w, encoder, decoder, ids, context):
    """enc(x, y_c) of §3.2, and p."""
    if "layer_0/kernel" in encoder:
        return convolve(encoder, ids)
    table = encoder["embedding/table"]
    x = table[ids] * np.sqrt(table.shape[1])
    if decoder.attention is None:
        return x.mean(0), np.zeros(len(ids))
    own = w["query_embedding/table"]
    query = np.concatenate([own[token] * np.sqrt(own.shape[1]) for token in context])
    kernel = w["attention/score/kernel"]
    p = np.exp(x @ kernel / np.sqrt(kernel.shape[1]) @ query)
    p /= p.sum()
    near, smooth = decoder.smoothing, np.zeros_like(x)
    for i in range(len(x)):
        for q in range(max(0, i - near), min(len(x), i + near + 1)):
            smooth[i] += x[q] / (2 * near + 1)
    return p @ smooth, p


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "gated" not in kind])
def test_equals_the_paper_and_steps_equal_unroll(kind):
    model = created(kind)
    decoder, size = model.decoder, model.decoder.context_size
    w, encoder = weights_by_name(decoder), weights_by_name(model.encoder)
    logits, alignments = (np.asarray(x) for x in decoder.unroll(TOKENS, model.encode(SOURCE)))
    state = decoder.start(model.encode(SOURCE))
    for t in range(4):
        step, state, alignment = decoder.step(TOKENS[:, t], state)
        assert_close(step, logits[:, t])
        assert_close(alignment, alignments[:, t])
        for row, ids in enumerate(SOURCE):
            ids = ids[ids > 0]
            context = np.concatenate([[2] * size, TOKENS[row, : t + 1]]).astype(int)[-size:]
            table = w["embedding/table"]
            y = np.concatenate([table[token] * np.sqrt(3) for token in context])
            h = np.tanh(y @ w["hidden/kernel"] + w["hidden/bias"])
            enc, p = read(w, encoder, decoder, ids, context)
            v, u = np.split(w["logits/kernel"], [5])
            expected = h @ v + enc @ u + w["logits/bias"]
            assert_close(logits[row, t], expected)
            assert_close(alignments[row, t, : len(ids)], p)
            assert not alignments[row, t, len(ids) :].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_gives_alone_what_it_gives_in_a_batch(kind):
    model = created(kind)
    logits, alignments = model.decoder.unroll(TOKENS, model.encode(SOURCE))
    for row, length in enumerate([7, 3, 1]):
        memory = model.encode(SOURCE[row : row + 1, :length])
        alone, weights = model.decoder.unroll(TOKENS[row : row + 1], memory)
        assert_close(logits[row], alone[0])
        assert_close(alignments[row, :, :length], weights[0])


@pytest.mark.parametrize("kind", slow_except(["attention", "convolutional, gated mean"], KINDS))
def test_every_weight_is_trained_and_tokens_before_the_window_do_not_count(kind, tmp_path):
    model = created(kind)
    target = np.array([[4, 5, 3, 0], [7, 6, 5, 3], [8, 4, 4, 3]], "int32")
    data = {"source": SOURCE, "target": target}
    result = gradients(lambda: model.compute_loss(data, None, model(data)), layer=model)
    for weight, gradient in zip(model.trainable_weights, result, strict=True):
        assert np.isfinite(gradient).all()
        assert gradient.any(), weight.path
    other = np.where(np.arange(4) == 0, 6, TOKENS)
    size, memory = model.decoder.context_size, model.encode(SOURCE)
    ours, theirs = (model.decoder.unroll(tokens, memory)[0] for tokens in (TOKENS, other))
    np.testing.assert_array_equal(ours[:, size:], theirs[:, size:])
    assert not np.allclose(ours[:, size - 1], theirs[:, size - 1])
    model.compile(optimizer=keras.optimizers.Adam(0.02))
    losses = train(model, data, 30)
    assert losses[-1] < 0.5 * losses[0]
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_close(again.score(SOURCE, target), model.score(SOURCE, target))


def test_new_tokens_of_a_warm_start_reach_the_query_too():
    tables = [weight.path for weight, _ in created("attention").decoder.vocab_weights]
    assert [path.split("/", 1)[1] for path in tables] == [
        "embedding/table",
        "logits/kernel",
        "logits/bias",
        "query_embedding/table",
    ]
    assert len(created("bag of words").decoder.vocab_weights) == 3


@pytest.mark.parametrize("alignment", ["local_m", "local_p", "top_k", {"type": "hard"}])
def test_other_alignments(alignment):
    model = created("attention", attention={"score": "additive", "alignment": alignment})
    memory = model.encode(SOURCE)
    logits, alignments, _ = model.decoder.unroll_with_distribution(TOKENS, memory)
    state = model.decoder.start(memory)
    for t in range(4):
        step, state, alignment = model.decoder.step(TOKENS[:, t], state)
        assert_close(step, logits[:, t])
        assert_close(alignment, alignments[:, t])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "maximum"}, "Unknown pooling 'maximum'"),
        ({"pointer_generator": True}, "set `attention`"),
        ({"tied": True}, "must have the depth"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FeedForwardDecoder(9, 4, **settings)
