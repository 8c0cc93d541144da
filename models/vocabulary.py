"""Conventions: the ids of special tokens and positions, and the scripts without spaces."""

# The same in every tokenizer that Regard trains.
PAD, UNK, BOS, EOS = 0, 1, 2, 3
# The id of position 0 in the outputs of a pointer decoder.
FIRST_POSITION = EOS + 1

# Scripts that do not separate words by spaces; inside a character class of the package ``regex``.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
