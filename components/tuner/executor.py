"""The Tuner's work: TFX's own search, and the table of all trials beside TFX's results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components.tuner import executor
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact

from components.files import atomic_write
from components.tuner.ranking import as_csv, ranked

TABLE = "trials"


class Executor(base_executor.BaseExecutor):
    """Searches, and writes what was found.

    Outputs beside TFX's own: ``trials.json`` and ``trials.csv`` in ``tuner_results``, with the
    trials that failed.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Runs the search."""
        tuner: Any = executor.search(
            input_dict, exec_properties, self._get_tmp_dir(), print_tuning_summary=False
        )
        executor.write_best_hyperparameters(tuner, output_dict)
        uri = artifact_utils.get_single_uri(output_dict[standard_component_specs.TUNER_RESULTS_KEY])
        rows, direction = tuner.trials.rows(), tuner.tune["direction"]
        told = {
            "objective": tuner.tune["objective"],
            "direction": direction,
            "algorithm": tuner.tune["algorithm"],
            "folder": str(tuner.folder),
            "trials": ranked(rows, direction),
        }
        atomic_write(Path(uri, f"{TABLE}.json"), json.dumps(told, indent=2, ensure_ascii=False))
        atomic_write(Path(uri, f"{TABLE}.csv"), as_csv(rows, direction))
