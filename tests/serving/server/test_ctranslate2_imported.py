"""M2M-100 and NLLB in CTranslate2, whose outputs begin with the token of a language."""

import ctranslate2
import numpy as np
import pytest
import sentencepiece

from regard.pipeline.cli.export import export as export_command
from regard.pipeline.deployment import engines
from regard.pipeline.deployment.engines import ctranslate2_loader
from regard.pipeline.deployment.export import to_ctranslate2
from tests.components.importing.huggingface_fixtures import M2M
from tests.serving.server.imported_models import publish, sources
from tests.serving.server.test_ctranslate2_servable import batch, run_saved_model
from tests.tolerances import assert_close

COUNT = 24
KINDS = [
    pytest.param(
        (name, search), marks=[] if (name, search) == ("m2m", "beam") else pytest.mark.slow
    )
    for name in M2M
    for search in ("beam", "greedy")
]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a function that publishes a model once."""
    versions = {}

    def get(name, search):
        if (name, search) not in versions:
            root = tmp_path_factory.mktemp(f"{name}-{search}")
            versions[name, search] = publish(root, name, search)
        return versions[name, search]

    return get


@pytest.fixture(autouse=True)
def in_process(monkeypatch):
    """Convert without another process, which takes seconds to start."""

    def convert(version, folder, quantization):
        to_ctranslate2(str(version), version.parent, folder, quantization)

    monkeypatch.setattr(engines, "_convert", convert)


def computed_rows(engine, texts):
    """The rows that CTranslate2 computes itself."""
    ids = [engine._token_ids(text) for text in texts]
    return np.array(sorted(engine._translate(ids, "align")))


def assert_rows_are_equal(outputs, expected, rows):
    """Compare rows of both engines; TensorFlow may add more padding."""
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        size = tuple(map(min, outputs[name].shape[1:], value.shape[1:]))
        cut = (rows, *map(slice, size))
        if value.dtype == object:
            assert outputs[name][cut].tolist() == value[cut].tolist(), name
        else:
            assert_close(outputs[name][cut], value[cut], roundings=1000, err_msg=name)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_the_outputs_are_those_of_the_saved_model(published, kind):
    name, search = kind
    engine, texts = ctranslate2_loader("float32", 2)(name, published(*kind)), sources(name, COUNT)
    rows = computed_rows(engine, texts)
    assert len(rows) >= COUNT / 2
    signatures = ["", "align"] + (["nbest"] if search == "beam" else [])
    outputs, expected = (
        {signature: run(signature, batch(texts)) for signature in signatures}
        for run in (engine.run, lambda *call: run_saved_model(engine, *call))
    )
    same = np.arange(len(texts))
    if search == "beam":  # with other hypotheses in the beam, both may miss the best one
        best = outputs["align"]["translation"] == expected["align"]["translation"]
        several = outputs["nbest"].pop("hypotheses") == expected["nbest"].pop("hypotheses")
        assert best.mean() >= 0.9
        assert several.mean() >= 0.8
        same = np.flatnonzero(best & several.all(axis=1))
    assert len(np.intersect1d(rows, same)) >= len(rows) / 2
    for signature in signatures:
        assert_rows_are_equal(outputs[signature], expected[signature], same)
    assert len({first for _, first in engine._first_tokens}) > 1
    engine.close()


def test_int8_drops_the_first_token_as_well(published):
    engine = ctranslate2_loader("int8", 1)("m2m", published("m2m", "beam"))
    texts = sources("m2m", COUNT)
    rows = computed_rows(engine, texts)
    outputs, expected = (
        engine.run("align", batch(texts)),
        run_saved_model(engine, "align", batch(texts)),
    )
    rows = rows[outputs["translation"][rows] == expected["translation"][rows]]
    assert len(rows) >= COUNT / 4  # the weights are random
    assert (outputs["target_length"][rows] == expected["target_length"][rows]).all()
    assert 0 < np.abs(outputs["score"][rows] - expected["score"][rows]).max() < 1.0
    engine.close()


def test_the_printed_program_gives_the_first_token(published, tmp_path, capsys):
    version = published("m2m", "beam")
    export_command(str(version), out=tmp_path / "fast", registry=version.parent)
    *program, result = capsys.readouterr().out.partition("\n\n")[2].strip().splitlines()
    variables = {"text": sources("m2m", 3)[0].decode()}
    exec("\n".join(program), variables)
    hypothesis = variables["results"][0].hypotheses[0]
    assert hypothesis[0] == "__ru__"
    assert eval(result, variables) == variables["target"].decode(hypothesis[1:])


def test_the_export_says_how_to_give_the_first_token(published, tmp_path):
    version = published("m2m", "beam")
    exported = to_ctranslate2(str(version), version.parent, tmp_path / "fast", "float32")
    assert exported.rows == 3
    assert exported.difference < 1e-4
    arguments, first_tokens = exported.arguments, dict(exported.first_tokens)
    assert arguments["min_decoding_length"] == 0
    assert arguments["length_penalty"] == 1.0  # Transformers counts the first token, too
    source, target = (
        sentencepiece.SentencePieceProcessor(str(tmp_path / "fast" / f"{side}.model"))
        for side in ("source", "target")
    )
    translator = ctranslate2.Translator(str(tmp_path / "fast"), intra_threads=1)
    engine = ctranslate2_loader("float32", 1)("m2m", version)
    texts = sources("m2m", COUNT)
    texts = [texts[row].decode() for row in computed_rows(engine, texts) if row < COUNT]
    tokens = [source.encode(text, out_type=str) for text in texts]
    results = translator.translate_batch(
        tokens, target_prefix=[[first_tokens[row[0]]] for row in tokens], **arguments
    )
    outputs = [target.decode(result.hypotheses[0][1:]).encode() for result in results]
    expected = run_saved_model(engine, "", batch([text.encode() for text in texts]))
    engine.close()
    assert np.mean(outputs == expected["translation"]) >= 0.9
