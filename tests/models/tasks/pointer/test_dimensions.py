"""Pointers over points of other spaces than the plane."""

import gzip
import itertools
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from regard.components.data.cell_values import CellParser
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export
from regard.core.errors import UserError
from regard.core.features import CellError
from regard.core.kinds.points import split_points
from regard.models.metrics import MetricOptions, Rows, compute
from regard.models.tasks.pointer.description import (
    PointerModelConfig,
    PointerPreprocessingConfig,
    limit_features,
)
from regard.pipeline.config import load
from regard.pipeline.datasets.point_sets import hull, tours
from regard.pipeline.prediction.input_rows import InputParser
from regard.serving import saved_model
from tests.models.tasks.exported import servable
from tests.models.tasks.pointer.made import (
    BEAM,
    NETWORK,
    PREPROCESSING,
    RECURRENT,
    build,
    section,
    training,
)
from tests.models.tasks.task_parts import as_rows, module_of, one_row
from tests.tolerances import assert_close, close_to

POINTS = np.random.default_rng(3).random((2, 5, 3)).astype("float32")


def preprocessed(dimensions, points):
    settings = PointerPreprocessingConfig(dimensions=dimensions, visits="all", normalise=True)
    flat = [np.ravel(row).tolist() for row in points]
    answers = [list(range(len(row))) for row in points]
    inputs = {"points": tf.ragged.constant(flat), "answer": tf.ragged.constant(answers)}
    return PREPROCESSING.transform(inputs, {}, settings)


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_rows_are_scaled_by_one_factor_and_marked(dimensions):
    points = np.random.default_rng(1).random((4, dimensions)) * 3
    result = preprocessed(dimensions, [points, points[:2]])
    row = one_row(result, 0)
    source = NETWORK.source_input(as_rows(result))[0]
    low, high = points.min(0), points.max(0)
    expected = (points - (low + high) / 2) / ((high - low) / 2).max()
    assert_close(source[:, :-1], expected)
    np.testing.assert_array_equal(source[:, -1], 1.0)
    assert PREPROCESSING.lengths(result).numpy().tolist() == [[5], [3]]
    assert module_of("pointer", tokenizers={}).raw_inputs(row)["points"].shape == (4, dimensions)


STACK = [RECURRENT, {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8}]


def test_exported_models_take_points_of_three_dimensions(tmp_path):
    config = {
        "model": section(dimensions=3, encoder=STACK),
        "training": training(),
        "search": BEAM,
    }
    model = build(config["model"], certain=2.0)
    path = tmp_path / "saved"
    export(model, NETWORK, TrainerConfig(task="pointer", **config), {}, path)
    assert servable(path)
    served = saved_model.load(path)
    for name in served.contract["signatures"]:
        served.signature(name)
    assert served.contract["inputs"] == [{"name": "points", "kind": "points", "dimensions": 3}]
    assert served.contract["looks"] is None
    both = served.predict("align", [{"points": POINTS[0]}, {"points": POINTS[1, :3]}])
    alone = served.predict("align", [{"points": POINTS[1, :3]}])[0]
    assert sorted(both[0].hypothesis) == list(range(5))
    assert both[1].hypothesis == alone.hypothesis
    assert_close(both[1].outputs["score"], alone.outputs["score"])
    # The third coordinate counts.
    flat = POINTS[0] * [1, 1, 0]
    assert served.predict("align", [{"points": flat}])[0].outputs["score"] != close_to(
        both[0].outputs["score"]
    )
    (row,) = next(InputParser(served.contract).parse(["[[0, 1, 2], [2, 1, 0], [1, 1, 1]]"]))
    assert sorted(served.predict("align", [row.values])[0].hypothesis) == [0, 1, 2]
    with pytest.raises(UserError, match=r"not \[x, y, z\]"):
        next(InputParser(served.contract).parse(["[[0, 1]]"]))


def test_cells_have_the_dimensions_of_the_model():
    points, answer = limit_features(PointerModelConfig(dimensions=3))
    parse = CellParser([points, answer])
    values = parse([[[0, 1, 2], [3, 4, 5]], [1, 0]])
    assert values == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 0]]
    assert list(points.kind.lengths(points, values[0])) == [2]
    assert split_points(values[0], 3) == [[0, 1, 2], [3, 4, 5]]
    assert points.kind.format(points, values[0]).startswith("2 points: ")
    with pytest.raises(CellError, match="there are only 2 points"):
        parse([[[0, 1, 2], [3, 4, 5]], [2]])
    with pytest.raises(CellError, match=r"point 1 is \[3, 4\], not \[x, y, z\]"):
        parse([[[0, 1, 2], [3, 4]], [0]])


def test_tours_have_a_length_in_any_space():
    tour = [0, 2, 1, 4, 3]
    rows = Rows([tour], [[[0, 1, 2, 3, 4]]], {"points": [POINTS[0].tolist()]})
    (metric,) = compute(["tour_length"], rows, MetricOptions())
    corners = [POINTS[0, i].astype("float64") for i in [*tour, 0]]
    expected = sum(math.dist(a, b) for a, b in itertools.pairwise(corners))
    assert metric.value == pytest.approx(expected)


def test_generated_tours_are_the_shortest(tmp_path):
    tours(tmp_path, rows=60, dimensions=3)
    with gzip.open(tmp_path / "train.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    row = min(rows, key=lambda one: len(one["points"]))
    assert all(len(point) == 3 for one in rows for point in one["points"])

    def length(order):
        return sum(
            math.dist(row["points"][a], row["points"][b])
            for a, b in itertools.pairwise([*order, order[0]])
        )

    others = itertools.permutations(range(1, len(row["points"])))
    assert length(row["answer"]) == pytest.approx(min(length((0, *one)) for one in others))
    with pytest.raises(UserError, match="hull has no points of 3 dimensions"):
        hull(tmp_path, rows=60, dimensions=3)


def test_areas_are_refused_outside_of_the_plane(tmp_path):
    path = tmp_path / "x.yaml"
    text = "name: x\ntask: pointer\ndata: {train: train.jsonl.gz}\nmodel: {dimensions: 3}\n"
    path.write_text(text + "evaluation: {metrics: [tour_length, hull_area]}\n")
    with pytest.raises(UserError, match="hull_area is defined in the plane, not in 3 dimensions"):
        load(path)


def test_training_rows_fit_the_model():
    model = build(section(dimensions=3))
    result = preprocessed(3, POINTS)
    batch = NETWORK.model_inputs(as_rows(result))
    assert batch["source"].shape[2] == model.encoder.embedding.dimensions + 1
    model.compile(optimizer="sgd")
    assert np.isfinite(model.evaluate(batch, verbose=0, return_dict=True)["loss"])
