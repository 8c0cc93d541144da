"""The choice among samples by ``regard predict`` and ``evaluate``."""

import json

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.models.mbr import choose_sample
from regard.pipeline.cli.predict import predict
from regard.pipeline.prediction.evaluate import evaluate
from regard.pipeline.prediction.mbr import MbrModel, sampling_search
from regard.pipeline.prediction.models import open_model
from tests.models.tasks.exported import export_model

SIDES = {"type": "recurrent", "units": 8}, {"type": "luong", "units": 8}
SEARCH = {"type": "beam", "beam_size": 3, "max_source_length": 20}
SOURCES = ["a cat sat", "the dog ran far away", "\u200b", "a"]
OPTIONS = {"samples": 6, "seed": 3}


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    root = tmp_path_factory.mktemp("model")
    export_model(root, root / "m", *SIDES, seed=11, search=SEARCH)()
    return root / "m"


@pytest.fixture(scope="module")
def samples(version):
    """The samples of each source."""
    search = sampling_search("chrf", OPTIONS)
    model, _ = open_model(str(version), version.parent, search=search)
    return model, model.predict("nbest", [{"source": source} for source in SOURCES])


def test_the_search_of_the_samples():
    assert sampling_search("chrf", {}) == {"type": "sampling", "samples": 32, "temperature": 0.5}
    sharp = {"samples": 4, "top_p": 0.9}
    assert sampling_search("chrf", sharp) == {"type": "sampling", **sharp}


@pytest.mark.parametrize(
    ("utility", "search"),
    [
        ("bleu", {}),
        ("chrf", {"samples": 1}),
        ("chrf", {"n_best": 4}),
        ("chrf", {"type": "beam"}),
    ],
)
def test_searches_without_samples_to_choose_from(utility, search):
    with pytest.raises(UserError):
        sampling_search(utility, search)


def test_the_chosen_samples(samples):
    model, predictions = samples
    rows = [{"source": source} for source in SOURCES]
    chosen = MbrModel(model).predict("serving_default", rows)
    for prediction, result in zip(predictions, chosen, strict=True):
        texts = prediction.outputs["hypotheses"]
        best = choose_sample(texts)
        assert result.hypothesis == texts[best]
        assert result.outputs["source_cut"] == 0
    assert (
        chosen[0].score
        == predictions[0].outputs["log_probabilities"][
            choose_sample(predictions[0].outputs["hypotheses"])
        ]
    )
    assert (chosen[2].hypothesis, chosen[2].score) == ("", None)  # a blank source
    assert len({prediction.hypothesis for prediction in chosen}) > 1


def test_the_attention_of_the_chosen_samples(samples):
    model, _ = samples
    rows = [{"source": source} for source in SOURCES]
    sampled = MbrModel(model)
    chosen = sampled.predict("serving_default", rows)
    details = sampled.predict(sampled.contract["detail"], rows)
    assert [row.hypothesis for row in details] == [row.hypothesis for row in chosen]
    texts = [{**row, "target": result.hypothesis} for row, result in zip(rows, chosen, strict=True)]
    scores = model.predict("score", texts)
    for row in (0, 1, 3):
        assert details[row].score == chosen[row].score
        tokens, source, weights = details[row].attention
        assert weights.shape == (len(tokens), len(source))
        np.testing.assert_allclose(weights, scores[row].outputs["alignment"])
        assert details[row].outputs["source_length"] == len(source)
        assert "confidence" not in details[row].outputs


def test_predict_and_evaluate(version, samples, tmp_path, capfd):
    model, _ = samples
    rows = [{"source": source} for source in SOURCES]
    expected = MbrModel(model).predict("serving_default", rows)
    predict(str(version), SOURCES, mbr="chrf", as_json=True, **OPTIONS)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["translation"] for line in lines] == [row.hypothesis for row in expected]
    assert [line["score"] for line in lines] == [row.score for row in expected]
    sides = {"source": SOURCES[:2] + SOURCES[3:], "target": ["eine Katze", "der Hund", "weit"]}
    for name, texts in sides.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    files = {name: str(tmp_path / name) for name in sides}
    names, out = [str(version)] * 2, tmp_path / "out"
    result = evaluate(names, version.parent, files, ["chrf"], out=out, search=OPTIONS, mbr="chrf")
    lines = (out / "hypotheses.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [expected[row].hypothesis for row in (0, 1, 3)]
    difference = result.metrics["chrf"].value - result.production.metrics["chrf"].value
    interval = result.production.comparison.difference
    assert interval.low <= difference <= interval.high
    assert (out / "by_length.json").is_file()
    predict(str(version), SOURCES[:1], mbr="chrf", align=True, **OPTIONS)
    table = capfd.readouterr().out.splitlines()
    assert table[0] == expected[0].hypothesis
    assert len(table) > 2


def test_models_and_options_that_do_not_fit(version, capfd):
    with pytest.raises(UserError, match="confidence"):
        predict(str(version), ["a"], mbr="chrf", min_confidence=0.5, samples=2)
    with pytest.raises(UserError):
        predict(str(version), ["a"], mbr="chrf", samples=1)
    assert capfd.readouterr().out == ""
