"""The Tuner's executor: runs the search and writes the table of all trials."""

import json
from pathlib import Path
from typing import Any

from tfx.components.tuner import executor
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils, standard_component_specs

from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.tuner.trial_table import TrialTable, rank_trials
from regard.core.files import atomic_write


class Executor(base_executor.BaseExecutor):
    """Runs a search.

    In addition to TFX's outputs, ``tuner_results`` contains ``trials.json`` with all trials,
    including failed ones.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Run the search."""
        tuner: Any = executor.search(
            input_dict, exec_properties, self._get_tmp_dir(), print_tuning_summary=False
        )
        executor.write_best_hyperparameters(tuner, output_dict)
        uri = artifact_utils.get_single_uri(output_dict[standard_component_specs.TUNER_RESULTS_KEY])
        objective = tuner.oracle.objective
        table: TrialTable = {
            "objective": objective.name,
            "direction": objective.direction,
            "algorithm": tuner.tune.algorithm,
            "folder": tuner.project_dir,
            "trials": rank_trials(tuner.rows(), objective.direction),
        }
        atomic_write(Path(uri, "trials.json"), json.dumps(table, indent=2, ensure_ascii=False))
