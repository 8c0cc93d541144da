"""The pointer task: training rows, learning, and outputs during training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.trainer.optimizer import compile_model
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.pointer.description import PointerPreprocessingConfig
from regard.models.tasks.pointer.points import normalize_points
from regard.pipeline.datasets.point_sets import left_to_right
from tests.marks import slow
from tests.models.tasks.pointer.made import NETWORK, PREPROCESSING, RECURRENT, build, section
from tests.models.tasks.task_parts import as_rows, batch_decoding, module_of, one_row
from tests.tolerances import assert_close

POINTS = [[0.5, 0.0, 2.5, 1.0, 1.5, 3.0], [4.0, 4.0, 8.0, 6.0]]
ANSWERS = [[0, 2, 1], [1, 0]]
ALL = PointerPreprocessingConfig(visits="all", normalise=True)


def ragged(rows, dtype=None):
    return tf.ragged.constant(rows, dtype=dtype)


def inputs(points=POINTS, answers=ANSWERS, kind="sparse"):
    columns = {
        "points": ragged(points, tf.float32),
        "answer": ragged(answers, tf.int64),
    }
    if kind == "ragged":
        return columns
    return {
        name: column.to_sparse() if kind == "sparse" else column.to_tensor()
        for name, column in columns.items()
    }


@pytest.mark.parametrize("kind", ["sparse", "ragged"])
def test_preprocessing(kind):
    result = PREPROCESSING.transform(inputs(kind=kind), {}, ALL)
    assert result["answer_ids"].to_list() == [[4, 6, 5], [5, 4]]
    assert result["answer_ids"].dtype == tf.int64
    for row, flat in enumerate(POINTS):
        pairs = np.array(flat, "float32").reshape(1, -1, 2)
        expected = normalize_points(pairs, [pairs.shape[1]]).numpy().ravel()
        np.testing.assert_array_equal(result["points"][row], expected)
    as_they_are = PREPROCESSING.transform(
        inputs(kind=kind), {}, ALL.model_copy(update={"normalise": False})
    )
    assert as_they_are["points"].to_list() == POINTS


@pytest.mark.parametrize("dense", [False, True])
def test_in_a_graph_it_is_the_same(dense):
    """As in that of Transform, which does not know how many rows and points there will be."""
    points, answers = [POINTS[0], POINTS[0][::-1]], [[0, 1, 2], [2, 0, 1]]
    arguments = inputs(points, answers, "dense" if dense else "sparse")
    if dense:
        specs = [tf.TensorSpec([None, 6], tf.float32), tf.TensorSpec([None, 3], tf.int64)]
    else:
        specs = [tf.SparseTensorSpec([None, None], kind) for kind in (tf.float32, tf.int64)]

    @tf.function(input_signature=specs)
    def graph(points, answer):
        return PREPROCESSING.transform({"points": points, "answer": answer}, {}, ALL)

    result = graph(arguments["points"], arguments["answer"])
    expected = PREPROCESSING.transform(inputs(points, answers), {}, ALL)
    assert result.pop("points_length").numpy().tolist() == [3, 3]
    del expected["points_length"]
    for name, column in expected.items():
        assert result[name].to_list() == column.to_list()
        assert result[name].shape[1:] == [None]
    nothing = [tf.zeros([0, 6]), tf.zeros([0, 3], tf.int64)]
    nothing = nothing if dense else [tf.sparse.from_dense(column) for column in nothing]
    for column in graph(*nothing).values():
        assert tf.shape(column)[0] == 0


@pytest.mark.parametrize(
    ("visits", "fine"),
    [
        ("all", [True, False, False, False, False]),
        ("once", [True, True, False, False, False]),
        ("any", [True, True, True, True, False]),
    ],
)
def test_answers_that_no_model_could_give_are_not_trained_on(visits, fine):
    answers = [[2, 0, 1], [1, 0], [0, 0, 1], [1, 1], [0, 1, 2, 0]]
    points = [POINTS[0]] * len(answers)
    result = PREPROCESSING.transform(
        inputs(points, answers), {}, ALL.model_copy(update={"visits": visits})
    )
    rows = [{name: value[row] for name, value in result.items()} for row in range(len(answers))]
    assert [length > 0 for (length,) in PREPROCESSING.lengths(result).numpy()] == fine
    for row, answer, retained in zip(rows, answers, fine, strict=True):
        assert row["answer_ids"].numpy().tolist() == [4 + i for i in answer if retained]
        assert len(row["points"]) == 6


def test_rows_to_train_on():
    points, answers = [[*POINTS[0]], [7.0, 8.0], []], [[0, 2, 1], [0], []]
    settings = ALL.model_copy(update={"normalise": False})
    result = PREPROCESSING.transform(inputs(points, answers), {}, settings)
    assert PREPROCESSING.lengths(result).numpy().tolist() == [[4], [2], [0]]
    created = NETWORK.model_inputs(as_rows(result))
    zeros = [[0.0] * 3] * 3
    expected = [[[0.5, 0, 1], [2.5, 1, 1], [1.5, 3, 1]], [[7, 8, 1], *zeros[:2]], zeros]
    assert_close(created["source"], expected)
    assert created["source"].dtype == np.float32
    assert created["target"].tolist() == [[4, 6, 5, 3], [4, 3, 0, 0], [3, 0, 0, 0]]
    assert created["target"].dtype == np.int32
    row = one_row(result, 0)
    raw = module_of("pointer").raw_inputs(row)
    assert_close(raw["points"], created["source"][0, :, :2])


def sorting(rows, seed):
    """Points to be sorted, three to five of them, as the trainer's batches have them."""
    random = np.random.default_rng(seed)
    source, target = np.zeros((rows, 5, 3), "float32"), np.zeros((rows, 6), "int32")
    for row in range(rows):
        n = int(random.integers(3, 6))
        points = random.permutation(10**4)[: 2 * n].reshape(1, n, 2)
        (order,) = left_to_right(points)
        changed = normalize_points(points.astype("float32"), [n]).numpy()[0]
        source[row, :n] = np.concatenate([changed, np.ones((n, 1))], axis=1)
        target[row, : n + 1] = [*(i + 4 for i in order), 3]
    return {"source": source, "target": target}


@pytest.mark.parametrize(
    "encoder", [{"layers": 1, "heads": 2, "feed_forward": 32}, slow(RECURRENT)]
)
def test_it_learns_to_sort(encoder):
    keras.utils.set_random_seed(1)
    model = build(section(width=32, encoder={**encoder}, decoder={"units": 32}))
    compile_model(model, TrainingConfig(learning_rate=0.01))
    data, test = sorting(1500, 0), sorting(100, 1)
    # By chance: log(n!) nats a row, which is 0.62 a step for n from 3 to 5.
    model.fit(data, batch_size=50, epochs=6, verbose=0)
    loss = model.evaluate(test, verbose=0, return_dict=True)["plain_loss"]
    assert loss < 0.2
    decode = batch_decoding("pointer", model)
    outputs, references = decode(test)
    right = np.mean([order == other for order, other in zip(outputs, references, strict=True)])
    assert right > 0.6


def test_answers_while_training():
    model = build(section(visits="once"), certain=3.0)
    decode = batch_decoding("pointer", model)
    source = np.random.default_rng(0).uniform(-1, 1, (3, 4, 3)).astype("float32")
    source[..., 2] = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
    source[source[..., 2] == 0] = 0
    target = np.array([[5, 7, 3, 0], [5, 4, 3, 0], [4, 3, 0, 0]], "int32")
    outputs, references = decode({"source": source, "target": target})
    assert references == [[1, 3], [1, 0], [0]]
    for row, n in zip(outputs, (4, 2, 1), strict=True):
        assert 1 <= len(row) == len(set(row)) <= n
        assert set(row) <= set(range(n))
    for row, n in enumerate((4, 2, 1)):  # alone and without padding
        one = {"source": source[row : row + 1, :n], "target": target[row : row + 1]}
        assert decode(one)[0] == outputs[row : row + 1]
