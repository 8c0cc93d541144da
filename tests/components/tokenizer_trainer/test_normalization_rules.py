"""SentencePiece's rules with spaces around punctuation."""

import io
import random
import unicodedata

import pytest
import sentencepiece

from regard.components.tokenizer_trainer.normalization_rules import punctuation_splitting_rules

TEXTS = [
    "Ein Hund, der bellt – beißt nicht…",
    "„Ça va?“ — e\u0301te\u0301 ﬁn ① ＡＢＣ",
    "price: 5€/kg (approx.)",
    "日本語、テスト。 ｶﾞ",
    "\u0627\u0644\u0633\u0644\u0627\u0645 عليكم؟",
]


def normalizer(rules: str, tmp_path) -> sentencepiece.SentencePieceNormalizer:
    path = tmp_path / "rules.tsv"
    path.write_text(rules, encoding="utf-8")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c"] * 3),
        model_writer=model,
        model_type="word",
        vocab_size=10,
        hard_vocab_limit=False,
        normalization_rule_tsv=str(path),
        minloglevel=2,
    )
    return sentencepiece.SentencePieceNormalizer(
        model_proto=model.getvalue(), add_dummy_prefix=False, escape_whitespaces=False
    )


@pytest.mark.parametrize("name", ["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "identity"])
def test_only_spaces_differ_from_the_original_rules(name: str, tmp_path) -> None:
    ours = normalizer(punctuation_splitting_rules(name), tmp_path)
    theirs = sentencepiece.SentencePieceNormalizer(
        rule_name=name, add_dummy_prefix=False, escape_whitespaces=False
    )
    draw = random.Random(3)
    characters = [chr(c) for c in range(32, 0x3000) if unicodedata.category(chr(c))[0] in "LNPSZ"]
    texts = [*TEXTS, *("".join(draw.choices(characters, k=40)) for _ in range(200))]
    for text in texts:
        assert ours.normalize(text).replace(" ", "") == theirs.normalize(text).replace(" ", "")


def test_punctuation_is_separate(tmp_path) -> None:
    ours = normalizer(punctuation_splitting_rules("nmt_nfkc_cf"), tmp_path)
    assert ours.normalize(TEXTS[0]) == "ein hund , der bellt – beißt nicht . . ."
    assert ours.normalize(TEXTS[2]) == "price : 5 € / kg ( approx . )"
