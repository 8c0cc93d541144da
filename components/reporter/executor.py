"""The Reporter's executor: collect the artifacts, and write the page."""

import json
import os
from pathlib import Path

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils

from regard.components.common import run_progress, runtime_parameters
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.common.run_record import RunRecord
from regard.components.reporter import page
from regard.components.reporter.run_facts import ARTIFACTS, RunFacts
from regard.core import events, provenance

NODE = "Reporter"
FILE = "report.html"


class ReporterExecutor(BaseExecutor):
    """Writes ``report.html``, and ``report.differences.html`` if there is a model in production."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Write the page; sections without an artifact are omitted."""
        folders = {
            name: Path(artifact_utils.get_single_uri(input_dict[name]))
            for name in ARTIFACTS
            if input_dict.get(name)
        }
        about = json.loads(exec_properties["about"])
        config = runtime_parameters.apply_parameters(about["config"], exec_properties)
        run = _current_run(about["name"], about["fingerprint"])
        file = Path(artifact_utils.get_single_uri(output_dict["report"])) / FILE
        page.write(file, RunFacts(run, folders, about["task"], config))
        megabytes = file.stat().st_size / 1e6
        events.emit("result", node=NODE, text=f"{file} ({megabytes:.1f} MB)")


def _current_run(name: str, fingerprint: str) -> RunRecord:
    """The run that executes this node, with the nodes that have ended."""
    state = run_progress.read(Path(os.environ.get(events.VARIABLE) or os.devnull))
    return RunRecord(
        name=name,
        data_fingerprint=fingerprint,
        started=state.started,
        regard=provenance.code_version(),
        stack=provenance.stack_versions(),
        nodes={node.name: node for node in state.nodes.values() if node.has_ended},
    )
