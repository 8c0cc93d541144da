"""SentencePiece models in the folder of a model that is imported."""

import os
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from regard.components.common.sentencepiece_models import NORMAL, UNUSED, parse_model_fields
from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS, renumber_model
from regard.components.importing.token_table import TokenTable
from regard.components.tokenizer_trainer.given_models import read_sentencepiece
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import NotFoundError, UserError

_REMEDY = "Fetch the file again."


def read_tokenizer(path: Path) -> bytes:
    """Read a serialized SentencePiece model.

    Raises:
        UserError: there is no such file, or it is something else.
    """
    if not os.path.exists(path):  # also for a name that is too long
        remedy = "Give the folder of one model with all its files."
        raise NotFoundError("The SentencePiece model does not exist.", str(path), remedy)
    return read_sentencepiece(path)


def ordinary_tokens(serialized: bytes) -> list[str]:
    """Return the tokens of a model, without the special ones, in the order of their ids."""
    return read_vocabulary(renumber_model(serialized))[len(SPECIAL_TOKENS) :]


def missing_tokens(serialized: bytes, texts: Iterable[str], path: Path) -> list[str]:
    """Return the tokens of a model that a vocabulary lacks.

    Args:
        serialized: the SentencePiece model.
        texts: the texts of the vocabulary.
        path: the file of the vocabulary.

    Raises:
        UserError: it lacks most of them, so it belongs to another model.
    """
    known, tokens = set(texts), ordinary_tokens(serialized)
    missing = [token for token in tokens if token not in known]
    if 2 * len(missing) > len(tokens):
        message = f"The file lacks {len(missing):,} of {len(tokens):,} tokens of the SentencePiece "
        raise UserError(f"{message}model.", str(path), "Give all files of one model.")
    return missing


def check_vocabulary(serialized: bytes, texts: Sequence[str], path: Path) -> None:
    """Check that the tokens of a vocabulary are those of a SentencePiece model.

    Raises:
        UserError: more than a tenth are not, so it belongs to another model.
    """
    tokens = set(ordinary_tokens(serialized))
    others = [text for text in texts if text not in tokens]
    if 10 * len(others) > len(texts):
        message = f"{len(others):,} of {len(texts):,} tokens, {others[0][:40]!a} for example, "
        message += "are not those of the SentencePiece model."
        raise UserError(message, str(path), "Give all files of one model.")


def forbid_tokens(path: Path, serialized: bytes, known: Container[str]) -> bytes:
    """Return a model that segments texts without the tokens that a vocabulary lacks.

    Single characters stay, as in ``SetVocabulary`` of SentencePiece.

    Raises:
        UserError: the model cannot be used; the error names the file.
    """
    renumber(path, serialized)  # refuses a file that is no model
    model = parse_model_fields(serialized)
    for piece in model.pieces:
        if piece.type == NORMAL and piece.piece not in known and len(piece.piece) > 1:
            piece.type = UNUSED
    result: bytes = model.SerializeToString(deterministic=True)
    return result


def renumber(
    path: Path,
    serialized: bytes,
    table: TokenTable | None = None,
    symbols: Sequence[str] = (),
) -> bytes:
    """Return a model with the ids of a table, or in its own order with symbols at its end.

    Raises:
        UserError: the model cannot be used; the error names the file.
    """
    try:
        if table is None:
            return renumber_model(serialized, symbols=symbols)
        return renumber_model(serialized, table.tokens, table.symbols)
    except ValueError as error:
        message = f"The SentencePiece model cannot be used: {error}."
        raise UserError(message, str(path), _REMEDY) from None
