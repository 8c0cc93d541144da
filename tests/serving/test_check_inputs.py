"""The rows of a serving check."""

from regard.serving import check_inputs


def test_the_long_text_is_long():
    assert len(check_inputs.create_long_text(["ab"])) >= check_inputs.LONG_CHARACTERS - 1
    assert len(check_inputs.create_long_text([])) >= check_inputs.LONG_CHARACTERS - 1
    assert len(check_inputs.create_long_text(["x" * 9000])) == check_inputs.LONG_CHARACTERS


def test_extreme_rows_keep_inputs_that_are_not_text():
    contract = {
        "inputs": [{"name": "image", "kind": "image"}, {"name": "question", "kind": "text"}]
    }
    first = check_inputs.CheckRow("row 0", {"image": b"i", "question": "who"}, "")
    empty, long = check_inputs.create_extreme_rows([first], contract)
    assert empty.inputs == {"image": b"i", "question": ""}
    assert long.inputs["image"] == b"i"
    assert len(long.inputs["question"]) > 4990
    assert check_inputs.create_extreme_rows([first], contract, has_long_row=False) == [empty]
    assert check_inputs.create_extreme_rows([], contract) == []
    assert check_inputs.create_extreme_rows([first], {"inputs": contract["inputs"][:1]}) == []


def contract_of(entries, heads=None):
    return {"heads": heads, "signatures": {"s": {"inputs": entries, "outputs": {}}}}


def test_a_signature_can_take_outputs_as_inputs():
    entries = [
        {"name": "source", "kind": "text"},
        {"name": "target", "kind": "text", "like": "translation"},
    ]
    first = check_inputs.CheckRow("row 0", {"source": "ab"}, "'ab'", {"score": -1.0})
    outputs = [{"translation": "BA", "score": -1.0}]
    (row,) = check_inputs.rows_for_signature("s", [first], outputs, contract_of(entries))
    assert row == check_inputs.CheckRow("row 0", {"source": "ab", "target": "BA"}, "'ab'")
    unchanged = check_inputs.rows_for_signature("s", [first], [], contract_of(entries[:1]))
    assert unchanged == [first]


def test_the_signature_of_all_heads_gets_few_rows():
    rows = [check_inputs.CheckRow(f"row {n}", {"source": "a"}, "a") for n in range(9)]
    entries = [{"name": "source", "kind": "text"}]
    for heads, count in [({"signature": "s"}, 2), ({"signature": "other"}, 9), (None, 9)]:
        result = check_inputs.rows_for_signature("s", rows, [], contract_of(entries, heads))
        assert result == rows[:count]
