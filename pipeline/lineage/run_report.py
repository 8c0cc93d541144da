"""The report of a run in the run store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.components.reporter import page
from regard.components.reporter.run_facts import ARTIFACTS, NodeFacts, RunFacts, RunInfo
from regard.core.files import atomic_write
from regard.core.formatting import format_bytes, format_count
from regard.pipeline import progress, run_store
from regard.pipeline.config.config import ALL_NODES
from regard.pipeline.progress import Progress
from regard.pipeline.run_store import Run


def read_facts(run: Run) -> RunFacts:
    """Collect the facts about a run, whether it succeeded or not."""
    record, config = run.record(), run.settings()
    state, status = progress.read(run.events), run_store.status(run)
    if status != run_store.RUNNING:
        state.stop()  # after a kill, the events still list a running node
    folders = {
        name: Path(uri)
        for name, (node, key) in ARTIFACTS.items()
        if (uri := state.outputs(node).get(key)) and Path(uri).is_dir()
    }
    info = RunInfo(
        name=str(record.get("name", run.name)),
        task=str(config.get("task", "")),
        config=config,
        fingerprint=str(record.get("data_fingerprint") or ""),
        run=run.id,
        started=record.get("started"),
        status=status,
        failure=record.get("failure") or {},
        command=str(record.get("command", "")),
        versions=_versions(record),
        machine=_describe_machine(record.get("machine") or {}),
        nodes=_nodes(state),
    )
    return RunFacts(info, folders)


def write_report(run: Run, path: Path) -> None:
    """Write the page of a run atomically."""
    atomic_write(path, page.render(read_facts(run)))


def _versions(record: Mapping[str, Any]) -> dict[str, str]:
    code = {"regard": " ".join(record["regard"].values())} if record.get("regard") else {}
    return {**code, **(record.get("stack") or {})}


def _describe_machine(machine: Mapping[str, Any]) -> str:
    parts = [
        machine.get("system", ""),
        format_count(machine["cores"], "core") if "cores" in machine else "",
    ]
    if "memory_bytes" in machine:
        parts.append(format_bytes(machine["memory_bytes"]))
    return ", ".join(filter(None, [*parts, *machine.get("gpus", [])]))


def _nodes(state: Progress) -> list[NodeFacts]:
    order = {name: position for position, name in enumerate(ALL_NODES)}
    nodes = sorted(state.nodes.values(), key=lambda node: order.get(node.name, len(order)))
    return [NodeFacts(n.name, n.state, n.seconds, n.peak_bytes) for n in nodes]
