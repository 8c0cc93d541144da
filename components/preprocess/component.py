"""Preprocess's specification: TFX Transform with one input more, the tokenizer if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.proto import transform_pb2
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter
from tfx.utils import json_utils

from components.artifacts import Tokenizer
from components.preprocess.executor import Executor

_FUNCTION = "components.preprocess.module.preprocessing_fn"
_SPLITS = ("train", "eval", "test")


class PreprocessSpec(standard_component_specs.TransformSpec):
    """What Preprocess takes and gives."""

    INPUTS = {
        **standard_component_specs.TransformSpec.INPUTS,
        "tokenizer": ChannelParameter(type=Tokenizer, optional=True),
    }


class Preprocess(base_beam_component.BaseBeamComponent):
    """The task's preprocessing as a TensorFlow graph, and the examples that it gives.

    Train is analyzed; train, eval and test are transformed. No statistics are computed here:
    StatisticsGen has those of the text, and the ids have none that say anything.

    Args:
        examples: standard Examples with the splits train, eval and test.
        schema: their schema.
        custom_config: ``task``; ``settings``, what its preprocessing depends on beside the
            examples; and ``code``, the digest of what preprocesses, for the cache.
        tokenizer: what TokenizerTrainer made of the examples; None for a task without text.

    Outputs: ``transform_graph`` (with the tokenizer, if there is one, in its folder
    ``tokenizer``) and ``transformed_examples``.
    """

    SPEC_CLASS = PreprocessSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: types.BaseChannel,
        schema: types.BaseChannel,
        custom_config: Mapping[str, Any],
        tokenizer: types.BaseChannel | None = None,
    ):
        transformed = types.Channel(type=standard_artifacts.Examples)
        transformed.matching_channel_name = "examples"
        super().__init__(
            spec=PreprocessSpec(
                examples=examples,
                schema=schema,
                tokenizer=tokenizer,
                preprocessing_fn=_FUNCTION,
                custom_config=json_utils.dumps(dict(custom_config)),
                splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=_SPLITS),
                force_tf_compat_v1=0,
                disable_statistics=1,
                transform_graph=types.Channel(type=standard_artifacts.TransformGraph),
                transformed_examples=transformed,
            )
        )
