"""SentencePiece's normalization rules without the one that removes joiners.

U+200C, the zero-width non-joiner, is part of the orthography of Persian, Urdu, Kurdish and Indic
scripts. SentencePiece's sets ``nmt_nfkc`` and ``nmt_nfkc_cf`` make it a space, so that a model
could not write it. They keep U+200D, the joiner of Indic scripts and emoji.
"""

from collections.abc import Mapping

import numpy as np

JOINER = "\u200c"
# The sets of rules that make the joiner a space.
REMOVING = ("nmt_nfkc", "nmt_nfkc_cf")
_MAX_RUN = 4  # of joiners


def joiner_rules(charsmap: bytes) -> dict[str, str]:
    """Return the rules of a set that removes joiners, and those by which joiners stay.

    A joiner stays where it joins: not next to a space, and not after another one.

    Args:
        charsmap: ``normalizer_spec.precompiled_charsmap`` of the set.
    """
    rules = decode_rules(charsmap)
    rules.pop(JOINER, None)
    for count in range(1, _MAX_RUN + 1):
        run = JOINER * count
        rules |= {f" {run}": " ", f"{run} ": " ", f" {run} ": " "}
        if count > 1:
            rules[run] = JOINER
    return rules


def decode_rules(charsmap: bytes) -> dict[str, str]:
    """Return compiled rules: what replaces each sequence of characters.

    The format is the size of a double array in four bytes, the array, a trie of the sequences in
    UTF-8, and the replacements, each with a zero byte at its end. See ``darts_clone/darts.h`` in
    SentencePiece: a unit has a label in bits 0 to 7 and 31, in bits 10 to 30 the offset of its
    children (times 256 if bit 9 is set), and in bit 8 whether a value is among them.
    """
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    texts = charsmap[4 + size :]
    positions = np.arange(len(units))
    bases = positions ^ ((units >> 10) << ((units & 0x200) >> 6))
    has_value, is_value, labels = units & 0x100 > 0, units >> 31 > 0, units & 0xFF
    children: dict[int, list[int]] = {}
    for position in positions[~is_value & (labels > 0)].tolist():
        children.setdefault(position ^ int(labels[position]), []).append(position)
    rules: dict[str, str] = {}
    nodes = [(b"", 0)]
    while nodes:
        key, node = nodes.pop()
        base = int(bases[node])
        if has_value[node]:
            start = int(units[base]) & 0x7FFFFFFF
            rules[key.decode()] = texts[start : texts.index(0, start)].decode()
        nodes += [(key + bytes([labels[child]]), child) for child in children.get(base, ())]
    return rules


def to_table(rules: Mapping[str, str]) -> str:
    """Return rules as SentencePiece reads them, one on a line: hexadecimal code points, a tab."""

    def codes(text: str) -> str:
        return " ".join(f"{ord(character):X}" for character in text)

    return "".join(f"{codes(text)}\t{codes(other)}\n" for text, other in sorted(rules.items()))
