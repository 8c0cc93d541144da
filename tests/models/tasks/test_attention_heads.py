"""The signature ``heads``: every head of every layer, of any text, saved and loaded."""

import pytest
import tensorflow as tf

from regard.models.tasks import search_outputs, served_text_output
from tests.models.tasks.exported import assert_equal_outputs, created, save_signatures, servable
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import assert_close

SOURCES = ["a cat sat", "the dog ran far away", "", "a"]
TARGETS = ["the dog", "", "a cat sat on", "unseen ☃"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    write_tokenizers(folder)
    served = created(folder, save=False)
    save_signatures(served, ["heads"], folder / "saved")
    return tf.saved_model.load(str(folder / "saved")), served, folder / "saved"


@pytest.fixture(scope="module")
def result(loaded):
    function = loaded[0].signatures["heads"]
    return function(source=tf.constant(SOURCES), target=tf.constant(TARGETS))


def test_exported_equals_in_memory(loaded, result):
    _, served, _ = loaded
    expected = served.signatures["heads"](tf.constant(SOURCES), tf.constant(TARGETS))
    assert set(result) == set(served.contract["signatures"]["heads"]["outputs"])
    assert_equal_outputs(result, expected)


def test_the_contract_says_what_can_be_drawn(loaded, result):
    contract = loaded[1].contract
    assert contract["heads"]["signature"] == "heads"
    assert [attention_map["weights"] for attention_map in contract["heads"]["looks"]] == [
        "cross_heads",
        "source_heads",
        "target_heads",
    ]
    for attention_map in contract["heads"]["looks"]:
        weights = result[attention_map["weights"]]
        assert weights.dtype == tf.float32
        assert weights.shape[1:3] == (2, 2)
        assert weights.shape[3:] == (
            result[attention_map["rows"]].shape[1],
            result[attention_map["columns"]].shape[1],
        )


def test_rows_are_distributions_over_what_is_real(loaded, result):
    outputs = loaded[1].contract["signatures"]["heads"]["outputs"]
    for name in ("source_heads", "cross_heads", "target_heads"):
        rows, columns = (result[length].numpy() for length in outputs[name][2:])
        for weights, row, column in zip(result[name].numpy(), rows, columns, strict=True):
            assert_close(weights[..., :row, :column].sum(-1), 1.0, roundings=1000)
            assert (weights[..., row:, :] == 0).all()
            assert (weights[..., column:] == 0).all()


def test_batched_is_one_by_one(loaded, result):
    function, contract = loaded[0].signatures["heads"], loaded[1].contract
    for row, sides in enumerate(zip(SOURCES, TARGETS, strict=True)):
        source, target = (tf.constant([text]) for text in sides)
        alone = function(source=source, target=target)
        for attention_map in contract["heads"]["looks"]:
            one = alone[attention_map["weights"]][0].numpy()
            rows, columns = one.shape[2:]
            batched = result[attention_map["weights"]][row, :, :, :rows, :columns]
            assert_close(one, batched)


def test_what_was_read_is_one_behind_what_is_written(result):
    for row, length in enumerate(result["target_length"].numpy()):
        stored_text = result["target_pieces"][row, :length].numpy().tolist()
        read = result[served_text_output.DECODER_INPUTS][row, :length].numpy().tolist()
        assert read == [b"<s>", *stored_text[:-1]]


def test_servers_have_all_operations(loaded):
    assert servable(loaded[2])


def test_more_weights_than_a_server_can_bear_are_refused(loaded, monkeypatch):
    monkeypatch.setattr(search_outputs, "MAX_WEIGHTS", 100)
    sides = tf.constant(SOURCES), tf.constant(TARGETS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 100 weights; send fewer"):
        loaded[1].module.heads(*sides)


def test_only_what_is_a_transformer_has_heads(tmp_path):
    write_tokenizers(tmp_path)
    recurrent = {"type": "recurrent", "units": 4}
    luong = {"type": "luong", "units": 8}
    served = created(tmp_path, decoder=luong, save=False)
    outputs = set(served.contract["signatures"]["heads"]["outputs"])
    assert outputs == {"source_pieces", "source_length", "source_heads"}
    assert set(served.signatures["heads"](tf.constant(SOURCES), tf.constant(TARGETS))) == outputs
    served = created(tmp_path, encoder=recurrent, save=False)
    attention = served.contract["heads"]["looks"]
    assert [attention_map["weights"] for attention_map in attention] == [
        "cross_heads",
        "target_heads",
    ]
    served = created(tmp_path, encoder=recurrent, decoder=luong, save=False)
    assert served.contract["heads"] is None
    assert "heads" not in served.signatures
