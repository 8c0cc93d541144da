"""Conventions: ids of special tokens and positions, the sign of a space, and unspaced scripts."""

# The same in every tokenizer that Regard trains.
PAD, UNK, BOS, EOS = 0, 1, 2, 3
# SentencePiece's character for the space before a word.
SPACE = "\u2581"
# The id of position 0 in the outputs of a pointer decoder.
FIRST_POSITION = EOS + 1

# Scripts that do not separate words by spaces; inside a character class of the package ``regex``.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
