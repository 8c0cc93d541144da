"""The tokenizers of a Transform graph as operations on tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text as text

from regard.components.common.sentencepiece_models import read_sentencepiece_models


def read_tokenizers(folder: str | Path, features: tuple[str, ...]) -> dict[str, Any]:
    """Load the tokenizers of a Transform graph as ``tensorflow_text`` objects.

    Args:
        folder: the folder of the tokenizers.
        features: the names of the text features.
    """
    return create_tokenizers(read_sentencepiece_models(folder, features))


def create_tokenizers(models: Mapping[str, bytes]) -> dict[str, Any]:
    """Create the tokenizers of serialized SentencePiece models, by their text features."""
    return {
        feature: text.SentencepieceTokenizer(
            model=serialized,
            out_type=tf.int32,
            # With the same name, two tokenizers of a SavedModel would share one resource.
            name=f"{feature}_tokenizer",
        )
        for feature, serialized in models.items()
    }


def vocabulary_sizes(tokenizers: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of tokens of each text feature."""
    return {name: int(tokenizer.vocab_size()) for name, tokenizer in tokenizers.items()}
