"""Training of SentencePiece models, and words that are added to them."""

import contextlib
import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sentencepiece

from regard.components.data.text_files import read_lines
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.joiner_rules import REMOVING, joiner_rules, to_table
from regard.components.tokenizer_trainer.normalization_rules import punctuation_splitting_rules
from regard.components.tokenizer_trainer.sampling import MAX_BYTES
from regard.models.vocabulary import BOS, EOS, PAD, SPACE, UNK

# The number of threads changes how sums are rounded, and so the tokens; a fixed number gives the
# same tokenizer on every machine.
_THREADS = 4
_ERRORS_ONLY = 2

_TOO_LARGE = re.compile(r"Vocabulary size too high \(\d+\)\. Please set it to a value <= (\d+)")
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class VocabularySizeError(Exception):
    """The corpus does not suit the size of the vocabulary.

    Args:
        limit: the largest possible size if the size is too large, otherwise the smallest one.
        is_too_large: whether the size is too large.
    """

    def __init__(self, limit: int, is_too_large: bool):
        super().__init__(limit, is_too_large)
        self.limit = limit
        self.is_too_large = is_too_large


@dataclass(frozen=True)
class TrainedTokenizer:
    """A SentencePiece model: the serialized proto, and its tokens with their scores."""

    proto: bytes
    tokens: list[tuple[str, float]]


def train_tokenizer(
    sentences: Iterable[bytes],
    config: TokenizerConfig,
    symbols: Sequence[str] = (),
    keep_joiners: bool = False,
) -> TrainedTokenizer:
    """Train a model with the ids pad 0, unk 1, bos 2, eos 3.

    Args:
        sentences: UTF-8 text without line ends.
        config: the section ``tokenizer``.
        symbols: strings that are always one token, in addition to its ``user_defined_symbols``.
        keep_joiners: whether U+200C stays between letters, which ``nmt_nfkc`` makes a space.

    Raises:
        VocabularySizeError: ``vocab_size`` is less than the characters need, or more than possible
            and ``vocab_limit`` is hard.
        UserError: the file of ``word_list`` cannot be read.
    """
    buffer = io.BytesIO()
    # Added words fill the part of the vocabulary that the corpus does not fill.
    is_hard = config.vocab_limit == "hard" and config.word_list is None
    with _normalization(config, keep_joiners) as rules:
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=buffer,
                model_type=config.type,
                vocab_size=config.vocab_size,
                character_coverage=config.character_coverage,
                hard_vocab_limit=is_hard,
                **rules,
                user_defined_symbols=[*config.user_defined_symbols, *symbols],
                byte_fallback=config.byte_fallback,
                max_sentence_length=MAX_BYTES,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=_THREADS,
                minloglevel=_ERRORS_ONLY,
            )
        except RuntimeError as error:
            for expression in (_TOO_LARGE, _TOO_SMALL):
                if match := expression.search(str(error)):
                    is_too_large = expression is _TOO_LARGE
                    raise VocabularySizeError(int(match[1]), is_too_large) from None
            raise
    model = parse_model(buffer.getvalue())
    # The rules are in the model; the name of their temporary file would differ each time.
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    proto = model.SerializeToString()
    if config.word_list is not None:
        proto = add_words(proto, read_words(config.word_list), config.vocab_size)
    return list_tokens(proto)


def list_tokens(proto: bytes) -> TrainedTokenizer:
    """Return a serialized model with its tokens."""
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = range(model.get_piece_size())
    return TrainedTokenizer(proto, [(model.id_to_piece(i), model.get_score(i)) for i in ids])


@contextlib.contextmanager
def _normalization(config: TokenizerConfig, keep_joiners: bool) -> Iterator[dict[str, Any]]:
    """Yield the trainer's arguments for the normalization."""
    name = config.normalization
    if config.punctuation == "split":
        rules = punctuation_splitting_rules(name, keep_joiners)
    elif keep_joiners and name in REMOVING:
        normalizer = sentencepiece.SentencePieceNormalizer(rule_name=name)
        spec = parse_model(normalizer.serialized_model_proto()).normalizer_spec
        rules = to_table(joiner_rules(spec.precompiled_charsmap))
    else:
        yield {"normalization_rule_name": name}
        return
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        file.write(rules)
        file.flush()
        yield {"normalization_rule_tsv": file.name}


def read_words(path: str) -> Iterator[str]:
    """Yield the first word of each line of a list of words, or of GloVe or word2vec text files.

    Raises:
        UnreadableFile: the file cannot be read.
    """
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split(" ")
        # The first line of word2vec's format holds the numbers of words and dimensions.
        if number > 1 or len(cells) != 2 or not all(map(str.isdecimal, cells)):
            yield cells[0]


def add_words(proto: bytes, words: Iterable[str], size: int) -> bytes:
    """Append words to a model of whole words, up to a number of tokens.

    Each word is normalised as the model does; words that it would cut are left out.
    """
    model = parse_model(proto)
    normalizer = sentencepiece.SentencePieceNormalizer(model_proto=proto)
    known = {piece.piece for piece in model.pieces}
    score = min((piece.score for piece in model.pieces), default=0.0)
    for word in words:
        if len(model.pieces) >= size:
            break
        token = normalizer.normalize(word)
        if token.count(SPACE) == 1 and len(token) > 1 and token not in known:
            known.add(token)
            score -= 1e-3  # less frequent than all before
            model.pieces.add(piece=token, score=score)
    model.trainer_spec.vocab_size = len(model.pieces)
    return model.SerializeToString()


def parse_model(proto: bytes) -> Any:
    """Return SentencePiece's model as a protocol buffer message."""
    # SentencePiece's messages come from a newer protobuf generator than TensorFlow allows. TFX
    # turns protobuf's version check off.
    import tfx  # noqa: F401
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(proto)  # type: ignore[attr-defined]
