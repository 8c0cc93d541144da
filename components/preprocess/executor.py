"""Preprocess's executor: TFX Transform builds the graph, a Beam pipeline applies it."""

from __future__ import annotations

import os

import apache_beam as beam
from apache_beam.utils.shared import Shared
from tfx import types
from tfx.components.transform import executor as transform_executor
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2, transform_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils, proto_utils

from regard.components.common.artifact_files import split_shards
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.preprocess import transform_graph
from regard.core.files import temporary_name


class PreprocessExecutor(transform_executor.Executor):
    """Runs Transform with the tokenizer's folder in ``custom_config``, and copies the tokenizer."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Write the graph and the transformed examples.

        Building the graph reads the examples only if the task's preprocessing analyzes them.
        """
        inputs, outputs = dict(input_dict), dict(output_dict)
        # With this output TFX would transform the examples too, one row at a time. Without it, TFX
        # builds only the graph, and reads no examples if nothing is analyzed.
        transformed = outputs.pop(standard_component_specs.TRANSFORMED_EXAMPLES_KEY)
        tokenizer = inputs.pop("tokenizer", None)
        folder = artifact_utils.get_single_uri(tokenizer) if tokenizer else None
        key = standard_component_specs.CUSTOM_CONFIG_KEY
        config = {**json_utils.loads(exec_properties[key]), transform_graph.TOKENIZER: folder}
        super().Do(inputs, outputs, {**exec_properties, key: json_utils.dumps(config)})
        graph = artifact_utils.get_single_uri(outputs[standard_component_specs.TRANSFORM_GRAPH_KEY])
        if folder is not None:
            _copy_tokenizer(folder, graph)
        splits = transform_pb2.SplitsConfig()
        proto_utils.json_to_proto(
            exec_properties[standard_component_specs.SPLITS_CONFIG_KEY], splits
        )
        self._transform(
            artifact_utils.get_single_instance(inputs[standard_component_specs.EXAMPLES_KEY]),
            artifact_utils.get_single_instance(transformed),
            graph,
            list(splits.transform),
        )

    def _transform(
        self, raw: types.Artifact, transformed: types.Artifact, graph: str, splits: list[str]
    ) -> None:
        """Write a transformed file for each file of the splits."""
        transformed.split_names = artifact_utils.encode_split_names(splits)
        # TFX has no name for Arrow; unspecified, its readers refuse the files.
        examples_utils.set_payload_format(
            transformed, example_gen_pb2.PayloadFormat.FORMAT_UNSPECIFIED
        )
        files: list[tuple[str, str]] = []
        for split in splits:
            shards = split_shards(artifact_utils.get_split_uri([raw], split))
            folder = artifact_utils.get_split_uri([transformed], split)
            fileio.makedirs(folder)
            files += transform_graph.file_pairs(shards, folder)
        try:
            with self._make_beam_pipeline() as pipeline:
                inputs = pipeline | "Files" >> beam.Create(files, reshuffle=len(files) > 1)
                transformer = transform_graph.FileTransformer(graph)
                _ = inputs | "Transform" >> beam.MapTuple(transformer)
        finally:
            # The process holds a shared object until another one is acquired.
            Shared().acquire(lambda: None)


def _copy_tokenizer(tokenizer: str, graph: str) -> None:
    """Store the tokenizer with the graph: training and export need its size."""
    final = os.path.join(graph, "tokenizer")
    temporary = os.path.join(graph, temporary_name("tokenizer"))
    io_utils.copy_dir(tokenizer, temporary)
    fileio.rename(temporary, final, overwrite=True)
