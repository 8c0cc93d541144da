"""``regard lineage``: show where a model came from."""

from regard.components.registry.store import Registry
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, ModelArgument, RegistryOption
from regard.pipeline.cli.rendering import lineage_tree
from regard.pipeline.lineage.trace import trace
from regard.pipeline.workspace import Workspace


def lineage(
    model: ModelArgument, as_json: JsonOption = False, registry: RegistryOption = None
) -> None:
    """Show where a model came from: its run, the outputs of each node, and its data.

    For steps that the run took from the cache, the run that executed them is shown.
    Contexts and executions are shown with their ids in ML Metadata.
    The earlier versions that this one was compared with follow, and then what could
    not be found.

    [bold]Examples[/bold]

      regard lineage quickstart

      regard lineage quickstart@2 --json
    """
    workspace = Workspace.from_environment()
    version = Registry(registry or workspace.registry).resolve(model)
    result = trace(version, workspace)
    if as_json:
        terminal.print_json(result.to_dict())
    else:
        lineage_tree.show(result, terminal.out())
