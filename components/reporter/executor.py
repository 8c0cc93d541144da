"""The Reporter's work: gather what there is, and write the page."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from components import events, parameters, provenance
from components.files import atomic_write
from components.reporter.facts import ARTIFACTS, About, Facts, Node
from components.reporter.page import render

NODE = "Reporter"
FILE = "report.html"


class ReporterExecutor(BaseExecutor):
    """Writes ``report.html``."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Makes the page; what is not there is left out of it."""
        folders = {
            name: Path(artifact_utils.get_single_uri(input_dict[name]))
            for name in ARTIFACTS
            if input_dict.get(name)
        }
        known = json.loads(exec_properties["about"])
        known["config"] = parameters.applied(known["config"], exec_properties)
        code = {"regard": " ".join(provenance.code_version().values())}
        versions = {**code, **provenance.stack_versions()}
        about = About(**known, versions=versions, nodes=nodes_told())
        path = Path(artifact_utils.get_single_uri(output_dict["report"])) / FILE
        text = render(Facts(about, folders))
        atomic_write(path, text)
        events.emit("note", node=NODE, text=f"{path} ({len(text.encode()) / 1e6:.1f} MB)")


def nodes_told() -> list[Node]:
    """The nodes that have ended in this run, as its events tell; none where nobody keeps them."""
    path = os.environ.get(events.VARIABLE, "")
    ended = [
        event
        for event, _ in (events.read(path) if path else ())
        if event["kind"] == "node" and event.get("state") != "running"
    ]
    return [
        Node(event["node"], event["state"], event.get("seconds"), event.get("peak_bytes"))
        for event in ended
    ]
