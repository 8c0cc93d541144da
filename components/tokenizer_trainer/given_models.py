"""SentencePiece models that the user gives: read, checked, and with the ids of Regard."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
from google.protobuf.message import DecodeError

from regard.components.common.sentencepiece_models import (
    MODEL_TYPES,
    parse_model_fields,
)
from regard.components.common.sentencepiece_renumbering import renumber_model
from regard.components.settings.tokenizer import TokenizerConfig
from regard.core.errors import DataError
from regard.core.files import check_no_special_file
from regard.core.formatting import format_count

# Models of 250,000 tokens have 5 MB.
MAX_BYTES = 100_000_000
_NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
_REMEDY = "Use a file that SentencePiece's training has written; its name ends in .model."
# What other files begin with.
_BEGINNINGS = {
    b"<!doctype": "an HTML page; download the file itself",
    b"<html": "an HTML page; download the file itself",
    b"version https://git-lfs": "a pointer of Git LFS; run `git lfs pull`",
    b"{": "JSON, such as tokenizer.json or vocab.json",
    b"pk\x03\x04": "a ZIP archive; unpack it",
    b"\x1f\x8b": "compressed; unpack it",
}


@dataclass(frozen=True)
class GivenModel:
    """A model of the user with the ids of Regard.

    Attributes:
        name: the name of the file.
        digest: the SHA-256 of its content.
        proto: the serialized model with new ids and with all symbols.
        size: the number of tokens.
        type: the type of the model, such as ``bpe``.
        normalization: the name of the rules, or a description.
        folds_case: whether the model makes letters small.
    """

    name: str
    digest: str
    proto: bytes
    size: int
    type: str
    normalization: str
    folds_case: bool

    def describe(self) -> str:
        """Return name, size, type and normalization as a phrase."""
        case = ", which folds case" if self.folds_case else ""
        tokens = format_count(self.size, "token")
        return f"{tokens} of {self.name} ({self.type}, normalization {self.normalization}{case})"


def find_file(path: str) -> Path:
    """Return a file, or the only file of a folder that stores a copy of one."""
    place = Path(path)
    try:
        files = list(place.iterdir()) if place.is_dir() else []
    except OSError:  # opening it says why
        files = []
    return files[0] if len(files) == 1 else place


def read_file(path: str, where: str | None = None) -> bytes:
    """Return the content of a file of at most ``MAX_BYTES``.

    Args:
        path: the file.
        where: the place of the path in the configuration.

    Raises:
        DataError: it cannot be read, is empty, or is too large.
    """
    try:
        check_no_special_file(path)
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero character in the path
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The file {path} cannot be read: {reason}.", where, _REMEDY) from None
    if not content:
        raise DataError(f"The file {path} is empty.", where, _REMEDY)
    if len(content) > MAX_BYTES:
        message = f"The file {path} has more than {MAX_BYTES:,} bytes, too many for a tokenizer."
        raise DataError(message, where, _REMEDY)
    return content


def read_sentencepiece(file: Path, where: str | None = None) -> bytes:
    """Return the content of a file that is a SentencePiece model.

    Args:
        file: the file.
        where: the place of the path in the configuration.

    Raises:
        DataError: it cannot be read, or is something else.
    """
    content = read_file(str(file), where)
    if reason := _wrong_format(content):
        raise DataError(f"{file} is no SentencePiece model: {reason}.", where, _REMEDY)
    return content


def read_given_model(
    path: str, config: TokenizerConfig, symbols: Sequence[str], where: str | None = None
) -> GivenModel:
    """Read a SentencePiece model, and give it the ids of Regard and symbols.

    Args:
        path: the file, or a folder with only this file.
        config: the section ``tokenizer``, whose type and normalization the model must have.
        symbols: strings that are always one token, in addition to ``user_defined_symbols``.
        where: the place of the path in the configuration.

    Raises:
        DataError: the file cannot be read, is no SentencePiece model, or is not what the
            configuration says.
    """
    file = find_file(path)
    content = read_sentencepiece(file, where)
    try:
        fields = parse_model_fields(content)
        _check_spaces(fields)
        proto = renumber_model(
            content, symbols=tuple(dict.fromkeys([*config.user_defined_symbols, *symbols]))
        )
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        normalizer = sentencepiece.SentencePieceNormalizer(model_proto=content)
    except (RuntimeError, ValueError) as error:
        message = f"{file} cannot be used as a SentencePiece model: {error}."
        raise DataError(message, where, _REMEDY) from None
    model = GivenModel(
        name=file.name,
        digest=hashlib.sha256(content).hexdigest(),
        proto=proto,
        size=processor.get_piece_size(),
        type=MODEL_TYPES.get(fields.trainer_spec.model_type, "unknown"),
        normalization=_normalization(fields.normalizer_spec),
        folds_case="A" not in normalizer.normalize("A"),
    )
    _check_settings(model, config, where)
    return model


def _wrong_format(content: bytes) -> str:
    """Return why a file is no SentencePiece model, or the empty string."""
    beginning = content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for start, kind in _BEGINNINGS.items():
        if beginning.startswith(start):
            return f"it is {kind}"
    if _is_vocabulary(content):
        return "it is a list of tokens, the .vocab file or a table; the .model file is next to it"
    try:
        model = parse_model_fields(content)
    except DecodeError:
        return "it is damaged, truncated or another kind of file"
    if not (model.pieces and model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        return "it has no tokens or no settings, as a truncated file"
    return ""


def _check_spaces(model: Any) -> None:
    """Check that the tokens of a model show where words begin, which alignments and copying read.

    Raises:
        ValueError: they do not.
    """
    if model.trainer_spec.treat_whitespace_as_suffix:
        raise ValueError("its tokens end with the sign of a space instead of beginning with it")
    if not model.normalizer_spec.escape_whitespaces:
        raise ValueError("its tokens do not contain the sign of a space")


def _is_vocabulary(content: bytes) -> bool:
    """Return whether a file is text, such as tokens with their scores."""
    try:
        text = content[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(content[:4096]) - 4:  # not only a character that was cut
            return False
        text = content[: error.start].decode("utf-8")
    return not any(ord(letter) < 32 and letter not in "\t\r\n" for letter in text)


def _normalization(spec: object) -> str:
    name = getattr(spec, "name", "")
    rules = getattr(spec, "precompiled_charsmap", b"")
    if not rules:
        return "identity"
    return name if name in _NORMALIZATIONS else f"by rules of its own ({name or 'no name'})"


def _check_settings(model: GivenModel, config: TokenizerConfig, where: str | None) -> None:
    """Check that type and normalization of the configuration are those of a model.

    Raises:
        DataError: they are not. Rules without a known name are not compared.
    """
    pairs: list[tuple[str, str, str]] = [("type", config.type, model.type)]
    if model.normalization in _NORMALIZATIONS:
        pairs.append(("normalization", config.normalization, model.normalization))
    changes = [(key, setting, value) for key, setting, value in pairs if setting != value]
    if changes:
        settings = " and ".join(f"tokenizer.{key} is {setting}" for key, setting, _ in changes)
        values = " and ".join(f"{key} {value}" for key, _, value in changes)
        remedy = " and ".join(f"tokenizer.{key} to {value}" for key, _, value in changes)
        raise DataError(f"{settings}, but {model.name} has {values}.", where, f"Set {remedy}.")
