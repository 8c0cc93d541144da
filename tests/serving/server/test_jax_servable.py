"""Small models whose searches for single texts run in programs of JAX, as in their SavedModels."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from grpc import StatusCode

from regard.models.settings.search import BeamSearchConfig, GreedySearchConfig
from regard.models.tasks.text_to_text.served import ServedText
from regard.pipeline.deployment import engines
from regard.pipeline.deployment.engines import jax_loader
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable
from tests.models.tasks.exported import export_model
from tests.models.tasks.test_copy_tokenizer import LINES, SMALL
from tests.models.tasks.tokenizers import trained
from tests.serving.server import imported_models
from tests.serving.server.test_ctranslate2_servable import assert_same, batch, sharpen

LENGTHS = (3, 8, 100)  # the last one is more than the limit of the models
MAX_TOKENS = 11
LIMITS = {"max_source_length": MAX_TOKENS, "max_length_factor": 1.3, "max_length_offset": 2}
ENCODER = {"type": "recurrent", "cell": "gru", "units": 4, "layers": 1, "bidirectional": True}
DECODER = {"type": "luong", "cell": "gru", "units": 8, "layers": 1, "input_feeding": True}
BEAM = BeamSearchConfig(
    beam_size=3,
    n_best=2,
    coverage_penalty=0.2,
    no_repeat_ngram_size=2,
    min_length_factor=0.7,
    **LIMITS,
)
TRANSFORMER = {"type": "transformer", **SMALL}
COPYING = {**TRANSFORMER, "pointer_generator": True}
# Blank, not UTF-8, and very long.
SPECIAL = [b"", " \u3000\u200b".encode(), b"\xff\xfe cat", b"x" * 5000]
SIGNATURES = ["serving_default", "align"]


def copy_often(model):
    """Copy more words of the source than are generated, of positions that differ."""
    for weight in model.weights:
        weight.assign(weight * 3.0)
        if weight.path.endswith("gate/bias"):
            weight.assign([-8.0])


def publish(root, encoder, decoder, search, change, tokenizers=None):
    """Publish a model with two signatures, because tracing all takes long."""
    version, texts = root / "models" / "small" / "3", ["a dog", "the QQ Bob", "a", ""]
    every = ServedText.signatures
    search = search.model_dump()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ServedText, "signatures", lambda self: {name: every(self)[name] for name in SIGNATURES}
        )
        write = export_model(
            root,
            version,
            encoder,
            decoder,
            texts,
            search=search,
            tokenizers=tokenizers,
            change=change,
        )
    write()
    return version


def publish_recurrent(root):
    return publish(root, ENCODER, DECODER, BEAM, sharpen)


def publish_copying(root):
    words = trained(LINES, model_type="word", vocab_size=14)
    tokenizers = {"source": words, "target": words}
    return publish(
        root,
        TRANSFORMER,
        COPYING,
        GreedySearchConfig(min_length_factor=1.0, **LIMITS),
        copy_often,
        tokenizers,
    )


@pytest.fixture(scope="module", params=[publish_recurrent, publish_copying])
def engine(request, tmp_path_factory):
    version = request.param(tmp_path_factory.mktemp("jax"))
    servable = jax_loader(LENGTHS)("small", version)
    yield servable
    servable.close()


@pytest.fixture
def left(monkeypatch):
    """What TensorFlow computes meanwhile: the signatures and sources of its runs."""
    runs, run = [], Servable.run

    def record(self, name, inputs, timeout=0.0):
        runs.append((name, inputs["source"].tolist()))
        return run(self, name, inputs, timeout)

    monkeypatch.setattr(Servable, "run", record)
    return runs


def texts_of(engine, tokens):
    """Texts of a number of tokens, with unknown words in several places."""
    words = 4 * ["a", "Bob", "a", "dog", "QQ", "Bob", "the"]
    longest = [" ".join(words[start:]) for start in range(5)]
    texts = [text[:size] for text in longest for size in range(1, len(text)) if text[size] != " "]
    return [text.encode() for text in texts if len(engine._encode(text).ids) == tokens][:6]


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 7, 8, 9, MAX_TOKENS, MAX_TOKENS + 1])
def test_the_outputs_are_those_of_the_saved_model(engine, left, tokens):
    """Also with as many tokens as a program has, and one more."""
    texts = texts_of(engine, tokens)
    assert texts
    for text in texts:
        outputs = engine.run("", batch([text]))
        assert left == ([("", [text])] if tokens > MAX_TOKENS else [])
        assert_same(outputs, Servable.run(engine, "serving_default", batch([text])))
        left.clear()


@pytest.mark.slow
def test_the_first_token_of_an_imported_model_is_that_of_its_tag(tmp_path, left):
    engine = jax_loader((64,))("m2m", imported_models.publish(tmp_path, "m2m", "beam"))
    outputs, left_rows = set(), []
    for text in imported_models.sources("m2m", 12):
        left.clear()
        output = engine.run("", batch([text]))
        left_rows += [text] * len(left)
        assert_same(output, Servable.run(engine, "serving_default", batch([text])))
        outputs.add(output["translation"][0])
    tag = left_rows[0]
    assert left_rows == [tag, tag + b" ", b"", b"\xff"]
    assert len(outputs) > 8
    engine.close()


def test_the_limit_of_the_model_is_the_longest_program(engine):
    assert list(engine._programs) == [3, 8, MAX_TOKENS]


def test_outputs_differ(engine):
    """Otherwise equal outputs would prove little."""
    texts = [text for tokens in range(1, MAX_TOKENS) for text in texts_of(engine, tokens)]
    outputs = [engine.run("", batch([text]))["translation"][0] for text in texts]
    assert len(set(outputs)) > 5
    assert any(b"Bob" in output for output in outputs) == engine._copies


@pytest.mark.parametrize("source", SPECIAL)
def test_special_rows_are_left_to_tensorflow(engine, left, source):
    outputs = engine.run("", batch([source]))
    assert left == [("", [source])]
    assert_same(outputs, Servable.run(engine, "serving_default", batch([source])))


@pytest.mark.parametrize(
    ("name", "sources"),
    [("serving_default", [b"a dog", b"the man"]), ("", []), ("align", [b"a dog"])],
)
def test_batches_and_other_signatures_are_left_to_tensorflow(engine, left, name, sources):
    outputs = engine.run(name, batch(sources))
    assert left == [(name, sources)]
    assert len(outputs["score"]) == len(sources)


def test_threads_share_the_programs(engine):
    texts = [b"a dog", b"the dog saw a cat on the mat"] * 8
    expected, results = [engine.run("", batch([text])) for text in texts], {}

    def run(number):
        results[number] = engine.run("", batch([texts[number]]))

    threads = [threading.Thread(target=run, args=[number]) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, outputs in enumerate(expected):
        assert_same(results[number], outputs)


@pytest.mark.parametrize(("key", "value"), [("translation", b"another"), ("score", -77.0)])
def test_another_output_is_refused(engine, monkeypatch, key, value):
    """Of any program, not only of the smallest that a row fits into."""
    compute = engine._compute

    def change_longest(source, length=0):
        outputs = compute(source, length)
        is_changed = outputs and source == b"the QQ Bob" and length == MAX_TOKENS
        return {**outputs, key: value, "score": -77.0} if is_changed else outputs

    assert engine.verify() == [3, 8, MAX_TOKENS]
    monkeypatch.setattr(engine, "_compute", change_longest)
    with pytest.raises(ServingError, match=r"stored row 1, .* for 11 tokens: .*77") as caught:
        engine.verify()
    assert caught.value.code is StatusCode.FAILED_PRECONDITION


def test_of_two_outputs_with_equal_scores_rounding_decides(engine, monkeypatch):
    """In few rows: a wrong text in all of them has another reason."""
    compute, changed = engine._compute, [b"the QQ Bob"]

    def change_text(source, length=0):
        outputs = compute(source, length)
        is_changed = outputs and source in changed and length in (0, MAX_TOKENS)
        return {**outputs, "translation": b"another"} if is_changed else outputs

    monkeypatch.setattr(engine, "_compute", change_text)
    assert engine.verify() == [3, 8, MAX_TOKENS]
    changed += [b"a dog", b"a"]
    with pytest.raises(ServingError, match=r"equal scores in 3 of \d+ comparisons"):
        engine.verify()


def test_a_version_without_stored_rows_is_refused(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "path", tmp_path)
    with pytest.raises(ServingError, match="cannot be verified"):
        engine.verify()


def test_programs_that_no_stored_row_fits_into_are_not_used(engine, monkeypatch):
    rows = [(text, {}) for text in texts_of(engine, 5)[:1]]
    monkeypatch.setattr(engine, "_programs", dict(engine._programs))
    monkeypatch.setattr(engine, "_stored_rows", lambda: rows)
    assert engine.verify() == [8, MAX_TOKENS]
    assert list(engine._programs) == [8, MAX_TOKENS]
    monkeypatch.setattr(engine, "_stored_rows", lambda: [(b"", {})])
    with pytest.raises(ServingError, match="--compiled-lengths"):
        engine.verify()


def test_a_result_after_the_time_limit_is_an_error(engine):
    with pytest.raises(ServingError) as caught:
        engine.run("", batch([b"a dog"]), timeout=1e-9)
    assert caught.value.code is StatusCode.DEADLINE_EXCEEDED


def test_the_memory_of_a_refused_version_is_freed(tmp_path, monkeypatch):
    def verify():
        raise ServingError(StatusCode.FAILED_PRECONDITION, "different")

    closed = []
    servable = SimpleNamespace(verify=verify, close=lambda: closed.append(True))
    monkeypatch.setattr(engines, "_run", lambda command, environment: "")
    monkeypatch.setattr(engines, "JaxServable", lambda name, path, folder: servable)
    with pytest.raises(ServingError, match="different"):
        jax_loader((4,))("small", tmp_path)
    assert closed == [True]


@pytest.mark.slow
def test_a_closed_model_computes_nothing(tmp_path):
    servable = jax_loader((4,))("small", publish_recurrent(tmp_path))
    servable.close()
    with pytest.raises(ServingError, match="closed"):
        servable.run("", batch([b"a dog"]))


@pytest.mark.slow
def test_requests_need_no_further_memory(engine):
    texts = [b"a dog", b"the dog saw a cat on the mat"]

    def run_all(count):
        for number in range(count):
            engine.run("", batch([texts[number % 2]]))
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0])

    before = run_all(200)
    assert run_all(1000) - before < 2048  # kilobytes
