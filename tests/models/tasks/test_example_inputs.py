"""The inputs of a model in serialized tf.Examples."""

import pytest
import tensorflow as tf

from regard.models.tasks.example_inputs import parse_inputs
from regard.models.tasks.served_model import EXAMPLES_SIGNATURE
from tests.models.tasks.exported import (
    assert_equal_outputs,
    created,
    save_signatures,
    serialized,
    servable,
)
from tests.models.tasks.tokenizers import write_tokenizers

TEXTS = [{"name": "first", "kind": "text"}, {"name": "second", "kind": "text"}]
POINTS = [{"name": "points", "kind": "points", "dimensions": 3}]
POSITIONS = [{"name": "positions", "kind": "positions"}]


def test_texts_in_the_order_of_the_contract():
    rows = [
        serialized(second=[b"b"], first=[b"a"], line=[3]),
        serialized(first=[b""], second=[b"d"]),
    ]
    first, second = parse_inputs(tf.constant(rows), TEXTS)
    assert first.numpy().tolist() == [b"a", b""]
    assert second.numpy().tolist() == [b"b", b"d"]


def test_points_are_padded_and_counted():
    rows = [serialized(points=[1.0, 2.0, 3.0]), serialized(points=[4.0, 5.0, 6.0, 7.0, 8.0, 9.0])]
    points, lengths = parse_inputs(tf.constant(rows), POINTS)
    assert points.numpy().tolist() == [[[1, 2, 3], [0, 0, 0]], [[4, 5, 6], [7, 8, 9]]]
    assert (lengths.dtype, lengths.numpy().tolist()) == (tf.int32, [1, 2])


def test_positions_are_padded_and_counted():
    rows = [serialized(positions=[2]), serialized(positions=[1, 0])]
    positions, lengths = parse_inputs(tf.constant(rows), POSITIONS)
    assert (positions.dtype, positions.numpy().tolist()) == (tf.int32, [[2, 0], [1, 0]])
    assert lengths.numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("inputs", "row", "error"),
    [
        (TEXTS, serialized(first=[b"a"]), "Feature: second .* is required but could not be found"),
        (TEXTS, serialized(first=[b"a"], second=[1.0]), "Data types don't match"),
        (TEXTS, b"a raw text", "Could not parse example input"),
        (POINTS, serialized(points=[1.0, 2.0]), "feature points is not a multiple of 3"),
        (POINTS, serialized(wrong=[1.0, 2.0, 3.0]), "feature points is missing or empty"),
        (POSITIONS, serialized(wrong=[1]), "feature positions is missing or empty"),
    ],
    ids=["missing text", "type", "raw text", "shape", "missing points", "missing positions"],
)
def test_an_example_that_does_not_fit_is_an_error(inputs, row, error):
    with pytest.raises(tf.errors.InvalidArgumentError, match=error):
        parse_inputs(tf.constant([row]), inputs)


def test_examples_give_the_outputs_of_the_default_signature(tmp_path):
    write_tokenizers(tmp_path)
    small = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 4}}
    served = created(tmp_path, save=False, **small)
    save_signatures(served, ["serving_default", EXAMPLES_SIGNATURE], tmp_path / "saved")
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    texts = ["abc", "", "c a"]
    rows = [serialized(source=[text.encode()], target=[b"-"]) for text in texts]
    outputs = loaded.signatures[EXAMPLES_SIGNATURE](examples=tf.constant(rows))
    assert outputs["translation"].shape == (3, 1)
    outputs["translation"] = outputs["translation"][:, 0]
    assert_equal_outputs(outputs, served.signatures["serving_default"](tf.constant(texts)))
    assert servable(tmp_path / "saved")
    assert EXAMPLES_SIGNATURE not in served.contract["signatures"]
