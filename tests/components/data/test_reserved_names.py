from regard.components.data.reserved_names import reserved_names


def test_columns_and_outputs_are_reserved():
    names = reserved_names()
    assert {"row", "hypothesis", "score", "forced_alignment", "target_pieces", "summary"} <= names
    assert {"passage_begins", "points_length", "first_weights", "translation"} <= names
    assert names.isdisjoint({"source", "target", "answer", "domain"})
