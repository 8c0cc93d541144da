"""SentencePiece models with SentencePiece's own ids, as other tools train them, and texts."""

import io
from collections.abc import Iterable
from typing import Any

import sentencepiece

NAMES = ["anna", "bela", "carla", "dora", "emil", "falk", "gero", "hanna"]
ENDINGS = ["bach", "berg", "burg", "dorf", "feld", "hausen", "heim", "ingen", "stadt", "tal"]
SENTENCES = [
    f"{name} goes from {start}{one} to {end}{two}, on day {number}."
    for number, name in enumerate(NAMES)
    for start, one in zip(NAMES, ENDINGS, strict=False)
    for end in NAMES
    for two in ENDINGS
]
TEXTS = [
    *SENTENCES[::97],
    "",
    " ",
    "  two  spaces ",
    "ünknöwn çhars \u4f60\u597d and \U0001f642",
    "<s> </s> <pad> <unk>",
    "\ufb01 \u2460 full\uff37idth\t\u200bzero",
    "annabergannaberg" * 5,
]


def train_foreign_model(
    sentences: Iterable[str] = SENTENCES, kind: str = "unigram", **options: Any
) -> bytes:
    """Train a model with SentencePiece's default ids: unk 0, bos 1, eos 2, and no pad."""
    buffer = io.BytesIO()
    arguments = {"vocab_size": 120, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=buffer,
        model_type=kind,
        **{**arguments, **options},
    )
    return buffer.getvalue()
