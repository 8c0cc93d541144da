"""What is written of a trained model; that real tasks export well is tested with them."""

from __future__ import annotations

import base64
import json

import keras
import numpy as np
import pytest

from components.trainer.export import export
from models.tasks.served import Served
from serving import saved_model
from tests import fake_models, fake_tasks
from tests.fake_models import Reverser

CONFIG = {"model": {"size": 3}, "training": {"precision": "mixed_bfloat16"}, "search": None}


class FakeTask:
    """Exports a model that has nothing to do with the one that was trained."""

    def __init__(self, reverser: Reverser):
        self.reverser = reverser

    def build(self, model, training, pieces):
        assert training["precision"] == "float32"
        return keras.Sequential([keras.Input((2,)), keras.layers.Dense(model["size"])])

    def served(self, model, tokenizers, config):
        self.exported, self.config = model, config
        return Served(self.reverser, self.reverser.signatures(), self.reverser.contract())


@pytest.fixture
def trained():
    return FakeTask(Reverser()).build(CONFIG["model"], {"precision": "float32"}, {})


def test_the_contract_lies_beside_the_model(tmp_path, trained):
    task = FakeTask(Reverser())
    export(trained, task, CONFIG, {}, tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert saved_model.read_contract(tmp_path / "saved") == task.reverser.contract()
    (answer,) = saved_model.load(tmp_path / "saved").ask("align", [{"source": "abc"}])
    assert answer.hypothesis == "CBA"
    assert task.config == CONFIG
    assert (task.exported.get_weights()[0] == trained.get_weights()[0]).all()


def test_what_it_answers_in_memory_is_kept(tmp_path, trained):
    rows = [{"source": "é b".encode()}, {"source": b""}]
    export(trained, FakeTask(Reverser()), CONFIG, {}, tmp_path / "saved", rows)
    first, second = json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text())
    assert first["inputs"] == {"source": "é b"}
    assert first["answer"]["translation"] == "B É"
    assert first["answer"]["alignment"] == [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert second["answer"]["target_pieces"] == ["</s>"]
    assert first["device"] == second["device"] == saved_model.device()
    export(trained, FakeTask(Reverser()), CONFIG, {}, tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text()) == []


def test_rows_that_the_model_refuses_are_left_out(tmp_path, trained):
    """A training must not end with them, after hours."""
    rows = [{"source": b"ab"}, {"source": b"x" * 101}]
    export(trained, FakeTask(Reverser("refuse")), CONFIG, {}, tmp_path / "saved", rows)
    (row,) = json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text())
    assert row["inputs"] == {"source": "ab"}
    export(trained, FakeTask(Reverser("refuse")), CONFIG, {}, tmp_path / "saved", rows[1:])
    assert json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text()) == []


def test_texts_are_asked_as_they_are_kept(tmp_path, trained):
    export(trained, FakeTask(Reverser()), CONFIG, {}, tmp_path / "saved", [{"source": b"a\xff"}])
    (row,) = json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text())
    (answer,) = saved_model.load(tmp_path / "saved").ask("align", [row["inputs"]])
    assert row["inputs"] == {"source": "a\ufffd"}
    assert row["answer"]["translation"] == answer.hypothesis


def test_images_are_kept_in_base64_and_points_as_numbers(tmp_path, trained):
    png = fake_tasks.png(3, 4)
    export(trained, FakeTask(fake_tasks.Namer()), CONFIG, {}, tmp_path / "saved", [{"image": png}])
    (row,) = json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text())
    assert base64.b64decode(row["inputs"]["image"]) == png
    assert row["answer"]["caption"] == "3 by 4"
    points = np.array([[3, 0], [1, 0.5]], "float32")
    rows = [{"points": points}, {"points": points[:1]}]
    export(trained, FakeTask(fake_tasks.Sorter()), CONFIG, {}, tmp_path / "saved", rows)
    first, second = json.loads((tmp_path / "saved" / saved_model.IN_MEMORY).read_text())
    assert first["inputs"] == {"points": [[3, 0], [1, 0.5]]}
    assert (first["answer"]["order"], second["answer"]["order"]) == ([1, 0], [0])


def test_a_second_export_takes_the_place_of_the_first(tmp_path, trained):
    """Also of one that was killed half-way."""
    leftover = tmp_path / "saved.tmp" / "assets.extra"
    leftover.mkdir(parents=True)
    (leftover / "contract.json").write_text("{")
    fake_models.save(Reverser(), tmp_path / "saved", contract={"task": "old"})
    export(trained, FakeTask(Reverser()), CONFIG, {}, tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / saved_model.CONTRACT).read_text())["answer"]
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_nothing_is_there_where_the_export_fails(tmp_path, trained):
    task = FakeTask(Reverser())
    task.reverser.contract = lambda: {"not JSON": object()}
    with pytest.raises(TypeError):
        export(trained, task, CONFIG, {}, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
