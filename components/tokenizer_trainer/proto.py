"""SentencePiece's model as the protocol buffer that it is."""

from __future__ import annotations

from typing import Any


def parsed(model: bytes) -> Any:
    """The message; ``SerializeToString`` gives the model again."""
    # SentencePiece's messages come from a newer generator than the protobuf that TensorFlow allows.
    # TFX turns protobuf's check of that off, for its own; whoever trains a tokenizer has it.
    import tfx  # noqa: F401
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
