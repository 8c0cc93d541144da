import dataclasses
import json
from pathlib import Path

import pytest
from tfx.components.util import model_utils
from tfx.types import standard_artifacts

from regard.components.common import prediction_table
from regard.components.common.artifact_types import Predictions
from regard.components.common.prediction_table import Row
from regard.components.serving_check import executor
from regard.components.serving_check.executor import ServingCheckExecutor, run_check
from regard.core.errors import UserError
from regard.serving import checks, saved_model, warmup_requests
from tests import fake_models, fake_tasks
from tests.fake_models import artifact

TEXTS = ["the cat sat", "on a mat", "", "abc def"]


def predict(folder: Path, model: Path, features, rows: list[Row], change=None) -> None:
    """Write predictions as the Predictor does."""
    folder.mkdir(parents=True, exist_ok=True)
    loaded = saved_model.load(model)
    predictions = loaded.predict(loaded.contract["detail"], [row.inputs for row in rows])
    if change:
        predictions[0] = dataclasses.replace(
            predictions[0], outputs={**predictions[0].outputs, **change}
        )
    prediction_table.write(folder / prediction_table.CANDIDATE, features, rows, predictions)
    summary = {"split": "test", "rows": len(rows), "device": "CPU", "contract": loaded.contract}
    prediction_table.write_summary(folder, summary)


def run(
    tmp_path: Path,
    model: Path,
    servers: list[str],
    change=None,
    features=fake_models.FEATURES,
    rows: list[Row] | None = None,
    shards=(),
):
    rows = rows or [Row({"source": text}, [text]) for text in TEXTS]
    predictions = artifact(Predictions, tmp_path / "predictions")
    predict(Path(predictions.uri), model / "Format-Serving", features, rows, change)
    blessing = artifact(standard_artifacts.InfraBlessing, tmp_path / "blessing")
    ServingCheckExecutor().Do(
        {
            "model": [artifact(standard_artifacts.Model, model)],
            "predictions": [predictions],
            "examples": [fake_models.examples(tmp_path / "examples", shards)],
        },
        {"blessing": [blessing]},
        {
            "tf_serving_versions": json.dumps(servers),
            "rows": 32,
            "code": "",
        },
    )
    return blessing


@pytest.fixture
def in_process(monkeypatch):
    """Checks the model in this process, which takes a fraction of the time."""
    monkeypatch.setattr(executor, "run_check", checks.check)


@pytest.fixture(scope="module")
def tokenizing(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("sentencepiece")
    fake_models.save(fake_models.sentencepiece_model(), root / "Format-Serving")
    return root


def test_a_sentencepiece_model_is_blessed(tokenizing, tmp_path):
    blessing = run(tmp_path, tokenizing, ["2.14", "2.19", "2.20"])
    assert model_utils.is_infra_validated(blessing)
    folder = Path(blessing.uri)
    assert (folder / "INFRA_BLESSED").exists()
    result = json.loads((folder / "serving_check.json").read_text(encoding="utf-8"))
    assert result["failures"] == []
    requests = warmup_requests.read(folder / "tf_serving_warmup_requests")
    names = [request.model_spec.signature_name for request in requests]
    assert names == ["serving_default", "align", "score"]
    assert result["unsupported_ops"] == {"2.14": {}, "2.19": {}, "2.20": {}}
    assert result["rows"] == len(TEXTS) + 2


def test_a_missing_operation_is_a_user_error(tmp_path, in_process):
    model = tmp_path / "model"
    fake_models.save(fake_models.whitespace_model(), model / "Format-Serving")
    with pytest.raises(UserError) as caught:
        run(tmp_path, model, ["2.19", "2.6.2"])
    assert "TensorFlow Serving 2.6.2" in caught.value.message
    assert "TFText>WhitespaceTokenizeWithOffsetsV2" in caught.value.message
    # TensorFlow adds it to every SavedModel since 2.11.
    assert "DisableCopyOnRead" in caught.value.message
    assert not (tmp_path / "blessing" / "INFRA_BLESSED").exists()


def test_different_outputs_are_an_error_with_row_and_values(tokenizing, tmp_path, in_process):
    change = {"translation": "OTHER", "score": -99.0}
    with pytest.raises(RuntimeError, match=r"row 0 \('the cat sat'\)[^\n]*'OTHER' \(-99\.0"):
        run(tmp_path, tokenizing, ["2.20"], change)
    # The result is kept, but there is no blessing.
    assert [path.name for path in (tmp_path / "blessing").iterdir()] == ["serving_check.json"]


@pytest.mark.parametrize(
    ("predictor", "trainer", "expected"),
    [
        ("CPU", ["CPU"], executor.TOLERANCES),
        ("CPU", [], executor.TOLERANCES),
        ("CPU", ["CPU", "GPU"], executor.TOLERANCES_ACCELERATOR),
        ("CPU, GPU", ["CPU"], executor.TOLERANCES_ACCELERATOR),
    ],
)
def test_outputs_of_an_accelerator_have_larger_tolerances(predictor, trainer, expected):
    rows = [{"device": device} for device in trainer]
    assert executor._tolerances(predictor, rows) == expected


def test_an_unknown_server_version_is_a_user_error(tokenizing, tmp_path):
    with pytest.raises(UserError, match=r"'2\.99' are not known\. Use 2\.6 to 2\.20"):
        run(tmp_path, tokenizing, ["2.99"])


def test_a_slow_process_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(executor, "TIMEOUT_SECONDS", 0.05)
    with pytest.raises(RuntimeError, match=r"not loaded and checked within 0\.05 s"):
        run_check({"model": str(tmp_path)})


def test_a_failing_process_shows_its_last_lines():
    with pytest.raises(RuntimeError, match=r"ended with status 1:\n[^$]*KeyError: 'model'"):
        run_check({})


def test_images_come_from_the_examples(tmp_path, in_process):
    """The predictions contain only their paths."""
    model = tmp_path / "model"
    fake_models.save(fake_tasks.Namer(), model / "Format-Serving")
    pictures = [fake_tasks.png(height, 2) for height in (1, 2, 3)]
    rows = [
        Row({"image": picture}, ["c"], {}, {"image": f"{n}.png"}, "f", n)
        for n, picture in enumerate(pictures)
    ]
    stored_text = [
        {"image": picture, "image_file": f"{n}.png", "caption": "c", "file": "f", "line": n}
        for n, picture in enumerate(pictures)
    ]
    blessing = run(
        tmp_path,
        model,
        ["2.20"],
        features=fake_tasks.CAPTIONING,
        rows=rows,
        shards=[[stored_text[2], stored_text[0]], [stored_text[1]]],
    )
    result = json.loads((Path(blessing.uri) / "serving_check.json").read_text(encoding="utf-8"))
    assert (result["failures"], result["rows"]) == ([], 3)
