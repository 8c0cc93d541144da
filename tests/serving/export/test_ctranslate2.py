"""The same weights in CTranslate2 and in Keras."""

import ctranslate2
import keras
import numpy as np
import pytest
from keras import ops

from regard.models import tasks
from regard.models.search import GreedySearch
from regard.models.settings.training import TrainingConfig
from regard.models.vocabulary import EOS, PAD
from regard.serving.export.ctranslate2 import (
    create_specification,
    find_unsupported,
    first_token_pairs,
    quantize,
    target_prefixes,
)
from tests.tolerances import assert_close

PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"▁{i}" for i in range(26))]
SIDE = {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 12, "norm": "pre"}
SIDE |= {"positions": "sinusoidal", "max_positions": 64, "activation": "relu"}
TRAINING = {"precision": "float32", "label_smoothing": 0.0, "reinforce": {}, "penalties": {}}
ROWS = [[5, 9, 9, 24, 7, 8, 15], [4], [28, 6, 11], []]
TARGETS = [[7, 7, 12], [9, 20, 21, 25, 4, 8], [5], [29, 4]]


def settings(tie="none", encoder=None, decoder=None, **both):
    return {
        "embedding": 8,
        "dropout": 0.1,
        "tie_embeddings": tie,
        "pretrained": None,
        "encoder": {**SIDE, **both, **(encoder or {})},
        "decoder": {**SIDE, **both, **(decoder or {})},
        "attention": {"score": {"type": "scaled_dot"}, "alignment": {"type": "soft"}},
    }


def built(model):
    """A model whose weights are far enough from those it begins with to tell layers apart."""
    keras.utils.set_random_seed(5)
    task = tasks.get_network("translation")
    created = task.build(
        task.description.model.model_validate(model),
        TrainingConfig.model_validate(TRAINING),
        dict.fromkeys(("source", "target"), 30),
    )
    for weight in created.weights:
        weight.assign(weight * 1.5 + keras.random.normal(weight.shape) * 0.2)
    return created


def specified(created, model, quantization="float32"):
    weights = {weight.path: np.array(weight) for weight in created.weights}
    spec = create_specification(weights, model, {"source": PIECES, "target": PIECES})
    spec.validate()
    quantize(spec, quantization)
    return spec


def converted(created, model, folder, quantization="float32", compute_type="default"):
    folder.mkdir()
    specified(created, model, quantization).save(str(folder))
    return ctranslate2.Translator(str(folder), intra_threads=1, compute_type=compute_type)


def padded(rows, end):
    width = max(map(len, rows)) + 1
    return np.array([[*row, *end, *[PAD] * (width - len(row) - len(end))] for row in rows], "int32")


def messages(rows):
    return [[PIECES[i] for i in row] for row in rows]


VARIANTS = {
    "plain": settings(),
    "post-norm, tied output": settings("output", norm="post"),
    "all tied, gelu": settings("all", activation="gelu"),
    "rotary, swiglu": settings(positions="rotary", activation="swiglu"),
    "learned, few": settings(positions="learned", max_positions=5),
    "relative": settings(positions="relative", max_distance=2),
    "as OPUS-MT": settings("all", norm="post", activation="silu", positions="sinusoidal_marian"),
    "as M2M-100, without scale": {
        **settings("all", positions="sinusoidal_tensor2tensor", first_position=2),
        "scale_embeddings": False,
    },
    "as OpenNMT-tf": settings(
        positions="sinusoidal_tensor2tensor",
        first_position=1,
        norm_epsilon=0.001,
        encoder={"read_end": False},
    ),
    "large epsilon, post-norm": settings(norm="post", norm_epsilon=0.1),
    "sides that differ": settings(
        encoder={"layers": 1, "norm": "post", "heads": 4, "positions": "rotary"},
        decoder={"layers": 3, "activation": "swiglu"},
    ),
}
QUANTIZED = ["plain", "all tied, gelu", "sides that differ"]


@pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS)
def test_every_piece_is_as_probable_as_in_keras(tmp_path, model):
    created = built(model)
    translator = converted(created, model, tmp_path / "model")
    result = translator.score_batch(messages(ROWS), messages(TARGETS))
    source, target = padded(ROWS, [EOS]), padded(TARGETS, [EOS])
    logits, _ = created.teacher_force(source, target)
    expected = ops.convert_to_numpy(ops.log_softmax(logits, axis=-1))
    if not model["encoder"].get("read_end", True):
        result = result[: ROWS.index([])]  # CTranslate2 has no score for a source without tokens
    for i, (row, score) in enumerate(zip(TARGETS, result, strict=False)):
        log_probs_of_row = [expected[i, t, piece] for t, piece in enumerate([*row, EOS])]
        assert_close(score.log_probs, log_probs_of_row, roundings=1000)


def test_greedy_search_and_attention_are_the_same(tmp_path):
    rows = [row for row in ROWS if row]  # nothing is always translated by nothing there
    model = VARIANTS["plain"]
    created = built(model)
    translator = converted(created, model, tmp_path / "model")
    result = translator.translate_batch(
        messages(rows), beam_size=1, max_decoding_length=9, return_attention=True
    )
    source = padded(rows, [EOS])
    ids = ops.convert_to_numpy(created.search(source, GreedySearch(), [10] * len(rows)).ids)[:, 0]
    _, alignments = created.teacher_force(source, ids)
    assert len({tuple(row) for row in ids}) > 1
    for row, row_ids, attention_map, source_row in zip(result, ids, alignments, rows, strict=True):
        stored_text = [int(i) for i in row_ids if i not in (PAD, EOS)]
        assert row.hypotheses[0] == messages([stored_text])[0]
        size = len(stored_text), len(source_row)  # without its end
        weights = np.reshape(row.attention[0], size)
        assert_close(weights, attention_map[: size[0], : size[1]], roundings=1000)


FIRST = [[28, 5], [4, 9], [4, 7]]  # of two pairs of a source, the first one counts
FIRST_MODEL = {**VARIANTS["as M2M-100, without scale"], "first_tokens": FIRST}


def first_prefixes(model, rows):
    pairs = first_token_pairs(model, {"source": PIECES, "target": PIECES})
    return target_prefixes(messages(rows), pairs)


def test_prefixes_are_the_first_tokens_that_the_decoder_reads():
    expected = [[5], [9], [5], [5]]  # by default that of the first pair
    assert first_prefixes(FIRST_MODEL, ROWS) == messages(expected)
    assert first_prefixes(settings(), ROWS) == [[], [], [], []]
    read = built(FIRST_MODEL).decoder_inputs(padded(ROWS, [EOS]), padded(TARGETS, [EOS]))
    assert messages(ops.convert_to_numpy(read)[:, 1:2].tolist()) == messages(expected)


def test_tokens_after_a_first_token_are_as_probable_as_in_keras(tmp_path):
    created = built(FIRST_MODEL)
    translator = converted(created, FIRST_MODEL, tmp_path / "model")
    prefixes = first_prefixes(FIRST_MODEL, ROWS)
    targets = [[*first, *target] for first, target in zip(prefixes, messages(TARGETS), strict=True)]
    result = translator.score_batch(messages(ROWS), targets)
    expected, _ = created.score_with_alignment(padded(ROWS, [EOS]), padded(TARGETS, [EOS]))
    for target, row, score in zip(TARGETS, ops.convert_to_numpy(expected), result, strict=True):
        assert_close(score.log_probs[1:], row[: len(target) + 1], roundings=1000)


def test_a_prefix_has_the_probability_1_and_counts_as_a_token_of_the_length(tmp_path):
    rows = [row for row in ROWS if row]
    created = built(FIRST_MODEL)
    (bias,) = [weight for weight in created.weights if weight.path.endswith("logits_bias")]
    bias.assign([0.0, 0.0, 0.0, 4.0, *[0.0] * 26])  # so that outputs end
    translator = converted(created, FIRST_MODEL, tmp_path / "model")
    prefixes = first_prefixes(FIRST_MODEL, rows)
    result = translator.translate_batch(
        messages(rows),
        target_prefix=prefixes,
        beam_size=1,
        length_penalty=1.0,
        max_decoding_length=11,
        min_decoding_length=0,
        return_scores=True,
        return_end_token=True,
        return_attention=True,
    )
    source = padded(rows, [EOS])
    best = created.search(source, GreedySearch(), [10] * len(rows))
    ids, scores = (ops.convert_to_numpy(x)[:, 0] for x in (best.ids, best.log_probabilities))
    _, alignments = created.teacher_force(source, ids)
    complete = 0
    for i, (row, prefix) in enumerate(zip(result, prefixes, strict=True)):
        tokens = row.hypotheses[0]
        length = int((ids[i] != PAD).sum())
        if length == 10:  # ends there in one engine, and without an end in the other
            continue
        complete += 1
        assert tokens == [*prefix, *messages([ids[i, :length]])[0]]
        assert row.scores[0] * len(tokens) == pytest.approx(scores[i], abs=1e-4)
        weights = np.array(row.attention[0])[1:]
        expected = ops.convert_to_numpy(alignments[i, :length, : len(rows[i])])
        assert_close(weights, expected, roundings=1000)
    assert complete


def log_probs(translator):
    results = translator.score_batch(messages(ROWS), messages(TARGETS))
    return np.concatenate([row.log_probs for row in results])


@pytest.mark.parametrize("name", QUANTIZED)
def test_int8_changes_scores_little(tmp_path, name):
    """Also on processors without VNNI, which add products of 8 bits in 16 bits."""
    model = VARIANTS[name]
    created = built(model)
    exact = log_probs(converted(created, model, tmp_path / "exact"))
    rough = log_probs(converted(created, model, tmp_path / "rough", "int8"))
    assert 0 < np.abs(rough - exact).max() < 0.5


@pytest.mark.parametrize("quantization", ["int16", "float16"])
def test_weights_of_16_bits_change_scores_little(tmp_path, quantization):
    """Computed in float32, because not every processor computes in these types."""
    model = VARIANTS["plain"]
    created = built(model)
    exact = log_probs(converted(created, model, tmp_path / "exact"))
    rough = log_probs(converted(created, model, tmp_path / "rough", quantization, "float32"))
    assert 0 < np.abs(rough - exact).max() < 0.05


@pytest.mark.parametrize("name", QUANTIZED)
def test_no_sum_of_two_int8_products_exceeds_16_bits(name):
    model = VARIANTS[name]
    created = built(model)
    variables = specified(created, model, "int8").variables()
    original = specified(created, model).variables()
    integers = {
        name: value.numpy().astype(int)
        for name, value in variables.items()
        if getattr(value, "dtype", "") == "int8" and value.numpy().ndim == 2
    }
    assert len(integers) > 10
    for name, value in integers.items():
        pairs = np.abs(value[:, ::2]) + np.abs(value[:, 1::2])
        assert 255 * pairs.max() <= np.iinfo(np.int16).max
        step = 1 / variables[f"{name}_scale"].numpy()[:, None]
        error = np.abs(value * step - original[name].numpy())
        assert (error <= 0.5001 * step).all()


def test_rows_of_zeros_and_tiny_numbers_are_quantized(tmp_path):
    model = VARIANTS["plain"]
    created = built(model)
    kernel = next(weight for weight in created.weights if weight.path.endswith("logits/kernel"))
    value = np.array(kernel)
    value[:, 7], value[:, 8] = 0.0, 1e-38
    kernel.assign(value)
    exact = log_probs(converted(created, model, tmp_path / "exact"))
    rough = log_probs(converted(created, model, tmp_path / "rough", "int8"))
    assert np.abs(rough - exact).max() < 0.5


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"encoder": {"type": "recurrent"}}, "model.encoder.type"),
        ({"encoder": [SIDE]}, "model.encoder.type"),
        ({"encoder": {**SIDE, "positions": "alibi"}}, "model.encoder.positions"),
        ({"decoder": {**SIDE, "position_merge": "concat"}}, "model.decoder.position_merge"),
        ({"decoder": {**SIDE, "pointer_generator": True}}, "model.decoder.pointer_generator"),
        ({"attention": {"score": {"type": "additive"}}}, "model.attention.score"),
        ({"attention": {"alignment": {"type": "local_m"}}}, "model.attention.alignment"),
        ({"attention": {"values": "split"}}, "model.attention.values"),
        ({"first_tokens": [[4, 5], [6, EOS]]}, "model.first_tokens"),
        ({"encoder": {**SIDE, "norm_epsilon": 1e-3}}, "model.decoder.norm_epsilon"),
        ({"decoder": {**SIDE, "norm_epsilon": 1e-3}}, "model.decoder.norm_epsilon"),
    ],
)
def test_unsupported_settings(change, key):
    assert find_unsupported(settings()) == find_unsupported(FIRST_MODEL) == []
    assert [result for result, _ in find_unsupported({**settings(), **change})] == [key]
