"""The TokenizerTrainer as a TFX component."""

from __future__ import annotations

from tfx.types.standard_artifacts import Examples

from regard.components.common.artifacts import Tokenizer
from regard.components.common.component import Component
from regard.components.tokenizer_trainer.executor import Executor


class TokenizerTrainer(Component):
    """Train one SentencePiece model for each text feature, or one for all, on the train split.

    Args:
        examples: standard Examples with a split ``train``.
        config: the section ``tokenizer`` as JSON.
        features: the names of the text features as a JSON list.
        word_list_digest: the digest of ``tokenizer.word_list``, for the cache; empty without one.
        seed: the seed of the sample, which ``tokenizer.input_sentence_size`` limits.

    Outputs: ``tokenizer`` (``<feature>.model``, ``<feature>.vocab``, ``tokenizer.json``).
    """

    EXECUTOR = Executor
    PARAMETERS = {"config": str, "features": str, "word_list_digest": str, "seed": int}
    INPUTS = {"examples": Examples}
    OUTPUTS = {"tokenizer": Tokenizer}
