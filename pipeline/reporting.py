"""The report of a run of the run store, and its pictures as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from components import predictions
from components.pictures import save, style
from components.reporter import attention, figures, images, page
from components.reporter.facts import ARTIFACTS, About, Facts, Node
from components.reporter.ranking import ranked
from components.words import size
from pipeline import look_picture, progress, runs
from pipeline.nodes import NODES
from pipeline.progress import Progress
from pipeline.runs import Run

FILE = "report.html"
FORMATS = ("svg", "png")


def facts_of(run: Run) -> Facts:
    """What there is to report of a run, whichever way it ended."""
    record, config = run.record(), run.settings()
    state, status = progress.read(run.events), runs.status(run)
    if status != runs.RUNNING:
        state.stop()  # a run that was killed left a node that seems to be at work
    folders = {
        name: Path(uri)
        for name, (node, key) in ARTIFACTS.items()
        if (uri := state.outputs(node).get(key)) and Path(uri).is_dir()
    }
    about = About(
        name=str(record.get("name", run.name)),
        task=str(config.get("task", "")),
        config=config,
        fingerprint=str(record.get("data_fingerprint") or ""),
        run=run.id,
        status=status,
        failure=record.get("failure") or {},
        command=str(record.get("command", "")),
        versions=_versions(record),
        machine=_machine(record.get("machine") or {}),
        nodes=_nodes(state),
    )
    return Facts(about, folders)


def write(run: Run, path: Path) -> Facts:
    """Writes the page about a run as a whole, and returns what it is made of."""
    from components.files import atomic_write

    facts = facts_of(run)
    atomic_write(path, page.render(facts))
    return facts


def write_figures(facts: Facts, folder: Path) -> tuple[list[Path], bool]:
    """Draws every figure of a report, and the looks of its examples, as SVG and PNG.

    Args:
        facts: of the run.
        folder: made if it is not there.

    Returns:
        The files, in the order of the page, and whether there was a font for every sign.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole: dict[Path, bool] = {}
    with style(page.DRAWING):
        for picture in figures.draw(facts, attention.measure(facts)):
            axes = picture.figure.axes[0]
            axes.set_title(picture.title, loc="left")
            whole |= _both(picture.figure, folder / picture.name)
    whole |= _looks(facts, folder)
    return list(whole), all(whole.values())


def _looks(facts: Facts, folder: Path) -> dict[Path, bool]:
    """Where the model looked in the examples of the page."""
    path, contract = facts.table, facts.predicted.get("contract", {})
    if path is None or not contract.get("looks"):
        return {}
    whole: dict[Path, bool] = {}
    for group, rows in ranked(facts).groups.items():
        for number, row in enumerate(predictions.rows_at(path, rows), 1):
            figure = _look(row, contract, facts.about.config)
            if figure is not None:
                with style(look_picture.STYLE):
                    whole |= _both(figure, folder / f"look-{group}-{number}")
    return whole


def _look(row: Mapping[str, Any], contract: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    """One row's look; None where the row or its image has nothing to draw."""
    looks = contract["looks"]
    if not row.get(looks["weights"]):
        return None
    outputs = {**row, contract["answer"]: row["hypothesis"]}
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    asked: dict[str, Any] = {name: row[name] for name in kinds}
    for name, kind in kinds.items():
        if kind == "image":
            asked[name] = images.jpeg(row[name], config)
            if asked[name] is None:
                return None
    outputs[looks["weights"]] = np.asarray(outputs[looks["weights"]], "float64")
    return look_picture.drawn(contract, asked, outputs)


def _both(figure: Any, stem: Path) -> dict[Path, bool]:
    """Writes a figure in both formats; each file with whether there was a font for every sign."""
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
    return {path: save(figure, path) for path in files}


def _versions(record: Mapping[str, Any]) -> dict[str, str]:
    own = {"regard": " ".join(record["regard"].values())} if record.get("regard") else {}
    return {**own, **(record.get("stack") or {})}


def _machine(found: Mapping[str, Any]) -> str:
    parts = [found.get("system", ""), f"{found['cores']} cores" if "cores" in found else ""]
    if "memory_bytes" in found:
        parts.append(size(found["memory_bytes"]))
    return ", ".join(filter(None, [*parts, *found.get("gpus", [])]))


def _nodes(state: Progress) -> list[Node]:
    places = {name: place for place, name in enumerate(NODES)}
    known = sorted(state.nodes.values(), key=lambda node: places.get(node.name, len(places)))
    return [Node(n.name, n.state, n.seconds, n.peak_bytes) for n in known]
