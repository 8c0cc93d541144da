"""SentencePiece models in the folder of a model that is imported."""

from collections.abc import Sequence
from pathlib import Path

from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS, renumber_model
from regard.components.importing.token_table import TokenTable
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import read_regular

_MAX_BYTES = 64 << 20  # one of 256,000 tokens has 5 MB
_REMEDY = "Fetch the file again."


def read_tokenizer(path: Path) -> bytes:
    """Read a serialized SentencePiece model.

    Raises:
        UserError: there is no such file, or it is something else.
    """
    try:
        serialized = read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        remedy = "Give the folder of one model with all its files."
        raise NotFoundError("The SentencePiece model does not exist.", str(path), remedy) from None
    except (OSError, ValueError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path)) from None
    renumber(path, serialized)
    return serialized


def ordinary_tokens(serialized: bytes) -> list[str]:
    """Return the tokens of a model, without the special ones, in the order of their ids."""
    return read_vocabulary(renumber_model(serialized))[len(SPECIAL_TOKENS) :]


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
