"""Training in a process of its own: what is counted is what was trained on."""

import random

import pytest

from benchmarks import limit, training_process, workload
from tests.benchmarks.tiny import MODEL, TRAINING

PIECES = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("workload")
    draw = random.Random(3)
    ids = {
        side: [[draw.randrange(4, PIECES) for _ in range(draw.randint(1, 12))] for _ in range(400)]
        for side in workload.SIDES
    }
    workload._write_rows(place / workload.ROWS, ids)
    (place / workload.VOCABULARY).write_text("".join(f"{i}\n" for i in range(PIECES)))
    return place


@pytest.mark.parametrize("program", ["regard", "keras"])
def test_the_pieces_of_a_batch_are_those_it_has(program, folder, monkeypatch):
    monkeypatch.setattr(limit, "tensorflow_rates", lambda: {"float32": 1.0})
    made = []
    for name in ("_regard", "_keras"):
        make = getattr(training_process, name)
        monkeypatch.setattr(
            training_process, name, lambda *given, make=make: made.append(make(*given)) or made[-1]
        )
    seen = []
    take = training_process.Clock.on_train_batch_end

    def noted(self, batch, logs=None):
        take(self, batch, logs)
        if program == "regard":
            seen.append(int(self.model.plain_loss.count))

    monkeypatch.setattr(training_process.Clock, "on_train_batch_end", noted)
    found = training_process.train(
        {
            "program": program,
            "folder": str(folder),
            "model": MODEL,
            "training": TRAINING,
            "seconds": 0.02,
        }
    )
    assert found["batches"]
    assert found["rates"] == {"float32": 1.0}
    assert found["parameters"] == made[0].count_params()
    assert 0.0 <= found["accuracy"] <= 1.0
    if program == "regard":  # its own count, which begins anew with an epoch
        assert seen[-1] == found["known_of"]
        last = len(found["batches"])
        assert [b - a for a, b in zip(seen[-last - 1 :], seen[-last:], strict=False)] == [
            pieces for _, pieces in found["batches"]
        ]
