"""The same weights in CTranslate2, held against the model as Keras runs it."""

import ctranslate2
import keras
import numpy as np
import pytest
from keras import ops

from models import tasks
from models.search import GreedySearch
from models.vocabulary import EOS, PAD
from serving.ctranslate2 import obstacles, specification

PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"▁{i}" for i in range(26))]
SIDE = {
    "type": "transformer",
    "layers": 2,
    "heads": 2,
    "feed_forward": 12,
    "norm": "pre",
    "positions": "sinusoidal",
    "max_positions": 64,
    "activation": "relu",
}
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
    made = tasks.get("translation").build(model, TRAINING, dict.fromkeys(("source", "target"), 30))
    for weight in made.weights:
        weight.assign(weight * 1.5 + keras.random.normal(weight.shape) * 0.2)
    return made


def converted(made, model, folder, **quantization):
    weights = {weight.path: np.array(weight) for weight in made.weights}
    spec = specification(weights, model, {"source": PIECES, "target": PIECES})
    spec.validate()
    spec.optimize(**quantization)
    folder.mkdir()
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), intra_threads=1)


def padded(rows, end):
    width = max(map(len, rows)) + 1
    return np.array([[*row, *end, *[PAD] * (width - len(row) - len(end))] for row in rows], "int32")


def told(rows):
    return [[PIECES[i] for i in row] for row in rows]


VARIANTS = {
    "plain": settings(),
    "post-norm, tied output": settings("output", norm="post"),
    "all tied, gelu": settings("all", activation="gelu"),
    "rotary, swiglu": settings(positions="rotary", activation="swiglu"),
    "learned, few": settings(positions="learned", max_positions=5),
    "no positions": settings(positions="none"),
    "sides that differ": settings(
        encoder={"layers": 1, "norm": "post", "heads": 4, "positions": "rotary"},
        decoder={"layers": 3, "activation": "swiglu"},
    ),
}


@pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS)
def test_every_piece_is_as_probable_as_in_keras(tmp_path, model):
    made = built(model)
    translator = converted(made, model, tmp_path / "model")
    found = translator.score_batch(told(ROWS), told(TARGETS))
    source, target = padded(ROWS, [EOS]), padded(TARGETS, [EOS])
    logits, _ = made.teacher_force(source, target)
    expected = ops.convert_to_numpy(ops.log_softmax(logits, axis=-1))
    for i, (row, score) in enumerate(zip(TARGETS, found, strict=True)):
        own = [expected[i, t, piece] for t, piece in enumerate([*row, EOS])]
        np.testing.assert_allclose(score.log_probs, own, atol=2e-4)


def test_greedy_search_writes_the_same_and_looks_at_the_same(tmp_path):
    rows = [row for row in ROWS if row]  # nothing is always translated by nothing there
    model = VARIANTS["plain"]
    made = built(model)
    translator = converted(made, model, tmp_path / "model")
    found = translator.translate_batch(
        told(rows), beam_size=1, max_decoding_length=9, return_attention=True
    )
    source = padded(rows, [EOS])
    ids = ops.convert_to_numpy(made.search(source, GreedySearch(), [10] * len(rows)).ids)[:, 0]
    _, looks = made.teacher_force(source, ids)
    assert len({tuple(row) for row in ids}) > 1
    for row, own, look, source_row in zip(found, ids, looks, rows, strict=True):
        written = [int(i) for i in own if i not in (PAD, EOS)]
        assert row.hypotheses[0] == told([written])[0]
        size = len(written), len(source_row)  # without its end
        seen = np.reshape(row.attention[0], size)
        np.testing.assert_allclose(seen, look[: size[0], : size[1]], atol=1e-4)


@pytest.mark.parametrize("quantization", ["int8", "int16"])
def test_quantized_it_is_nearly_the_same(tmp_path, quantization):
    model = VARIANTS["plain"]
    made = built(model)
    exact = converted(made, model, tmp_path / "exact").score_batch(told(ROWS), told(TARGETS))
    rough = converted(made, model, tmp_path / "rough", quantization=quantization)
    found = rough.score_batch(told(ROWS), told(TARGETS))
    differences = [
        abs(a - b)
        for one, other in zip(exact, found, strict=True)
        for a, b in zip(one.log_probs, other.log_probs, strict=True)
    ]
    assert 0 < max(differences) < 0.5


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"encoder": {"type": "recurrent"}}, "model.encoder.type"),
        ({"decoder": {**SIDE, "pointer_generator": True}}, "model.decoder.pointer_generator"),
        ({"attention": {"score": {"type": "additive"}}}, "model.attention.score"),
        ({"attention": {"alignment": {"type": "local_m"}}}, "model.attention.alignment"),
    ],
)
def test_what_it_has_no_layers_for_is_told(change, key):
    assert obstacles(settings()) == []
    assert [found for found, _ in obstacles({**settings(), **change})] == [key]
