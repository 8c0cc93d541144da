"""The tokenizers of a Transform graph, without TensorFlow."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_SPACE = "\u2581"
_USER_DEFINED = 4  # ModelProto.SentencePiece.Type


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
    entries = _model_message().FromString(model).pieces
    texts = (
        entry.piece.replace(_SPACE, " ").strip() for entry in entries if entry.type == _USER_DEFINED
    )
    return tuple(dict.fromkeys(filter(None, texts)))


@functools.cache
def _model_message() -> Any:
    """Return the class of SentencePiece's ModelProto, with the fields that are read here.

    SentencePiece's own module needs a newer runtime of protobuf than TensorFlow allows.
    """
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="regard_tokens.proto", package="regard_tokens")
    token = file.message_type.add(name="Token")
    token.field.add(name="piece", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    token.field.add(name="type", number=3, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    file.message_type.add(name="Model").field.add(
        name="pieces",
        number=1,
        type=field.TYPE_MESSAGE,
        type_name=".regard_tokens.Token",
        label=field.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("regard_tokens.Model"))
