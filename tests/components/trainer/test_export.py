"""The SavedModel, its reference outputs, and the file for a warm start."""

import base64
import json
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export, read_warm_start, write_warm_start
from regard.components.trainer.optimizer_state import adam_moments
from regard.models import tasks
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.served_model import ExportedModel
from regard.serving import saved_model
from regard.serving.contract import CONTRACT, IN_MEMORY, RECORD, TRAINING, read_contract
from tests import fake_models, fake_tasks
from tests.fake_models import Reverser

CONFIG = TrainerConfig(
    task="translation",
    model={"embedding": 3},
    training=TrainingConfig(precision="mixed_bfloat16"),
    search={"type": "beam"},
)


class FakeTask:
    """Exports a model that is unrelated to the trained one."""

    def __init__(self, reverser: Reverser):
        self.reverser = reverser

    def build(self, model, training, sizes):
        assert training.precision == "float32"
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(model.embedding)])

    description = tasks.describe("translation")

    def serve(self, description, model, tokenizers, settings, search, **options):
        self.exported, self.search = model, search
        served = self.reverser.signatures(), self.reverser.contract()
        return SimpleNamespace(
            raw_inputs=lambda row: row, served_model=lambda: ExportedModel(self.reverser, *served)
        )


@pytest.fixture
def trained():
    return FakeTask(Reverser()).build(CONFIG.model, TrainingConfig(precision="float32"), {})


@pytest.fixture
def export_as(trained, tmp_path, monkeypatch):
    """Return a function that exports the model with a task, and rows of raw inputs."""

    def call(task, rows=()):
        monkeypatch.setattr(tasks, "get_served_module", lambda name: task.serve)
        export(trained, task, CONFIG, {}, tmp_path / "saved", rows)

    return call


def reference_outputs(folder):
    return json.loads((folder / IN_MEMORY).read_text())


def test_the_contract_is_next_to_the_model(tmp_path, trained, export_as):
    task = FakeTask(Reverser())
    export_as(task)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert read_contract(tmp_path / "saved") == task.reverser.contract()
    (answer,) = saved_model.load(tmp_path / "saved").predict("align", [{"source": "abc"}])
    assert answer.hypothesis == "CBA"
    assert task.search == CONFIG.search
    assert (task.exported.get_weights()[0] == trained.get_weights()[0]).all()


def test_reference_outputs_are_stored(tmp_path, export_as):
    rows = [{"source": "é b".encode()}, {"source": b""}]
    export_as(FakeTask(Reverser()), rows)
    first, second = reference_outputs(tmp_path / "saved")
    assert first["inputs"] == {"source": "é b"}
    assert first["answer"]["translation"] == "B É"
    assert first["answer"]["alignment"] == [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert second["answer"]["target_pieces"] == ["</s>"]
    assert first["device"] == second["device"] == "CPU"
    export_as(FakeTask(Reverser()))
    assert reference_outputs(tmp_path / "saved") == []


def test_rows_that_the_model_rejects_are_skipped(tmp_path, export_as):
    """They must not end a training after hours."""
    rows = [{"source": b"ab"}, {"source": b"x" * 101}]
    export_as(FakeTask(Reverser("refuse")), rows)
    (row,) = reference_outputs(tmp_path / "saved")
    assert row["inputs"] == {"source": "ab"}
    export_as(FakeTask(Reverser("refuse")), rows[1:])
    assert reference_outputs(tmp_path / "saved") == []


def test_invalid_utf8_is_replaced_before_the_prediction(tmp_path, export_as):
    export_as(FakeTask(Reverser()), [{"source": b"a\xff"}])
    (row,) = reference_outputs(tmp_path / "saved")
    (answer,) = saved_model.load(tmp_path / "saved").predict("align", [row["inputs"]])
    assert row["inputs"] == {"source": "a\ufffd"}
    assert row["answer"]["translation"] == answer.hypothesis


def test_images_are_stored_in_base64_and_points_as_numbers(tmp_path, export_as):
    png = fake_tasks.png(3, 4)
    export_as(FakeTask(fake_tasks.Namer()), [{"image": png}])
    (row,) = reference_outputs(tmp_path / "saved")
    assert base64.b64decode(row["inputs"]["image"]) == png
    assert row["answer"]["caption"] == "3 by 4"
    points = np.array([[3, 0], [1, 0.5]], "float32")
    rows = [{"points": points}, {"points": points[:1]}]
    export_as(FakeTask(fake_tasks.Sorter()), rows)
    first, second = reference_outputs(tmp_path / "saved")
    assert first["inputs"] == {"points": [[3, 0], [1, 0.5]]}
    assert (first["answer"]["order"], second["answer"]["order"]) == ([1, 0], [0])


def test_an_export_replaces_an_earlier_one_only(tmp_path, export_as):
    other = tmp_path / "saved.tmp" / "assets.extra"  # not a folder of this export
    other.mkdir(parents=True)
    fake_models.save(Reverser(), tmp_path / "saved", contract={"task": "old"})
    export_as(FakeTask(Reverser()))
    assert json.loads((tmp_path / "saved" / CONTRACT).read_text())["answer"]
    assert {path.name for path in tmp_path.iterdir()} == {"saved", "saved.tmp"}


def test_a_failed_export_leaves_no_model(tmp_path, export_as):
    task = FakeTask(Reverser())
    contract = task.reverser.contract()
    task.reverser.contract = lambda: {**contract, "not JSON": object()}
    with pytest.raises(TypeError):
        export_as(task)
    assert not (tmp_path / "saved").exists()


TOKENIZERS = {"source": b"\x00one\xff", "target": b""}


@pytest.fixture
def fitted():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="dense")])
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.ones((4, 2)), np.ones((4, 3)), verbose=0)
    return model


@pytest.fixture
def write_and_read(fitted, tmp_path):
    """Writes the model as an export does, and reads what a warm start gets."""

    def run(warm_start):
        module = tf.Module()
        module.weights = [weight.value for weight in fitted.weights]
        tf.saved_model.save(module, str(tmp_path))
        training = TrainingConfig.model_validate({"warm_start": warm_start})
        config = CONFIG.model_copy(update={"training": training})
        write_warm_start(tmp_path, fitted, config, TOKENIZERS)
        return read_warm_start(tmp_path)

    return run


@pytest.mark.parametrize("warm_start", [None, {"optimizer": False}])
def test_a_warm_start_gets_weights_names_tokenizers_and_settings(
    write_and_read, fitted, tmp_path, warm_start
):
    checkpoint = write_and_read(warm_start)
    assert (checkpoint.task, checkpoint.model) == ("translation", CONFIG.model_settings)
    assert checkpoint.tokenizers == TOKENIZERS
    assert checkpoint.weight_names == [weight.path for weight in fitted.weights]
    for value, weight in zip(checkpoint.weights, fitted.get_weights(), strict=True):
        np.testing.assert_array_equal(value, weight)
    assert (checkpoint.updates, checkpoint.adam_moments) == (0, [])
    # The weights are stored once, in the SavedModel.
    assert not any("weight" in name for name in np.load(tmp_path / TRAINING).files)


def test_a_warm_start_gets_the_optimizer_state_on_request(write_and_read, fitted):
    checkpoint = write_and_read({"optimizer": True})
    assert checkpoint.updates == int(fitted.optimizer.iterations) == 1
    for value, moment in zip(checkpoint.adam_moments, adam_moments(fitted.optimizer), strict=True):
        np.testing.assert_array_equal(value, np.asarray(moment))
    assert any(value.any() for value in checkpoint.adam_moments)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"config": {"search": {"type": "greedy"}}}', {"type": "greedy"}),
        ('{"config": null}', None),
        ("[]", None),
        ("{", None),
        (None, None),
    ],
)
def test_an_older_export_has_its_search_in_the_record(fitted, tmp_path, record, expected):
    module = tf.Module()
    module.weights = [weight.value for weight in fitted.weights]
    tf.saved_model.save(module, str(tmp_path))
    write_warm_start(tmp_path, fitted, CONFIG.model_copy(update={"search": None}), TOKENIZERS)
    if record is not None:
        (tmp_path / RECORD).write_text(record)
    assert read_warm_start(tmp_path).search == expected


def test_other_saved_models_offer_no_warm_start(tmp_path):
    assert read_warm_start(tmp_path) is None
