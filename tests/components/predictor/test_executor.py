from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tfx.types import standard_artifacts

from components import events, predictions
from components.artifacts import Predictions
from components.errors import UserError
from components.predictor import executor
from components.predictor.decode import Decoded
from components.predictor.executor import LATEST, PredictorExecutor, rival
from models.tasks.features import Feature
from serving.saved_model import Answer, SavedModelError
from tests import fake_models, fake_tasks
from tests.fake_models import Reverser, artifact

TEXTS = ["abc", "", "a longer sentence than the others", "été", "xy"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("models")
    fake_models.save(Reverser(), root / "good" / "Format-Serving")
    fake_models.save(Reverser(), root / "no_align" / "Format-Serving", align=False)
    fake_models.save(fake_tasks.Matcher(), root / "matcher" / "Format-Serving")
    fake_models.save(fake_tasks.Sorter(), root / "sorter" / "Format-Serving")
    fake_models.save(fake_tasks.Namer(), root / "namer" / "Format-Serving")
    return root


def row(line: int, text: str, file: str = "test.en") -> dict:
    return {"source": text, "target": text.upper(), "file": file, "line": line}


def run(
    tmp_path: Path,
    model: Path,
    shards=None,
    production: Path | str = "",
    features=fake_models.FEATURES,
    **more,
):
    if shards is None:
        # Beam's order is any order: lines 2, 4 in one file, 5, 1, 3 in the other.
        lines = [row(number, text) for number, text in enumerate(TEXTS, start=1)]
        shards = [[lines[1], lines[3]], [lines[4], lines[0], lines[2]]]
    out = artifact(Predictions, tmp_path / "predictions")
    PredictorExecutor().Do(
        {
            "examples": [fake_models.examples(tmp_path / "examples", shards)],
            "model": [artifact(standard_artifacts.Model, model)],
        },
        {"predictions": [out]},
        {
            "features": json.dumps([feature.to_json() for feature in features]),
            "production": str(production),
            "production_version": "3" if production else "",
            "batch_size": 2,
            "code": "",
            **more,
        },
    )
    return Path(out.uri)


def test_answers_stand_in_the_order_of_the_corpus(models, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    folder = run(tmp_path, models / "good")

    table = predictions.read(folder / predictions.CANDIDATE)
    assert table["row"] == [0, 1, 2, 3, 4]
    assert table["line"] == [1, 2, 3, 4, 5]
    assert table["source"] == TEXTS
    assert table["references"] == [[text.upper()] for text in TEXTS]
    assert table["hypothesis"] == [text.upper()[::-1] for text in TEXTS]
    assert table["score"] == [-0.5 * len(text) for text in TEXTS]
    # Trimmed to the lengths, whatever else was in the batch.
    assert table["source_pieces"][0] == ["a", "b", "c", "</s>"]
    assert table["target_pieces"][3] == ["É", "T", "É", "</s>"]
    mirror = np.zeros((4, 4))
    mirror[[0, 1, 2, 3], [2, 1, 0, 3]] = 1
    np.testing.assert_array_equal(table["alignment"][0], mirror)
    assert table["alignment"][1] == [[1.0]]
    assert table["size"] == [len(text) for text in TEXTS]
    assert pq.read_schema(folder / predictions.CANDIDATE).field("score").type == "float"

    summary = predictions.read_summary(folder)
    assert summary["rows"] == 5
    assert summary["sentences_per_second"] > 0
    assert summary["production"] is None
    assert summary["contract"] == Reverser().contract()
    assert not (folder / predictions.PRODUCTION).exists()
    assert sorted(path.name for path in folder.iterdir()) == [
        "candidate.parquet",
        "predictions.json",
    ]
    last = [event for event, _ in events.read(log)][-1]
    assert (last["kind"], last["node"], last["fraction"]) == ("progress", "Predictor", 1.0)
    assert "5 of 5 sentences" in last["text"]


def test_where_it_looks_for_the_references(models, tmp_path):
    folder = run(tmp_path, models / "good", aligned=1)
    table = predictions.read(folder / predictions.CANDIDATE)
    for row, text in enumerate(TEXTS):
        # The references are no answers of the model: the capitals in order, and not reversed.
        assert table["forced_target_pieces"][row] == [*text.upper(), "</s>"]
        assert table["forced_source_pieces"][row] == [*text, "</s>"]
        weights = np.array(table["forced_alignment"][row], "float32")
        expected = np.zeros((len(text) + 1, len(text) + 1))
        for at in range(len(text)):
            expected[at, len(text) - 1 - at] = 1.0
        np.testing.assert_array_equal(weights, expected)
    assert "forced_alignment" not in predictions.column_names(
        run(tmp_path / "without", models / "good") / predictions.CANDIDATE
    )
    told = predictions.read_summary(folder)["contract"]["signatures"]["align"]["outputs"]
    assert "forced_alignment" not in told


def test_a_model_that_cannot_show_it_leaves_it_out(models, tmp_path):
    features = [
        Feature("points", "points"),
        Feature("positions", "positions", role="reference"),
    ]
    shards = [[{"points": [0.0, 1.0, 1.0, 0.0], "positions": [0, 1], "file": "a", "line": 1}]]
    folder = run(tmp_path, models / "sorter", shards, features=features, aligned=1)
    assert "forced_alignment" not in predictions.column_names(folder / predictions.CANDIDATE)


def test_production_is_decoded_beside_it(models, tmp_path):
    production = models / "good" / "Format-Serving"
    folder = run(tmp_path, models / "good", production=production)
    ours = predictions.read(folder / predictions.CANDIDATE)
    assert predictions.read(folder / predictions.PRODUCTION) == ours
    summary = predictions.read_summary(folder)
    assert summary["production"] == str(production)
    assert summary["production_version"] == "3"
    assert set(summary["models"]) == {"candidate", "production"}


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("missing", "OSError"),
        ("no_align/Format-Serving", "there is no signature 'align'"),
        ("matcher/Format-Serving", "it takes first, and the rows have source"),
    ],
)
def test_a_production_model_that_fails_is_left_out(models, tmp_path, monkeypatch, which, reason):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    folder = run(tmp_path, models / "good", production=models / which)
    summary = predictions.read_summary(folder)
    assert summary["production"] is None
    assert reason in summary["production_error"]
    assert len(predictions.read(folder / predictions.CANDIDATE)["row"]) == 5
    assert not (folder / predictions.PRODUCTION).exists()
    warnings = [event for event, _ in events.read(log) if event["kind"] == "warning"]
    assert len(warnings) == 1
    assert "version 3" in warnings[0]["text"]


def test_a_new_model_without_its_signature_is_a_bug(models, tmp_path):
    with pytest.raises(SavedModelError, match="no signature 'align'"):
        run(tmp_path, models / "no_align")


def test_no_rows_give_an_empty_table(models, tmp_path):
    folder = run(tmp_path, models / "good", shards=[[]])
    assert predictions.read(folder / predictions.CANDIDATE)["row"] == []
    assert json.loads((folder / "predictions.json").read_text())["rows"] == 0


def test_examples_of_another_task_are_refused(models, tmp_path):
    with pytest.raises(UserError, match=r"no feature 'source' \(they have: caption, target\)"):
        run(tmp_path, models / "good", shards=[[{"caption": "a", "target": "b"}]])


def test_a_missing_test_split_is_said(models, tmp_path):
    given = fake_models.examples(tmp_path / "examples", [[row(1, "a")]])
    given.split_names = '["train", "eval"]'
    with pytest.raises(UserError, match="no 'test' split"):
        PredictorExecutor().Do(
            {"examples": [given], "model": [artifact(standard_artifacts.Model, models / "good")]},
            {"predictions": [artifact(Predictions, tmp_path / "out")]},
            {
                "features": json.dumps([f.to_json() for f in fake_models.FEATURES]),
                "production": "",
                "production_version": "",
                "batch_size": 2,
            },
        )


def test_sources_that_are_cut_are_counted(models, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    long = [row(1, "a" * 103), row(2, "short"), row(3, "b" * 104)]
    run(tmp_path, models / "good", shards=[long])
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["text"] for event in told if event["kind"] == "warning"] == [
        "2 of 3 sources are longer than search.max_source_length: 7 pieces were not read"
    ]


def test_where_nothing_is_searched_for_the_search_is_not_blamed(tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    contract = {**fake_tasks.Matcher().contract(), "cut": "cut"}
    answers = [Answer({"similarity": 0.5, "cut": cut}, contract) for cut in (0, 3)]
    executor._tell_cut(Decoded(answers, contract, 1.0, 1.0))
    (told,) = (event for event, _ in events.read(log))
    assert told["text"] == "1 of 2 rows are longer than the model reads: 3 pieces were not read"


def test_a_source_that_is_refused_is_a_users_error(tmp_path):
    model = fake_models.save(Reverser("refuse"), tmp_path / "strict" / "Format-Serving").parent
    with pytest.raises(UserError, match="more than the 100 pieces of max_source_length") as caught:
        run(tmp_path, model, shards=[[row(1, "a" * 101)]])
    assert caught.value.where == "search.long_source"


def test_a_model_whose_answers_are_of_another_kind_is_a_bug(models, tmp_path):
    numbers = [Feature("source", "text"), Feature("target", "number", role="reference")]
    shards = [[{"source": "a", "target": 0.5}]]
    with pytest.raises(SavedModelError, match="of the kind text, and the references are number"):
        run(tmp_path, models / "good", shards, features=numbers)


def test_two_texts_and_a_number(models, tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    pairs = [("abcd", "abxy", 0.4), ("a", "a", 1.0), ("", "b", 0.0)]
    rows = [{"first": a, "second": b, "similarity": c} for a, b, c in pairs]
    folder = run(tmp_path, models / "matcher", [rows], features=fake_tasks.SIMILARITY)
    table = predictions.read(folder / predictions.CANDIDATE)
    assert list(zip(table["first"], table["second"], strict=True)) == [p[:2] for p in pairs]
    assert table["hypothesis"] == [0.5, 1.0, 0.0]
    assert table["references"] == [[0.4], [1.0], [0.0]]
    assert table["score"] == table["size"] == [None] * 3
    assert "3 of 3 rows" in [event for event, _ in events.read(log)][-1]["text"]


def test_points_and_positions(models, tmp_path):
    rows = [
        {"points": [0.5, 0.0, 0.25, 1.0], "order": [1, 0], "width": []},
        {"points": [n / 10 for n in range(10)], "order": [0, 1, 2, 3, 4], "width": 4.2},
    ]
    folder = run(tmp_path, models / "sorter", [rows], features=fake_tasks.SORTING)
    table = predictions.read(folder / predictions.CANDIDATE)
    assert table["points"][0] == [[0.5, 0.0], [0.25, 1.0]]
    assert table["points"][1][:2] == [[0.0, 0.1], [0.2, 0.3]]
    assert table["hypothesis"] == [[1, 0], [0, 1, 2, 3, 4]]
    assert table["references"] == [[row["order"]] for row in rows]
    assert table["width"] == [None, 4.2]
    assert table["size"] == [2, 5]
    assert np.array(table["pointing"][0]).tolist() == [[0, 1], [1, 0]]


def test_images_are_asked_as_bytes_and_kept_as_paths(models, tmp_path):
    rows = [
        {
            "image": fake_tasks.png(height, 2),
            "image_file": f"{height}.png",
            "caption": [f"{height} by 2", "a picture"],
        }
        for height in (3, 1)
    ]
    folder = run(tmp_path, models / "namer", [rows], features=fake_tasks.CAPTIONING)
    table = predictions.read(folder / predictions.CANDIDATE)
    assert table["image"] == ["3.png", "1.png"]
    assert table["hypothesis"] == ["3 by 2", "1 by 2"]
    assert table["references"] == [row["caption"] for row in rows]
    assert np.array(table["alignment"]).shape == (2, 2, 2, 2)


def test_the_rival_is_the_given_one_or_the_newest_that_is_there_now(tmp_path):
    assert rival("", "") == ("", "")
    assert rival("/registry/m/3", "3") == ("/registry/m/3", "3")
    assert rival(str(tmp_path / "m"), LATEST) == ("", "")
    for version in (2, 10):
        folder = tmp_path / "m" / str(version)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_bytes(b"graph")
    assert rival(str(tmp_path / "m"), LATEST) == (str(tmp_path / "m" / "10"), "10")
