"""Preprocess as a TFX component: TFX's Transform, with the tokenizer as an optional input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.proto import transform_pb2
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Examples, Schema, TransformGraph
from tfx.utils import json_utils

from regard.components.common.artifacts import Tokenizer
from regard.components.common.component import Component
from regard.components.preprocess.executor import Executor

_FUNCTION = "regard.components.preprocess.transform_graph.preprocessing_fn"
_SPLITS = ("train", "eval", "test")


class Preprocess(Component):
    """Build the task's preprocessing as a TensorFlow graph, and transform the examples with it.

    The train split is analyzed; train, eval and test are transformed. No statistics are computed:
    StatisticsGen has those of the text, and statistics of ids would be meaningless.

    Args:
        examples: standard Examples with the splits train, eval and test.
        schema: their schema.
        tokenizer: from TokenizerTrainer; None for a task without text.
        custom_config: ``task``, and ``settings``, what its preprocessing depends on apart from the
            examples.
        code: the digest of the preprocessing code, for the cache.

    Outputs: ``transform_graph`` (with the tokenizer, if there is one, in its folder
    ``tokenizer``) and ``transformed_examples``.
    """

    EXECUTOR = Executor
    PARAMETERS = {
        "preprocessing_fn": str,
        "custom_config": str,
        "splits_config": transform_pb2.SplitsConfig,
        "force_tf_compat_v1": int,
        "disable_statistics": int,
    }
    INPUTS = {"examples": Examples, "schema": Schema}
    OPTIONAL_INPUTS = {"tokenizer": Tokenizer}
    OUTPUTS = {"transform_graph": TransformGraph, "transformed_examples": Examples}

    def __init__(self, custom_config: Mapping[str, object], **arguments: Any):
        transformed = Channel(type=Examples)
        transformed.matching_channel_name = "examples"
        super().__init__(
            preprocessing_fn=_FUNCTION,
            custom_config=json_utils.dumps(dict(custom_config)),
            splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=_SPLITS),
            force_tf_compat_v1=0,
            disable_statistics=1,
            transformed_examples=transformed,
            **arguments,
        )
