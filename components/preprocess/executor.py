"""Preprocess's work: TFX Transform, told where the tokenizer is."""

from __future__ import annotations

import os
from typing import Any

from tfx import types
from tfx.components.transform import executor as transform_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils

from components.preprocess.module import TOKENIZER


class Executor(transform_executor.Executor):
    """Runs Transform with the tokenizer's folder in ``custom_config``, then keeps a copy of it.

    A task without text has no tokenizer, and nothing to copy.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes the graph and the transformed examples."""
        inputs = dict(input_dict)
        tokenizer = inputs.pop("tokenizer", None)
        folder = artifact_utils.get_single_uri(tokenizer) if tokenizer else None
        key = standard_component_specs.CUSTOM_CONFIG_KEY
        config = {**json_utils.loads(exec_properties[key]), TOKENIZER: folder}
        super().Do(inputs, output_dict, {**exec_properties, key: json_utils.dumps(config)})
        if folder is None:
            return
        graph = artifact_utils.get_single_uri(
            output_dict[standard_component_specs.TRANSFORM_GRAPH_KEY]
        )
        # Whoever has the graph has its tokenizer: training and export need the piece counts.
        final = os.path.join(graph, "tokenizer")
        temporary = os.path.join(graph, ".tokenizer.tmp")
        if fileio.exists(temporary):
            fileio.rmtree(temporary)
        io_utils.copy_dir(folder, temporary)
        fileio.rename(temporary, final, overwrite=True)
