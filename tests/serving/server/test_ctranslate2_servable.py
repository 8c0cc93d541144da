"""A small Transformer whose searches run in CTranslate2, compared with its SavedModel."""

import json
import threading
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from grpc import StatusCode

from regard.core.characters import is_blank
from regard.models.settings.search import BeamSearchConfig, GreedySearchConfig
from regard.models.tasks.text_to_text.served import ServedText
from regard.pipeline.deployment import engines
from regard.pipeline.deployment.engines import ctranslate2_loader
from regard.pipeline.deployment.export import to_ctranslate2
from regard.serving.server.ctranslate2_servable import SIGNATURES, find_unsupported_search
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable
from tests.models.tasks.exported import TRANSFORMER, export_model
from tests.tolerances import assert_close

SIDE = {**TRANSFORMER, "layers": 1, "norm": "pre", "positions": "sinusoidal", "activation": "relu"}
LIMITS = {"max_source_length": 12, "max_length_factor": 1.5, "max_length_offset": 3}
BEAM = BeamSearchConfig(beam_size=3, n_best=2, length_penalty=0.0, patience=1.0, **LIMITS)
# Short, blank, of one token, with unknown characters, not UTF-8, and longer than the limit.
TEXTS = [
    b"a cat sat",
    b"the dog",
    b"",
    " \u3000\u200b".encode(),
    b"a",
    "\u2603 cat".encode(),
    b"\xff\xfe cat",
]
TEXTS += [b"the dog ran far away from home", b"the mat", b"x" * 5000]


def sharpen(model):
    """Make random outputs end, and differ more."""
    for weight in model.weights:
        weight.assign(weight * 2.0)
        if weight.path.endswith("logits/bias"):
            bias = np.zeros(weight.shape)
            bias[3] = 4.0
            weight.assign(bias)


def publish(root, search, signatures):
    """Publish a model with some of its signatures, because tracing all takes long."""
    version = root / "models" / "small" / "3"
    search = search.model_dump()
    texts = ["a cat sat", "the mat", ""]
    every = ServedText.signatures
    with mock.patch.object(
        ServedText, "signatures", lambda self: {name: every(self)[name] for name in signatures}
    ):
        export_model(root, version, SIDE, SIDE, texts, search=search, change=sharpen)()
    (version / "regard.json").write_text(json.dumps({"config": {"search": search}}))
    return version


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    greedy = GreedySearchConfig(**LIMITS)
    return publish(tmp_path_factory.mktemp("greedy"), greedy, ["serving_default", "align", "score"])


@pytest.fixture(scope="module")
def engine(version):
    servable = ctranslate2_loader("float32", 2)("small", version)
    yield servable
    servable.close()


@pytest.fixture
def in_process(monkeypatch):
    """Convert without another process, which takes seconds to start; `engine` has one."""

    def convert(version, folder, quantization):
        to_ctranslate2(str(version), version.parent, folder, quantization)

    monkeypatch.setattr(engines, "_convert", convert)


def run_saved_model(engine, name, inputs):
    """Run a signature with TensorFlow, in the session of the engine."""
    return Servable.run(engine, name, inputs)


def batch(texts):
    return {"source": np.array(texts, object)}


def assert_same(outputs, expected):
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        assert (outputs[name].dtype, outputs[name].shape) == (value.dtype, value.shape), name
        if value.dtype == object:
            assert outputs[name].tolist() == value.tolist()
        else:
            assert_close(outputs[name], value, roundings=1000, err_msg=name)


@pytest.mark.parametrize("name", ["", *SIGNATURES[:2], "score"])  # TensorFlow runs the last one
def test_the_outputs_are_those_of_the_saved_model(engine, name):
    inputs = batch(TEXTS)
    for other in set(engine.signature(name).inputs) - set(inputs):
        inputs[other] = np.array([b"a"] * len(TEXTS), object)
    assert_same(engine.run(name, inputs), run_saved_model(engine, name, inputs))


def test_an_unknown_token_is_no_end_of_the_source(engine, monkeypatch):
    """SentencePiece returns an unknown run of characters as it is in the text."""
    text = "\u2603\u2603".encode()
    ids = engine._token_ids(text)
    received = []
    translate = engine._translator.translate_batch
    monkeypatch.setattr(
        engine,
        "_translator",
        SimpleNamespace(
            translate_batch=lambda tokens, **options: (
                received.extend(tokens) or translate(tokens, **options)
            )
        ),
    )
    inputs = batch([text, *TEXTS])
    assert_same(engine.run("align", inputs), run_saved_model(engine, "align", inputs))
    assert received[0] == engine._source.id_to_piece(ids)
    assert "<unk>" in received[0]


def assert_rows_are_independent(engine, texts):
    """Compare each row of ``align``, with its attention, in a batch and alone."""
    batched = engine.run("align", batch(texts))
    for row, text in enumerate(texts):
        alone = engine.run("align", batch([text]))
        for name, value in alone.items():
            inside = batched[name][(row, *(slice(size) for size in value.shape[1:]))]
            if value.dtype == object:
                assert inside == value[0] if value.ndim == 1 else (inside == value[0]).all()
            else:
                assert_close(inside, value[0], err_msg=name)


def test_rows_do_not_depend_on_their_batch(engine):
    assert_rows_are_independent(engine, TEXTS)


def test_rows_of_a_beam_do_not_depend_on_their_batch(tmp_path, in_process, monkeypatch):
    """With a beam, CTranslate2 mixes up the attention of the first tokens of a batch."""
    version = publish(tmp_path, BEAM, ["serving_default", "align"])
    engine = ctranslate2_loader("float32", 1)("small", version)
    texts = [b"a cat sat", b"the dog", b"the mat", b"the dog ran", b"a cat", b"the mat sat"]
    with monkeypatch.context() as patch:
        run = mock.Mock(side_effect=AssertionError("CTranslate2 computes all rows"))
        patch.setattr(Servable, "run", run)
        assert_rows_are_independent(engine, texts)
    assert engine.run("align", batch(texts))["target_length"].max() > 1
    engine.close()


def test_only_special_rows_are_left_to_tensorflow(engine, monkeypatch):
    calls = []
    run = Servable.run
    monkeypatch.setattr(Servable, "run", lambda self, *args: calls.append(args) or run(self, *args))
    outputs = engine.run("", batch(TEXTS))
    ((name, inputs, _),) = calls
    left = inputs["source"].tolist()
    assert name == "serving_default"
    assert set(left) >= {b"", TEXTS[3], TEXTS[6], TEXTS[7], TEXTS[9]}
    assert len(left) < 8
    assert np.isnan(outputs["score"][2])
    assert engine.run("", batch([]))["score"].shape == (0,)


def test_threads_share_an_engine(engine):
    expected, results = engine.run("", batch(TEXTS[:2])), []
    threads = [
        threading.Thread(target=lambda: results.append(engine.run("", batch(TEXTS[:2]))))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16
    for result in results:
        assert_same(result, expected)


def test_n_best_of_a_beam(tmp_path, in_process):
    version = publish(tmp_path, BEAM, ["serving_default", "align", "nbest"])
    engine = ctranslate2_loader("float32", 1)("small", version)
    expected = run_saved_model(engine, "nbest", batch(TEXTS))
    outputs = engine.run("nbest", batch(TEXTS))
    engine.close()
    assert set(outputs) == set(expected)
    assert outputs["hypotheses"].shape == (len(TEXTS), 2)
    same = outputs["hypotheses"][:, 0] == expected["hypotheses"][:, 0]
    assert same.mean() >= 0.8  # the searches stop in different ways
    assert_close(
        outputs["log_probabilities"][same, 0],
        expected["log_probabilities"][same, 0],
        roundings=1000,
    )
    texts = [not is_blank(text.decode("utf-8", "replace")) for text in TEXTS]
    assert_close(outputs["scores"][texts], outputs["log_probabilities"][texts])


def test_int8_is_verified(version, in_process):
    engine = ctranslate2_loader("int8", 1)("small", version)
    assert engine.run("", batch(TEXTS))["translation"].shape == (len(TEXTS),)
    bad = engine._hypothesis(["\u2581", "x"] * 3 + ["</s>"], -30.0, None)
    engine._translate = lambda ids, name: {row: [bad] for row, tokens in enumerate(ids) if tokens}
    with pytest.raises(ServingError) as caught:
        engine.verify("int8")
    assert caught.value.code is StatusCode.FAILED_PRECONDITION
    engine.close()


def test_an_output_that_is_segmented_in_another_way_is_not_worse(version, in_process):
    """Its text has another segmentation, of lower probability."""
    engine = ctranslate2_loader("float32", 1)("small", version)
    translate = engine._translate

    def split(ids, name):
        translated = translate(ids, name)
        for row, (best,) in translated.items():
            tokens = [*"".join(best.tokens[:-1]), "</s>"]
            score = best.log_probability / len(best.tokens) * len(tokens)
            translated[row] = [best._replace(tokens=tokens, log_probability=score)]
        return translated

    engine._translate = split
    assert abs(engine.verify("float32")) < 1e-4
    engine.close()


def test_a_search_that_ctranslate2_does_not_have_is_refused(tmp_path):
    version = tmp_path / "small" / "3"
    version.mkdir(parents=True)
    record = {"config": {"search": {"type": "sampling"}}}
    (version / "regard.json").write_text(json.dumps(record))
    with pytest.raises(ServingError, match=r"version 3 of model small: search.type"):
        ctranslate2_loader("float32", 1)("small", version)


def test_the_error_of_a_conversion_is_that_of_its_process(tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nprintf 'error: model.decoder:\\n  not supported\\n'; exit 2\n")
    program.chmod(0o700)
    monkeypatch.setattr(engines.sys, "executable", str(program))
    version = tmp_path / "small" / "3"
    version.mkdir(parents=True)
    record = {"config": {"search": GreedySearchConfig(**LIMITS).model_dump()}}
    (version / "regard.json").write_text(json.dumps(record))
    with pytest.raises(ServingError) as caught:
        ctranslate2_loader("float32", 1)("small", version)
    assert caught.value.code is StatusCode.FAILED_PRECONDITION
    assert caught.value.message == "error: model.decoder: not supported"


@pytest.mark.parametrize("key", ["coverage_penalty", "no_repeat_ngram_size", "min_length_factor"])
def test_penalties_without_an_equal(key):
    assert find_unsupported_search(BEAM.model_dump()) == []
    assert find_unsupported_search({**BEAM.model_dump(), key: 2}) == [key]
