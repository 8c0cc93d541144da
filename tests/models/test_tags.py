"""Tags in texts, and the tokens that vocabularies have for them."""

import pytest
import sentencepiece

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.models.tags import add_tag, find_tag, split_tag, user_symbols

TAGS = ("de", "pt-BR", "de-AT")
SENTENCES = [f"a dog runs for {i} hours, in <html> on a DEpt street".encode() for i in range(60)]


def tokenizer(tags, **settings):
    config = TokenizerConfig(vocab_size=80, **settings)
    model = train_tokenizer(SENTENCES, config, user_symbols(tags, config.type))
    return sentencepiece.SentencePieceProcessor(model_proto=model.proto)


def test_a_tag_begins_a_text_unless_it_is_blank():
    assert add_tag("de", "A dog.") == "<de> A dog."
    assert [add_tag("de", text) for text in ("", " \t", "\u3000\u200b")] == [
        "",
        " \t",
        "\u3000\u200b",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<de> A dog.", ("de", "A dog.")),
        ("  <de>A dog.", ("de", "A dog.")),
        ("<de-AT>  A dog.", ("de-AT", " A dog.")),
        ("<fr> A dog.", (None, "<fr> A dog.")),
        ("A <de> dog.", (None, "A <de> dog.")),
        ("<DE> A dog.", (None, "<DE> A dog.")),
    ],
)
def test_split_tag(text, parts):
    assert split_tag(text, TAGS) == parts


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("in <html> <d e> < de> de>", None),
        ("a<de>b", "de"),
        ("a <d\x01e>", "de"),  # nor has it this character
        ("a <pt-br>", "pt-BR"),  # a tokenizer that folds case reads the tag
        ("\uff1cde\uff1e", "de"),  # as does one that normalizes full-width characters
    ],
)
def test_find_tag(text, tag):
    assert find_tag(text, TAGS) == tag


@pytest.mark.parametrize(
    ("kind", "normalization", "punctuation"),
    [
        ("unigram", "nmt_nfkc", "keep"),
        ("unigram", "identity", "split"),
        ("bpe", "nfkc_cf", "split"),
        ("bpe", "identity", "keep"),
        ("char", "nmt_nfkc", "split"),
        ("word", "nfkc_cf", "keep"),
    ],
)
def test_a_tag_is_the_first_token_and_the_text_keeps_its_tokens(kind, normalization, punctuation):
    settings = {"type": kind, "normalization": normalization, "punctuation": punctuation}
    processor = tokenizer(TAGS, **settings)
    plain = processor.encode("a dog runs", out_type=str)
    for tag in TAGS:
        tokens = processor.encode(add_tag(tag, "a dog runs"), out_type=str)
        assert tokens == [f"\u2581<{tag}>", *plain]
        ids = processor.encode(add_tag(tag, "a dog runs"))
        assert processor.id_to_piece(ids[0]) == tokens[0]  # not unknown
    assert processor.decode(processor.encode("<de> a dog")) == "<de> a dog"


def test_without_tags_their_text_has_ordinary_tokens():
    tokens = tokenizer((), type="bpe").encode("<de> a dog", out_type=str)
    assert tokens[:4] != ["\u2581<de>"]
    assert len([token for token in tokens if set(token) & set("<de>")]) >= 3
