"""The Reporter's executor: collect the artifacts, and write the page."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils

from regard.components.common import runtime_parameters
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.reporter.page import render
from regard.components.reporter.run_facts import ARTIFACTS, NodeFacts, RunFacts, RunInfo
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
        about["config"] = runtime_parameters.apply_parameters(about["config"], exec_properties)
        code = {"regard": " ".join(provenance.code_version().values())}
        versions = {**code, **provenance.stack_versions()}
        path = os.environ.get(events.VARIABLE, "")
        read = [event for event, _ in (events.read(path) if path else ())]
        started = read[0]["time"] if read else None
        info = RunInfo(**about, started=started, versions=versions, nodes=_ended_nodes(read))
        file = Path(artifact_utils.get_single_uri(output_dict["report"])) / FILE
        text = render(RunFacts(info, folders))
        atomic_write(file, text)
        events.emit("note", node=NODE, text=f"{file} ({len(text.encode()) / 1e6:.1f} MB)")


def _ended_nodes(run_events: Sequence[events.Event]) -> list[NodeFacts]:
    """The nodes that have ended in this run, from its events."""
    return [
        NodeFacts(event["node"], event["state"], event.get("seconds"), event.get("peak_bytes"))
        for event in run_events
        if event["kind"] == "node" and event.get("state") != "running"
    ]
