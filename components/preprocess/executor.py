"""Preprocess's executor: TFX Transform builds the graph, a Beam pipeline applies it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import apache_beam as beam
from apache_beam.utils.shared import Shared
from tfx import types
from tfx.components.transform import executor as transform_executor
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2, transform_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils, proto_utils

from regard.components.common.artifact_files import examples_split, split_shards
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.preprocess import transform_graph
from regard.core.files import temporary_name

# What TFX's readers repeat in their errors as the format of the files.
ROW_FORMAT = "rows of Regard's Preprocess, for regard.components.tf_dataset"


class PreprocessExecutor(transform_executor.Executor):
    """Runs Transform with the tokenizer's folder in ``custom_config``, and copies the tokenizer."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Write the graph and the transformed examples.

        Building the graph reads the examples only if the task's preprocessing analyzes them.

        Raises:
            UserError: the examples lack a feature or a split, or have another format.
        """
        inputs, outputs = dict(input_dict), dict(output_dict)
        examples = artifact_utils.get_single_instance(inputs[standard_component_specs.EXAMPLES_KEY])
        splits = _splits(examples, exec_properties[standard_component_specs.SPLITS_CONFIG_KEY])
        files = {split: split_shards(examples_split(examples, split)) for split in splits}
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
        self._transform(files, artifact_utils.get_single_instance(transformed), graph)

    def _transform(
        self, raw: Mapping[str, list[str]], transformed: types.Artifact, graph: str
    ) -> None:
        """Write a transformed file for each file of the splits."""
        transformed.split_names = artifact_utils.encode_split_names(list(raw))
        # TFX has no name for Arrow; unspecified, its readers refuse the files.
        examples_utils.set_payload_format(
            transformed, example_gen_pb2.PayloadFormat.FORMAT_UNSPECIFIED
        )
        examples_utils.set_file_format(transformed, ROW_FORMAT)
        files: list[tuple[str, str]] = []
        for split, shards in raw.items():
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


def _splits(examples: types.Artifact, splits_config: str) -> list[str]:
    """Return the splits to transform: those of the configuration, by default all."""
    config = transform_pb2.SplitsConfig()
    proto_utils.json_to_proto(splits_config, config)
    return list(config.transform) or artifact_utils.decode_split_names(examples.split_names)


def _copy_tokenizer(tokenizer: str, graph: str) -> None:
    """Store the tokenizer with the graph: training and export need its size."""
    final = os.path.join(graph, "tokenizer")
    temporary = os.path.join(graph, temporary_name("tokenizer"))
    io_utils.copy_dir(tokenizer, temporary)
    fileio.rename(temporary, final, overwrite=True)
