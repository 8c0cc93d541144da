"""Preprocess's specification: that of TFX Transform, with the tokenizer as an optional input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.proto import transform_pb2
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter
from tfx.utils import json_utils

from regard.components.common.artifacts import Tokenizer
from regard.components.preprocess.executor import Executor

_FUNCTION = "regard.components.preprocess.transform_graph.preprocessing_fn"
_SPLITS = ("train", "eval", "test")


class PreprocessSpec(standard_component_specs.TransformSpec):
    """Parameters, inputs and outputs of Preprocess."""

    INPUTS = {
        **standard_component_specs.TransformSpec.INPUTS,
        "tokenizer": ChannelParameter(type=Tokenizer, optional=True),
    }


class Preprocess(base_beam_component.BaseBeamComponent):
    """Build the task's preprocessing as a TensorFlow graph, and transform the examples with it.

    The train split is analyzed; train, eval and test are transformed. No statistics are computed:
    StatisticsGen has those of the text, and statistics of ids would be meaningless.

    Args:
        examples: standard Examples with the splits train, eval and test.
        schema: their schema.
        custom_config: ``task``; ``settings``, what its preprocessing depends on apart from the
            examples; and ``code``, the digest of the preprocessing code, for the cache.
        tokenizer: from TokenizerTrainer; None for a task without text.

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
