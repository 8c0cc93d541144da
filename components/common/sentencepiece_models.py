"""The tokenizers of a Transform graph, without TensorFlow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece


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
