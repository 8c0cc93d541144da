"""Sentences of invented languages, and the small SentencePiece models of `huggingface_models`."""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece

# Characters that the training sentences lack: they become unknown tokens.
EDGE_CASES = (
    "",
    " ",
    "  two  spaces ",
    "tab\tand\nline",
    "ÄÖ 漢字 😀",
    "ﬁne ½ ＡＢ",
    "a </s> b",
    "<pad> <unk> x",
    ">>deu<< kato",
    " >>deu<< kato",
    ">>xxx<< kato",
    ">>deu<<kato",
    "kato >>deu<<",
    ">> kato",
    "▁ ▁kato",
)
_ONSETS = {"north": "k t m r s l", "south": "p d n v g f", "east": "ш л т к н д"}
_VOWELS = {"north": "a i o é", "south": "e u a ö", "east": "а о и е"}


class Language:
    """An invented language: sixty words of two or three syllables, digits and marks.

    Args:
        name: ``north``, ``south`` (Latin letters) or ``east`` (Cyrillic letters).
    """

    def __init__(self, name: str) -> None:
        chance = random.Random(f"words of {name}")
        onsets, vowels = _ONSETS[name].split(), _VOWELS[name].split()

        def word() -> str:
            syllables = range(chance.choice((1, 2, 2, 3)))
            return "".join(chance.choice(onsets) + chance.choice(vowels) for _ in syllables)

        self.name = name
        self.lexicon = sorted({word() for _ in range(60)})

    def sentences(self, count: int, seed: str) -> list[str]:
        """Return distinct sentences of two to nine words."""
        chance = random.Random(f"{seed} of {self.name}")
        chosen: dict[str, None] = {}
        while len(chosen) < count:
            words = [chance.choice(self.lexicon) for _ in range(chance.randint(2, 9))]
            if chance.random() < 0.2:
                words.insert(1, str(chance.randint(0, 99)))
            text = " ".join(words) + chance.choice((".", ".", "?", "!", ""))
            chosen[text.capitalize() if chance.random() < 0.3 else text] = None
        return list(chosen)


def train_sentencepiece(
    path: Path,
    sentences: Sequence[str],
    size: int,
    model_type: str = "unigram",
    normalization: str = "identity",
    rules: str = "",
) -> None:
    """Train and write a SentencePiece model.

    Args:
        path: the file.
        sentences: the training sentences.
        size: number of tokens, with ``<unk>``, ``<s>`` and ``</s>``, which are the first three.
        model_type: ``unigram`` or ``bpe``.
        normalization: name of the normalization, which stands in the file; ``nmt_nfkc`` adds
            240 kB to it.
        rules: lines of a table of normalization rules, such as ``41<tab>61``: it replaces the
            normalization.
    """
    model = io.BytesIO()
    options = {"normalization_rule_name": normalization}
    if rules:
        options = {"normalization_rule_tsv": "rules.tsv"}
    # The model contains the path of the rules, so it must not be that of a temporary folder.
    with tempfile.TemporaryDirectory() as folder, _working_folder(folder):
        Path("rules.tsv").write_text(rules, encoding="ascii")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_strip(sentences),
            model_writer=model,
            vocab_size=size,
            model_type=model_type,
            character_coverage=1.0,
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
            **options,
        )
    path.write_bytes(model.getvalue())


@contextlib.contextmanager
def _working_folder(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def tokens_of(path: Path) -> list[str]:
    """Return the tokens of a SentencePiece model in the order of their ids."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(index) for index in range(model.get_piece_size())]


def _strip(sentences: Sequence[str]) -> Iterator[str]:
    for sentence in sentences:
        yield sentence.strip()
