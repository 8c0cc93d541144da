"""``regard compile``: compile a configuration for a cluster."""

from pathlib import Path
from typing import Annotated

from regard.core.errors import UserError
from regard.core.files import atomic_write
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, SetOption, argument, option
from regard.pipeline.runners.kubeflow import settings
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline, validate_pipeline


def compile(
    config: Annotated[Path, argument("CONFIG", "YAML file of a pipeline with a section kubeflow.")],
    out: Annotated[
        Path | None,
        option(
            "--out -o",
            "FILE",
            "Output file. Overwrites only a compiled pipeline.",
            "NAME.kubeflow.yaml",
        ),
    ] = None,
    values: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a pipeline for open-source Kubeflow Pipelines 2.3 or newer.

    Needs neither the data nor a cluster. ${REGARD_HOME} becomes kubeflow.home,
    and the nodes find the data and the model in production when they run. See
    docs/how-to/kubeflow.md.

    [bold]Example[/bold]

      regard compile configs/quickstart.yaml -o quickstart.kubeflow.yaml

    [bold]Exit status[/bold]: 0 compiled; 2 an error that you can fix.
    """
    settings.require_kubeflow_extra()
    loaded = settings.load_for_cluster(config, values or ())
    path = out or Path(f"{loaded.name}.kubeflow.yaml")
    _check_output(path, config)
    with terminal.working("compiling with TFX …"):
        pipeline = compile_pipeline(loaded)
        validate_pipeline(pipeline, str(path))
    atomic_write(path, pipeline.to_yaml(), private=loaded.has_references)
    terminal.print_notes(settings.cluster_warnings(loaded))
    nodes = len(pipeline.spec["root"]["dag"]["tasks"])
    names = sorted(pipeline.parameters)
    if as_json:
        facts = {"name": loaded.name, "nodes": nodes, "parameters": names}
        terminal.print_json({"file": str(path), **facts})
        return
    terminal.print_lines(
        f"{path}: pipeline {loaded.name}, {nodes} nodes, parameters {', '.join(names)}",
        f"  To start a run: regard submit {path} --host URL",
    )


def _check_output(path: Path, config: Path) -> None:
    """Refuse to overwrite anything but a compiled pipeline.

    Raises:
        UserError: the output file is the configuration, or another file.
    """
    remedy = "Choose another file with --out."
    if path.resolve() == config.resolve():
        raise UserError("The output file is the configuration itself.", f"--out {path}", remedy)
    if path.is_file() and path.stat().st_size and read_pipeline(path) is None:
        message = "The file exists and is not a compiled pipeline."
        raise UserError(message, f"--out {path}", remedy)
