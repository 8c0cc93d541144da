"""Training in the measuring process: the counted tokens are those of the batches."""

import functools
import random

import pytest

from benchmarks import hardware_limits, training_process, workload
from tests.benchmarks.tiny_transformer import MODEL, TRAINING

VOCABULARY_SIZE = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("workload")
    draw = random.Random(3)
    ids = {
        side: [
            [draw.randrange(4, VOCABULARY_SIZE) for _ in range(draw.randint(1, 12))]
            for _ in range(400)
        ]
        for side in workload.SIDES
    }
    workload._write_rows(path / workload.ROWS, ids)
    (path / workload.VOCABULARY).write_text("".join(f"{i}\n" for i in range(VOCABULARY_SIZE)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("program", ["regard", "keras"])
def test_tokens_are_those_of_the_batches(program, folder, monkeypatch):
    monkeypatch.setattr(hardware_limits, "tensorflow_rates", lambda: {"float32": 1.0})
    models = []
    for name in ("_build_regard", "_build_keras"):

        def build(*arguments, build_model):
            models.append(build_model(*arguments))
            return models[-1]

        original = getattr(training_process, name)
        monkeypatch.setattr(training_process, name, functools.partial(build, build_model=original))
    counts = []
    on_train_batch_end = training_process.Clock.on_train_batch_end

    def record(self, batch, logs=None):
        on_train_batch_end(self, batch, logs)
        if program == "regard":
            counts.append(int(self.model.loss_mean.count))

    monkeypatch.setattr(training_process.Clock, "on_train_batch_end", record)
    result = training_process.train(
        {
            "program": program,
            "folder": str(folder),
            "model": MODEL,
            "training": TRAINING,
            "seconds": 0.02,
        }
    )
    assert result["batches"]
    assert result["rates"] == {"float32": 1.0}
    assert result["parameters"] == models[0].count_params()
    assert 0.0 <= result["accuracy"] <= 1.0
    if program == "regard":  # the model's own count, which restarts with each epoch
        assert counts[-1] == result["accuracy_tokens"]
        last = len(result["batches"])
        differences = [b - a for a, b in zip(counts[-last - 1 :], counts[-last:], strict=False)]
        assert differences == [tokens for _, tokens in result["batches"]]
