"""TokenizerTrainer's specification: examples in, SentencePiece models out."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common.artifacts import Tokenizer
from regard.components.tokenizer_trainer.executor import Executor


class TokenizerTrainerSpec(ComponentSpec):
    """Parameters, inputs and outputs of TokenizerTrainer."""

    PARAMETERS = {
        "config": ExecutionParameter(type=str),
        "features": ExecutionParameter(type=str),
        "word_list_digest": ExecutionParameter(type=str),
        "seed": ExecutionParameter(type=int),
        "code": ExecutionParameter(type=str),
    }
    INPUTS = {"examples": ChannelParameter(type=standard_artifacts.Examples)}
    OUTPUTS = {"tokenizer": ChannelParameter(type=Tokenizer)}


class TokenizerTrainer(base_beam_component.BaseBeamComponent):
    """Train one SentencePiece model for each text feature, or one for all, on the train split.

    Args:
        examples: standard Examples with a split ``train``.
        config: the section ``tokenizer`` as JSON.
        features: the names of the text features as a JSON list.
        word_list_digest: the digest of ``tokenizer.word_list``, for the cache; empty without one.
        seed: the seed of the sample, which ``tokenizer.input_sentence_size`` limits.
        code: the digest of this component's code, for the cache.

    Outputs: ``tokenizer`` (``<feature>.model``, ``<feature>.vocab``, ``tokenizer.json``).
    """

    SPEC_CLASS = TokenizerTrainerSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        config: str,
        features: str,
        word_list_digest: str,
        seed: int,
        code: str,
    ):
        super().__init__(
            spec=TokenizerTrainerSpec(
                examples=examples,
                config=config,
                features=features,
                word_list_digest=word_list_digest,
                seed=seed,
                code=code,
                tokenizer=types.Channel(type=Tokenizer),
            )
        )
