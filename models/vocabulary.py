"""Conventions about text: the ids of the special tokens, and the scripts without spaces."""

# The same in every tokenizer that Regard trains.
PAD, UNK, BOS, EOS = 0, 1, 2, 3

# Scripts that do not separate words by spaces; inside a character class of the package ``regex``.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
