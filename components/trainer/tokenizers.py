"""The tokenizers of a training, as Preprocess has stored them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece


def read_sentencepiece_models(folder: str | Path, features: Sequence[str]) -> dict[str, bytes]:
    """Read the tokenizers of a Transform graph as serialized SentencePiece models."""
    return {feature: Path(folder, f"{feature}.model").read_bytes() for feature in features}


def create_processors(models: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the tokenizers of serialized SentencePiece models, which need no TensorFlow."""
    return {
        feature: sentencepiece.SentencePieceProcessor(model_proto=serialized)
        for feature, serialized in models.items()
    }
