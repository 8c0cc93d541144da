"""New ids for the tokens of a SentencePiece model, which segments as before.

The order of the tokens of a model has no meaning for its segmentation; only their texts, scores
and types do (see ``unigram_model.cc`` and ``bpe_model.cc`` in SentencePiece).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from regard.components.common.sentencepiece_models import (
    BPE,
    BYTE,
    CHAR,
    CONTROL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    parse_model_fields,
)
from regard.models.vocabulary import BOS, EOS, PAD, UNK

# The texts of the ids 0 to 3.
SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")
_UNUSED_GAP = 1.0  # between the lowest score and that of unused tokens


def renumber_model(
    serialized: bytes, tokens: Sequence[str] | None = None, symbols: Sequence[str] = ()
) -> bytes:
    """Return a model with the ids pad 0, unk 1, bos 2, eos 3, and the same segmentation.

    The special tokens are named ``<pad>``, ``<unk>``, ``<s>`` and ``</s>``; the surface of unknown
    text stays as it is. The model's own pad, bos and eos tokens are left out. Everything else that
    the model contains, such as its normalization, is unchanged.

    Args:
        serialized: a serialized SentencePiece model.
        tokens: a table of tokens in the order of their ids, without the special ones, for example
            of a ``vocab.json``; the new ids follow it from 4. A token that is not in the model
            becomes an unused one. The tokens of the model that the table lacks follow at the end,
            since they take part in the segmentation. None: all tokens in the order of the model.
        symbols: strings that are always one token. Those that exist already keep their ids, and
            the others are added at the end.

    Raises:
        ValueError: the bytes are no SentencePiece model, the model does not have exactly one
            unknown token, or a token or symbol is empty, listed twice, contains a zero character,
            or has the name of a special token.
    """
    try:
        model = parse_model_fields(serialized)
    except DecodeError as error:
        raise ValueError("these bytes are no SentencePiece model") from error
    pieces = list(model.pieces)
    unknown = [piece for piece in pieces if piece.type == UNKNOWN]
    if len(unknown) != 1:
        raise ValueError(f"the model has {len(unknown)} unknown tokens instead of one")
    by_text = _ordinary_pieces(model)
    lowest = min((piece.score for piece in by_text.values()), default=0.0) - _UNUSED_GAP
    renumbered = type(model)()
    renumbered.CopyFrom(model)
    del renumbered.pieces[:]
    for token_id, text in enumerate(SPECIAL_TOKENS):
        piece = renumbered.pieces.add()
        if token_id == UNK:
            piece.CopyFrom(unknown[0])
        else:
            piece.type = CONTROL
            piece.score = 0.0
        piece.piece = text
    if tokens is not None:
        _check_texts(tokens, "token")
        _add_table(renumbered, tokens, by_text, lowest)
        listed = set(tokens)
        by_text = {text: piece for text, piece in by_text.items() if text not in listed}
    renumbered.pieces.extend(by_text.values())
    _add_symbols(renumbered, symbols)
    _set_special_ids(renumbered.trainer_spec, len(renumbered.pieces))
    result: bytes = renumbered.SerializeToString(deterministic=True)
    return result


def _ordinary_pieces(model: Any) -> dict[str, Any]:
    """Return the tokens of a model by their texts, without its special ones.

    Raises:
        ValueError: a text is empty or invalid, two tokens have it, or it is that of a special
            token.
    """
    spec = model.trainer_spec
    special = {spec.pad_piece, spec.bos_piece, spec.eos_piece, *SPECIAL_TOKENS}
    ordinary: dict[str, Any] = {}
    earlier = set()
    for piece in model.pieces:
        text = piece.piece
        if not isinstance(text, str):  # protobuf returns invalid UTF-8 as bytes
            raise ValueError(f"the token {text!r} of the model is not UTF-8")
        if not text or text in earlier:
            raise ValueError(f"the model has an empty token or two tokens {text!r}")
        earlier.add(text)
        if piece.type == UNKNOWN or (piece.type == CONTROL and text in special):
            continue
        if text in SPECIAL_TOKENS:
            raise ValueError(f"{text!r} is an ordinary token of the model, not a special token")
        ordinary[text] = piece
    return ordinary


def _check_texts(texts: Iterable[str], kind: str) -> None:
    """Raise a ``ValueError`` for a text that no further token can have."""
    earlier = set()
    for text in texts:
        if not text:
            raise ValueError(f"a {kind} is empty")
        if "\0" in text:
            raise ValueError(f"the {kind} {text!r} contains the character zero")
        if text in earlier:
            raise ValueError(f"the {kind} {text!r} is listed twice")
        if text in SPECIAL_TOKENS:
            raise ValueError(f"the {kind} {text!r} has the name of a special token")
        earlier.add(text)


def _add_table(model: Any, tokens: Sequence[str], by_text: dict[str, Any], lowest: float) -> None:
    """Add the tokens of a table; those that the model lacks take no part in the segmentation."""
    kind = model.trainer_spec.model_type
    for token_id, text in enumerate(tokens, EOS + 1):
        piece = model.pieces.add()
        if text in by_text:
            piece.CopyFrom(by_text[text])
            continue
        piece.score = lowest
        if _can_be_produced(text, kind, by_text):
            # A token with this text would change the segmentation. The id stays, without its text.
            piece.piece, piece.type = f"<absent {token_id}>", CONTROL
        else:
            piece.piece, piece.type = text, UNUSED


def _can_be_produced(text: str, kind: int, pieces: dict[str, Any]) -> bool:
    """Return whether an unused token with a text would change how a model segments.

    A unigram model skips unused tokens. BPE merges them and splits them again, but other merges
    may follow a merge, and single characters cannot be split. Words and characters are only looked
    up.
    """
    if kind == UNIGRAM:
        return False
    if kind == BPE:
        return len(text) == 1 or any(
            _is_symbol(text[:end], pieces) and _is_symbol(text[end:], pieces)
            for end in range(1, len(text))
        )
    return len(text) == 1 if kind == CHAR else True


def _is_symbol(text: str, pieces: dict[str, Any]) -> bool:
    """Return whether merges of BPE can start from a text, or result in it."""
    return len(text) == 1 or text in pieces


def _add_symbols(model: Any, symbols: Sequence[str]) -> None:
    """Make some strings user-defined tokens of a model."""
    _check_texts(symbols, "symbol")
    by_text = {piece.piece: piece for piece in model.pieces} if symbols else {}
    defined = set(model.trainer_spec.user_defined_symbols)
    for text in symbols:
        piece = by_text.get(text)
        if piece is not None and piece.type == BYTE:
            raise ValueError(f"the symbol {text!r} has the name of a byte of the model")
        if piece is None:
            piece = model.pieces.add(piece=text)
        piece.type = USER_DEFINED
        piece.score = 0.0  # as SentencePiece's training sets it
        if text not in defined:
            model.trainer_spec.user_defined_symbols.append(text)


def _set_special_ids(spec: Any, size: int) -> None:
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, BOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIAL_TOKENS
    spec.vocab_size = size
