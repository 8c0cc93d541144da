import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from regard.components.common import prediction_table
from regard.components.common.artifact_types import Predictions
from regard.components.predictor import batch_plan, executor, row_decoder
from regard.components.predictor.batch_results import BatchStats
from regard.components.predictor.decode import DecodeResult
from regard.components.predictor.executor import PredictorExecutor
from regard.core import events
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import NUMBER, TEXT
from regard.core.text_noise import NoiseOptions, change_text
from regard.serving.contract import SavedModelError
from tests import fake_models, fake_tasks
from tests.fake_models import Reverser, artifact

DEFAULT_ATTENTION = json.dumps({"layer": None, "head": None})
BEAM = ["--runner=FnApiRunner", "--sdk_container_image=unused"]
IN_MEMORY = [*BEAM, "--direct_running_mode=in_memory"]
PROCESSES = [*BEAM, "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
TEXTS = ["abc", "", "a longer sentence than the others", "été", "xy"]


def save_model(model, folder: Path, **options) -> Path:
    """Save a model as the Trainer does, and return the folder of its artifact."""
    return fake_models.save(model, folder / "Format-Serving", **options).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("models")
    save_model(Reverser(), root / "good")
    save_model(Reverser(), root / "no_align", align=False)
    save_model(fake_tasks.Matcher(), root / "matcher")
    save_model(fake_tasks.Sorter(), root / "sorter")
    save_model(fake_tasks.Namer(), root / "namer")
    save_model(fake_models.ManyHeaded(), root / "many_headed")
    return root


@pytest.fixture
def log(tmp_path, monkeypatch) -> Path:
    """Return the file of events."""
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def warnings(log: Path) -> list[str]:
    return [event["text"] for event, _ in events.read(log) if event["kind"] == "warning"]


def row(line: int, text: str, file: str = "test.en") -> dict:
    return {"source": text, "target": text.upper(), "file": file, "line": line}


def make_executor(tmp_path: Path, beam=IN_MEMORY) -> PredictorExecutor:
    context = BaseBeamExecutor.Context(beam_pipeline_args=beam, tmp_dir=str(tmp_path / "tmp"))
    return PredictorExecutor(context)


def run(
    tmp_path: Path,
    model: Path,
    shards=None,
    production: Path | str = "",
    features=fake_models.FEATURES,
    beam=IN_MEMORY,
    examples=None,
    **more,
):
    if shards is None:
        # Beam's order is any order: lines 2, 4 in one file, 5, 1, 3 in the other.
        lines = [row(number, text) for number, text in enumerate(TEXTS, start=1)]
        shards = [[lines[1], lines[3]], [lines[4], lines[0], lines[2]]]
    out = artifact(Predictions, tmp_path / "predictions")
    make_executor(tmp_path, beam).Do(
        {
            "examples": [examples or fake_models.examples(tmp_path / "examples", shards)],
            "model": [artifact(standard_artifacts.Model, model)],
        },
        {"predictions": [out]},
        {
            "split": "test",
            "features": json.dumps([feature.to_json() for feature in features]),
            "production": str(production),
            "production_version": "3" if production else "",
            "batch_size": 2,
            "code": "",
            **more,
        },
    )
    return Path(out.uri)


def test_another_split_whose_rows_have_no_file_and_line(models, tmp_path):
    rows = [{"source": text, "target": text} for text in ("abc", "d", "ef")]
    examples = fake_models.examples(tmp_path / "examples", [rows[:2], rows[2:]], split="held-out")
    folder = run(tmp_path, models / "good", examples=examples, split="held-out")
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert table["hypothesis"] == ["CBA", "D", "FE"]
    places = list(zip(table["file"], table["line"], strict=True))
    assert places == [("held-out-00000", 1), ("held-out-00000", 2), ("held-out-00001", 1)]
    assert prediction_table.read_summary(folder)["split"] == "held-out"


def test_outputs_are_in_the_order_of_the_corpus(models, tmp_path, log):
    folder = run(tmp_path, models / "good")

    table = prediction_table.read(folder / prediction_table.CANDIDATE)
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
    assert pq.read_schema(folder / prediction_table.CANDIDATE).field("score").type == "float"

    summary = prediction_table.read_summary(folder)
    assert summary["rows"] == 5
    assert summary["sentences_per_second"] > 0
    assert summary["production"] is None
    assert summary["contract"] == Reverser().contract()
    assert "forced_alignment" not in table
    assert not (folder / prediction_table.PRODUCTION).exists()
    assert sorted(path.name for path in folder.iterdir()) == [
        "candidate.parquet",
        "predictions.json",
    ]
    last = [event for event, _ in events.read(log)][-1]
    assert (last["kind"], last["node"], last["fraction"]) == ("progress", "Predictor", 1.0)
    assert "5 of 5 sentences" in last["text"]


@pytest.mark.slow
def test_several_processes_give_the_same_table(models, tmp_path, monkeypatch):
    """Each of two workers loads the model, and their results are joined."""
    log = tmp_path / "events.jsonl"
    alone = run(tmp_path / "alone", models / "good", reference_attention=DEFAULT_ATTENTION)
    monkeypatch.setenv(events.VARIABLE, str(log))
    shared = run(
        tmp_path / "shared", models / "good", beam=PROCESSES, reference_attention=DEFAULT_ATTENTION
    )
    ours, theirs = (
        pq.read_table(folder / prediction_table.CANDIDATE) for folder in (alone, shared)
    )
    assert theirs.equals(ours)
    assert theirs.schema.equals(ours.schema, check_metadata=True)
    assert [event["fraction"] for event, _ in events.read(log)][-1] == 1.0
    assert prediction_table.read_summary(shared)["device"] == "CPU"

    strict = save_model(Reverser("refuse"), tmp_path / "strict")
    with pytest.raises(UserError, match=r"test.en:1: a source has more than the 100") as caught:
        run(tmp_path / "refused", strict, shards=[[row(1, "a" * 101)]], beam=PROCESSES)
    assert caught.value.where == "search.long_source"


def test_the_longest_rows_are_decoded_first(models, tmp_path, monkeypatch):
    """With windows of four rows, written as groups of two."""
    monkeypatch.setattr(batch_plan, "WINDOW", 4)
    monkeypatch.setattr(prediction_table, "ROW_GROUP_SIZE", 2)
    batches = []
    predict = row_decoder.predict_batch

    def record_batch(model, rows):
        batches.append([len(row.inputs["source"]) for row in rows])
        return predict(model, rows)

    monkeypatch.setattr(row_decoder, "predict_batch", record_batch)
    lengths = [1, 9, 3, 4, 20, 2, 8, 7, 6]
    lines = [row(number, "x" * length) for number, length in enumerate(lengths, start=1)]
    folder = run(tmp_path, models / "good", shards=[lines[5:], lines[:5]])
    assert batches == [[20, 8], [9, 4], [7, 2], [6], [3, 1]]
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert table["row"] == list(range(9))
    assert [len(text) for text in table["hypothesis"]] == lengths
    groups = pq.read_metadata(folder / prediction_table.CANDIDATE)
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [2, 2, 2, 2, 1]


def test_attention_of_the_references(models, tmp_path):
    folder = run(tmp_path, models / "good", reference_attention=DEFAULT_ATTENTION)
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    for row, text in enumerate(TEXTS):
        # The references differ from the outputs: capitals in order, not reversed.
        assert table["forced_target_pieces"][row] == [*text.upper(), "</s>"]
        assert table["forced_source_pieces"][row] == [*text, "</s>"]
        weights = np.array(table["forced_alignment"][row], "float32")
        expected = np.zeros((len(text) + 1, len(text) + 1))
        for position in range(len(text)):
            expected[position, len(text) - 1 - position] = 1.0
        np.testing.assert_array_equal(weights, expected)
    outputs = prediction_table.read_summary(folder)["contract"]["signatures"]["align"]["outputs"]
    assert "forced_alignment" not in outputs


def test_production_without_the_layer_is_still_decoded(models, tmp_path, log):
    line = {"source": "abc", "target": "CBA", "file": "f", "line": 1}
    attention = json.dumps({"layer": 2, "head": None})
    production = models / "good" / "Format-Serving"
    folder = run(
        tmp_path,
        models / "many_headed",
        shards=[[line]],
        production=production,
        reference_attention=attention,
    )
    assert prediction_table.read_summary(folder)["production_error"] is None
    assert prediction_table.read(folder / prediction_table.PRODUCTION)["hypothesis"] == ["CBA"]
    assert warnings(log) == ["version 3 in production has no layer 2, so its aer is unknown"]


@pytest.mark.parametrize("window", [4, pytest.param(1000, marks=pytest.mark.slow)])
def test_production_leaves_out_attention_that_is_too_large(models, tmp_path, monkeypatch, window):
    """The longest rows are in the first batch, which ends the table."""
    monkeypatch.setattr(batch_plan, "WINDOW", window)
    theirs = fake_models.save(fake_models.ManyHeaded(4), tmp_path / "theirs")
    texts = ["abc", "ab", "a", "abcd", "abcdef", "abcde"]
    lines = [
        {"source": text, "target": text.upper()[::-1], "file": "f", "line": number}
        for number, text in enumerate(texts)
    ]
    attention = json.dumps({"layer": 1, "head": 1})
    folder = run(
        tmp_path,
        models / "many_headed",
        [lines],
        production=theirs,
        reference_attention=attention,
    )
    assert prediction_table.read_summary(folder)["production_error"] is None
    table = prediction_table.read(folder / prediction_table.PRODUCTION)
    assert table["hypothesis"] == [line["target"] for line in lines]
    for name in ("forced_alignment", "forced_source_pieces", "forced_target_pieces"):
        assert [value is None for value in table[name]] == [len(text) > 4 for text in texts]


def test_production_is_decoded_too(models, tmp_path):
    production = models / "good" / "Format-Serving"
    folder = run(tmp_path, models / "good", production=production)
    ours = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert prediction_table.read(folder / prediction_table.PRODUCTION) == ours
    summary = prediction_table.read_summary(folder)
    assert summary["production"] == str(production)
    assert summary["production_version"] == "3"
    assert set(summary["models"]) == {"candidate", "production"}


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("missing", "there is no model at"),
        ("no_align/Format-Serving", "There is no signature 'align'"),
        ("matcher/Format-Serving", "the model needs the input first, but the rows have source"),
    ],
)
def test_a_production_model_that_fails_is_left_out(models, tmp_path, log, which, reason):
    folder = run(tmp_path, models / "good", production=models / which)
    summary = prediction_table.read_summary(folder)
    assert summary["production"] is None
    assert reason in summary["production_error"]
    assert len(prediction_table.read(folder / prediction_table.CANDIDATE)["row"]) == 5
    assert not (folder / prediction_table.PRODUCTION).exists()
    (warning,) = warnings(log)
    assert "version 3" in warning


def test_a_production_model_without_the_tag_is_left_out(models, tmp_path):
    """It would decode sources with tags that it does not know."""
    tagged = (*fake_models.FEATURES, Feature("tag", TEXT, "extra", tags=("de",)))
    lines = [row(1, "abc") | {"tag": "de"}]
    with pytest.raises(SavedModelError, match="the model has no tag de"):
        run(tmp_path, models / "good", [lines], features=tagged)


def test_a_new_model_without_a_signature_is_an_error(models, tmp_path):
    with pytest.raises(SavedModelError, match="no signature 'align'"):
        run(tmp_path, models / "no_align")


def test_an_empty_split_gives_an_empty_table(models, tmp_path):
    folder = run(tmp_path, models / "good", shards=[[]])
    assert prediction_table.read(folder / prediction_table.CANDIDATE)["row"] == []
    assert json.loads((folder / "predictions.json").read_text())["rows"] == 0


def test_truncated_sources_are_counted(models, tmp_path, log):
    long = [row(1, "a" * 103), row(2, "short"), row(3, "b" * 104)]
    run(tmp_path, models / "good", shards=[long])
    assert warnings(log) == [
        "2 of 3 sources are longer than search.max_source_length: at least 7 tokens were cut off"
    ]


def test_models_without_search_have_another_truncation_warning(tmp_path, log):
    stats = BatchStats(2, 1.0, "a", 1.0, "CPU", truncated_rows=1, truncated_tokens=3)
    contract = {**fake_tasks.Matcher().contract(), "cut": "cut"}
    executor._warn_about_truncation(DecodeResult(contract, [stats]))
    assert warnings(log) == [
        "1 of 2 rows are longer than the model's limit: at least 3 tokens were cut off"
    ]


def test_a_rejected_source_is_a_user_error(tmp_path):
    model = save_model(Reverser("refuse"), tmp_path / "strict")
    lines = [row(1, "a" * 100), row(2, "a" * 99), row(3, "a" * 101)]
    message = r"decoded: test.en:3: a source has more than the 100 tokens of max_source_length$"
    with pytest.raises(UserError) as caught:
        run(tmp_path, model, shards=[lines])
    assert re.search(message, caught.value.message)
    assert caught.value.where == "search.long_source"
    assert list((tmp_path / "predictions").iterdir()) == []


def test_outputs_of_another_kind_are_an_error(models, tmp_path):
    numbers = [Feature("source", TEXT), Feature("target", NUMBER, role="reference")]
    shards = [[{"source": "a", "target": 0.5}]]
    with pytest.raises(
        SavedModelError, match="of kind text, but the references are of kind number"
    ):
        run(tmp_path, models / "good", shards, features=numbers)


def test_decoding_text_pairs(models, tmp_path, log):
    pairs = [("abcd", "abxy", 0.4), ("a", "a", 1.0), ("", "b", 0.0)]
    rows = [{"first": a, "second": b, "similarity": c} for a, b, c in pairs]
    folder = run(tmp_path, models / "matcher", [rows], features=fake_tasks.SIMILARITY)
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert list(zip(table["first"], table["second"], strict=True)) == [p[:2] for p in pairs]
    assert table["hypothesis"] == [0.5, 1.0, 0.0]
    assert table["references"] == [[0.4], [1.0], [0.0]]
    assert table["score"] == table["size"] == [None] * 3
    assert "3 of 3 rows" in [event for event, _ in events.read(log)][-1]["text"]


def test_decoding_points(models, tmp_path):
    rows = [
        {"points": [0.5, 0.0, 0.25, 1.0], "order": [1, 0], "width": []},
        {"points": [n / 10 for n in range(10)], "order": [0, 1, 2, 3, 4], "width": 4.2},
    ]
    folder = run(tmp_path, models / "sorter", [rows], features=fake_tasks.SORTING)
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert table["points"][0] == [[0.5, 0.0], [0.25, 1.0]]
    assert table["points"][1][:2] == [[0.0, 0.1], [0.2, 0.3]]
    assert table["hypothesis"] == [[1, 0], [0, 1, 2, 3, 4]]
    assert table["references"] == [[row["order"]] for row in rows]
    assert table["width"] == [None, 4.2]
    assert table["size"] == [2, 5]
    assert np.array(table["pointing"][0]).tolist() == [[0, 1], [1, 0]]


def test_decoding_images(models, tmp_path):
    rows = [
        {
            "image": fake_tasks.png(height, 2),
            "image_file": f"{height}.png",
            "caption": [f"{height} by 2", "a picture"],
        }
        for height in (3, 1)
    ]
    folder = run(tmp_path, models / "namer", [rows], features=fake_tasks.CAPTIONING)
    table = prediction_table.read(folder / prediction_table.CANDIDATE)
    assert table["image"] == ["3.png", "1.png"]
    assert table["hypothesis"] == ["3 by 2", "1 by 2"]
    assert table["references"] == [row["caption"] for row in rows]
    assert np.array(table["alignment"]).shape == (2, 2, 2, 2)


def test_outputs_for_changed_inputs(models, tmp_path):
    robustness = json.dumps({"kinds": ["missing_accents", "typing_errors"], "rate": 1.0, "seed": 3})
    options = {"robustness": robustness, "symbols": json.dumps(["xy"])}
    folder = run(tmp_path, models / "good", reference_attention=DEFAULT_ATTENTION, **options)
    changes, sources = NoiseOptions(rate=1.0, symbols=("xy",)), {}
    for kind in ("missing_accents", "typing_errors"):
        table = prediction_table.read(folder / prediction_table.robustness_table(kind))
        expected = [change_text(text, kind, changes, (3, row, 0)) for row, text in enumerate(TEXTS)]
        assert table["source"] == expected
        assert table["hypothesis"] == [text.upper()[::-1] for text in expected]
        assert "forced_alignment" not in table
        sources[kind] = expected
    assert (sources["missing_accents"][3], sources["typing_errors"][4]) == ("ete", "xy")
    assert sources["typing_errors"][0] != "abc"
    assert "forced_alignment" in prediction_table.read(folder / prediction_table.CANDIDATE)
