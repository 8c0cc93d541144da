"""SentencePiece models of the user: what is read, and every file that is refused."""

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from regard.components.common.sentencepiece_models import CONTROL, parse_model_fields
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer import given_models
from regard.components.tokenizer_trainer.given_models import GivenModel, read_given_model
from regard.core.errors import DataError
from regard.models.tags import user_symbols
from tests.components.common.sentencepiece_corpora import train_foreign_model

FOREIGN = train_foreign_model()


def read(path: Path, symbols: tuple[str, ...] = (), **settings: Any) -> GivenModel:
    config = TokenizerConfig.model_validate({"model": str(path), **settings})
    return read_given_model(str(path), config, symbols, "a.yaml:3: tokenizer.model")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (path := tmp_path / "opus.model").write_bytes(FOREIGN)
    return path


def refusal(path: Path, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path, **settings)
    assert caught.value.where == "a.yaml:3: tokenizer.model"
    assert caught.value.remedy
    return caught.value


def test_a_model_gets_the_ids_of_regard(path: Path) -> None:
    model = read(path, ("<de>",), user_defined_symbols=["<date>"])
    assert (model.name, model.digest) == ("opus.model", hashlib.sha256(FOREIGN).hexdigest())
    assert (model.type, model.normalization, model.folds_case) == ("unigram", "nmt_nfkc", False)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.proto)
    assert model.size == processor.get_piece_size()
    assert [processor.piece_to_id(token) for token in ("<pad>", "<unk>", "<s>", "</s>")] == [
        *range(4)
    ]
    assert {"<de>", "<date>"} <= set(processor.encode("anna<de>b<date>", out_type=str))


def test_the_only_file_of_a_folder(path: Path) -> None:
    assert read(path.parent) == read(path)


@pytest.mark.parametrize("kind", ["bpe", "char", "word"])
def test_the_type_must_be_that_of_the_model(tmp_path: Path, kind: str) -> None:
    (path := tmp_path / "a.model").write_bytes(train_foreign_model(kind=kind))
    assert read(path, type=kind).type == kind
    assert refusal(path).remedy == f"Set tokenizer.type to {kind}."


@pytest.mark.parametrize("rules", ["identity", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_the_normalization_must_be_that_of_the_model(tmp_path: Path, rules: str) -> None:
    model = train_foreign_model(normalization_rule_name=rules)
    (path := tmp_path / "a.model").write_bytes(model)
    known = read(path, normalization=rules)
    assert (known.normalization, known.folds_case) == (rules, rules.endswith("_cf"))
    assert refusal(path).remedy == f"Set tokenizer.normalization to {rules}."


def test_both_differences_are_reported_at_once(tmp_path: Path) -> None:
    model = train_foreign_model(kind="bpe", normalization_rule_name="identity")
    (path := tmp_path / "a.model").write_bytes(model)
    remedy = "Set tokenizer.type to bpe and tokenizer.normalization to identity."
    assert refusal(path).remedy == remedy


def test_own_rules_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "rules.tsv").write_text("41\t62\n")
    model = train_foreign_model(normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    (path := tmp_path / "a.model").write_bytes(model)
    known = read(path, normalization="identity")
    assert known.normalization.startswith("by rules of its own")
    assert known.folds_case


def vocabulary() -> bytes:
    processor = sentencepiece.SentencePieceProcessor(model_proto=FOREIGN)
    ids = range(processor.get_piece_size())
    return "".join(f"{processor.id_to_piece(i)}\t{-i}\n" for i in ids).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n<!DOCTYPE html><html><head>", "HTML"),
        (b"<HTML>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
        (json.dumps({"<unk>": 0}).encode(), "JSON"),
        (gzip.compress(FOREIGN), "compressed"),
        (b"PK\x03\x04abc", "ZIP"),
        (vocabulary(), "list of tokens"),
        ("\u2581h\u00e4user\n".encode() * 400, "list of tokens"),
        (FOREIGN[:-1], "truncated"),
        (FOREIGN[:100], "truncated"),
        (FOREIGN[: len(FOREIGN) // 2], "truncated"),
        (bytes(range(256)) * 10, "damaged"),
        (b"\0" * 10_000, "damaged"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    (path := tmp_path / "a.model").write_bytes(content)
    assert message in refusal(path).message


def test_a_model_that_ends_between_its_parts(tmp_path: Path) -> None:
    fields = parse_model_fields(FOREIGN)
    fields.ClearField("normalizer_spec")
    (path := tmp_path / "a.model").write_bytes(fields.SerializeToString())
    assert "truncated" in refusal(path).message


@pytest.mark.parametrize("change", ["no unknown", "two", "zero", "special", "invalid"])
def test_invalid_models(tmp_path: Path, change: str) -> None:
    fields = parse_model_fields(FOREIGN)
    if change == "no unknown":
        fields.pieces[0].type = CONTROL
    texts = {"two": fields.pieces[5].piece, "zero": "a\0", "special": "<pad>"}
    if change in texts:
        fields.pieces.add(piece=texts[change], score=-9.0)
    content = fields.SerializeToString()
    if change == "invalid":
        content += b"\x0a\x03\x0a\x01\xff"
    (path := tmp_path / "a.model").write_bytes(content)
    assert "cannot be used" in refusal(path).message


@pytest.mark.parametrize("part", ["trainer_spec", "normalizer_spec"])
def test_models_that_do_not_mark_the_beginning_of_words(tmp_path: Path, part: str) -> None:
    fields = parse_model_fields(FOREIGN)
    if part == "trainer_spec":
        fields.trainer_spec.treat_whitespace_as_suffix = True
    else:
        fields.normalizer_spec.escape_whitespaces = False
    (path := tmp_path / "a.model").write_bytes(fields.SerializeToString())
    assert "sign of a space" in refusal(path).message


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "several").mkdir()
    for name in ("none", "fifo", "several"):
        assert "cannot be read" in refusal(tmp_path / name).message
    monkeypatch.setattr(given_models, "MAX_BYTES", 1000)
    (tmp_path / "large").write_bytes(FOREIGN)
    assert "1,000 bytes" in refusal(tmp_path / "large").message


def test_symbols_that_clash(path: Path) -> None:
    assert "</s>" in refusal(path, user_defined_symbols=["</s>"]).message
    # A symbol that the model has already is one token, too.
    tags = tuple(user_symbols(["de"], "unigram"))
    existing = "\u2581bela"
    model = read(path, (*tags, existing), user_defined_symbols=[existing])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.proto)
    assert existing in processor.encode("anna belax", out_type=str)
    assert model.size == len(parse_model_fields(FOREIGN).pieces) + 1 + len(tags)


def test_a_tiny_model(tmp_path: Path) -> None:
    fields = parse_model_fields(FOREIGN)
    del fields.pieces[1:]
    fields.pieces.add(piece="a", score=-1.0)
    (path := tmp_path / "a.model").write_bytes(fields.SerializeToString())
    assert read(path).size == 5
