"""The report of a run in the run store."""

from pathlib import Path

from regard.components.common.run_record import RUNNING
from regard.components.reporter import page
from regard.components.reporter.run_facts import ARTIFACTS, RunFacts
from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import is_writable
from regard.core.native_output import silence_output
from regard.pipeline.runs import store
from regard.pipeline.runs.store import Run


def read_facts(run: Run) -> RunFacts:
    """Collect the facts about a run, whether it succeeded or not."""
    record, config = run.record(), run.settings()
    state, status = run.progress(), store.status(run)
    if status != RUNNING:
        state.stop()  # after a kill, the events still list a running node
    folders: dict[str, Path] = {}
    for name, (node, key) in ARTIFACTS.items():
        uri = state.outputs(node).get(key)
        if uri and Path(uri).is_dir():
            folders[name] = Path(uri)
    actual = {
        "id": run.id,
        "name": record.name or run.name,
        "status": status,
        "nodes": state.nodes,
    }
    record = record.model_copy(update=actual)
    return RunFacts(record, folders, str(config.get("task", "")), config)


def write_report(run: Run, path: Path | None = None) -> Path:
    """Write the page of a run and that of its differences, and return the absolute path.

    Args:
        run: The run.
        path: The file of the page; None: in the folder of the run.

    Raises:
        UserError: The page cannot be written.
    """
    path = (path or run.directory / store.REPORT).absolute()
    if path.is_dir():
        raise UserError("The path is a folder.", str(path), "Give a file, such as report.html.")
    if not is_writable(path.parent):
        raise EnvironmentFault(
            "The folder is not writable.", str(path.parent), "Choose another folder."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with silence_output():
        page.write(path, read_facts(run))
    return path
