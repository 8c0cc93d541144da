"""The Reporter's executor: collect the artifacts, and write the page."""

import json
import os
from pathlib import Path

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils

from regard.components.common import run_progress, runtime_parameters
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.common.run_record import RunRecord
from regard.components.reporter.page import render
from regard.components.reporter.run_facts import ARTIFACTS, RunFacts
from regard.core import events, provenance
from regard.core.files import atomic_write

NODE = "Reporter"
FILE = "report.html"


class ReporterExecutor(BaseExecutor):
    """Writes ``report.html``."""

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
        text = render(RunFacts(run, folders, about["task"], config))
        atomic_write(file, text)
        events.emit("result", node=NODE, text=f"{file} ({len(text.encode()) / 1e6:.1f} MB)")


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
