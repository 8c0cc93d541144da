"""The tokenizers of a Transform graph, without TensorFlow."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_SPACE = "\u2581"
# ModelProto.SentencePiece.Type
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# TrainerSpec.ModelType
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
MODEL_TYPES = {UNIGRAM: "unigram", BPE: "bpe", WORD: "word", CHAR: "char"}
# The fields that are read or written here: number, type and default. Others stay as they are.
_TOKEN_FIELDS = {
    "piece": (1, "STRING", None),
    "score": (2, "FLOAT", None),
    "type": (3, "INT32", NORMAL),
}
_TRAINER_FIELDS = {
    "model_type": (3, "INT32", UNIGRAM),
    "vocab_size": (4, "INT32", 8000),
    "treat_whitespace_as_suffix": (24, "BOOL", None),
    "user_defined_symbols": (31, "STRING", None),
    "byte_fallback": (35, "BOOL", None),
    "unk_id": (40, "INT32", 0),
    "bos_id": (41, "INT32", 1),
    "eos_id": (42, "INT32", 2),
    "pad_id": (43, "INT32", -1),
    "unk_piece": (45, "STRING", "<unk>"),
    "bos_piece": (46, "STRING", "<s>"),
    "eos_piece": (47, "STRING", "</s>"),
    "pad_piece": (48, "STRING", "<pad>"),
}
_NORMALIZER_FIELDS = {
    "name": (1, "STRING", None),
    "precompiled_charsmap": (2, "BYTES", None),
    "add_dummy_prefix": (3, "BOOL", "true"),
    "remove_extra_whitespaces": (4, "BOOL", "true"),
    "escape_whitespaces": (5, "BOOL", "true"),
}
_REPEATED = ("user_defined_symbols",)


def read_sentencepiece_models(folder: str | Path, features: Sequence[str]) -> dict[str, bytes]:
    """Read the tokenizers of a Transform graph as serialized SentencePiece models.

    Args:
        folder: the folder of the tokenizers.
        features: the names of the text features.
    """
    return {feature: Path(folder, f"{feature}.model").read_bytes() for feature in features}


def create_processors(models: Mapping[str, bytes]) -> dict[str, Any]:
    """Create the ``SentencePieceProcessor`` of serialized models, by their text features."""
    return {
        feature: sentencepiece.SentencePieceProcessor(model_proto=serialized)
        for feature, serialized in models.items()
    }


def symbols_of(model: bytes) -> tuple[str, ...]:
    """Return the strings that are always one token of a serialized model, such as tags."""
    entries = parse_model_fields(model).pieces
    texts = (
        entry.piece.replace(_SPACE, " ").strip() for entry in entries if entry.type == USER_DEFINED
    )
    return tuple(dict.fromkeys(filter(None, texts)))


def parse_model_fields(model: bytes) -> Any:
    """Return a serialized model as a message with the fields that Regard uses.

    The message keeps the other fields, so that it can be serialized again.

    Raises:
        google.protobuf.message.DecodeError: the bytes are no protocol buffer message of this kind.
    """
    return _model_message().FromString(model)


@functools.cache
def _model_message() -> Any:
    """Return the class of SentencePiece's ModelProto, with the fields that are used here.

    SentencePiece's own module needs a newer runtime of protobuf than TensorFlow allows.
    """
    package = "regard_tokens"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package)
    _add_message(file, "Token", _TOKEN_FIELDS)
    _add_message(file, "Trainer", _TRAINER_FIELDS)
    _add_message(file, "Normalizer", _NORMALIZER_FIELDS)
    model = file.message_type.add(name="Model")
    field = descriptor_pb2.FieldDescriptorProto
    parts = [
        ("pieces", 1, "Token", field.LABEL_REPEATED),
        ("trainer_spec", 2, "Trainer", field.LABEL_OPTIONAL),
        ("normalizer_spec", 3, "Normalizer", field.LABEL_OPTIONAL),
    ]
    for name, number, kind, label in parts:
        type_name = f".{package}.{kind}"
        model.field.add(
            name=name, number=number, type=field.TYPE_MESSAGE, type_name=type_name, label=label
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Model"))


def _add_message(
    file: descriptor_pb2.FileDescriptorProto, name: str, fields: Mapping[str, tuple[int, str, Any]]
) -> None:
    field = descriptor_pb2.FieldDescriptorProto
    message = file.message_type.add(name=name)
    for key, (number, kind, default) in fields.items():
        label = field.LABEL_REPEATED if key in _REPEATED else field.LABEL_OPTIONAL
        kind_number = field.Type.Value(f"TYPE_{kind}")
        added = message.field.add(name=key, number=number, type=kind_number, label=label)
        if default is not None:
            added.default_value = str(default)
