import numpy as np

from regard.components.importing.token_table import TokenTable
from regard.models.vocabulary import BOS, EOS, PAD, UNK


def test_the_ids_of_a_vocabulary_in_the_order_of_regard():
    texts = {0: "</s>", 1: "<unk>", 2: "▁a", 3: "b", 4: ">>de<<", 5: "<pad>"}
    special = {PAD: 5, UNK: 1, EOS: 0}
    table = TokenTable.create(texts, special, start=5, missing=["c"], symbols={"<de>": 4})
    assert table.tokens == ["▁a", "b", ">>de<<", "c"]
    assert table.symbols == ["<de>"]
    np.testing.assert_array_equal(table.rows, [5, 1, 5, 0, 2, 3, 4, 1, 4])
    np.testing.assert_array_equal(table.copies, [BOS, 7, 8])
    assert table.size == 6
    assert table.id_of(4) == 6
    assert table.id_of_symbol("<de>") == 8


def test_a_token_with_the_name_of_a_special_one_gets_another_name():
    texts = {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>", 4: "x"}
    table = TokenTable.create(texts, {PAD: 1, UNK: 3, EOS: 2}, start=2)
    assert table.tokens == ["<unused 0>", "x"]
    np.testing.assert_array_equal(table.rows, [1, 3, 2, 2, 0, 4])
    np.testing.assert_array_equal(table.copies, [BOS])
