"""Tokenizers of both sides, trained on next to nothing."""

import io

import sentencepiece

LINES = {
    "source": (["a cat sat on the mat", "the dog ran far away from home"], 40),
    "target": (["eine Katze", "der Hund lief weit weg"], 30),
}


def trained(lines, **settings):
    """A SentencePiece model of next to nothing, as its trainer would leave it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20),
        model_writer=model,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


def write_tokenizers(folder):
    """As the tokenizer's trainer leaves them: ``source.model`` and ``target.model``."""
    for side, (lines, pieces) in LINES.items():
        (folder / f"{side}.model").write_bytes(trained(lines, vocab_size=pieces))
