"""The ids of the special pieces, the same in every tokenizer that Regard trains."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
