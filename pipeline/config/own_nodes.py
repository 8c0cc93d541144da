"""The section ``pipeline``: nodes of the user's own in the graph."""

import re
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue
from typing_extensions import Self

from regard.components.common.references import References
from regard.core.modules import REFERENCE
from regard.models.settings.base import KeyPath, Listed, Problem, Section, absolute
from regard.models.settings.validation_errors import show, unknown

Reference = Annotated[str, Field(pattern=REFERENCE)]
NODES: KeyPath = ("pipeline", "nodes")
NODE_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,62}$"


class NodeConfig(Section):
    """A node of your own.

    Attributes:
        component: TFX component class or @component function, MODULE:NAME.
        name: Name of the node, letters, digits and _, starting with a letter; null: the name of the
            component.
        after: Node that must have ended; null: only those whose outputs are inputs.
        before: Node that waits for this one; null: only those that read its outputs.
        inputs: Output for each input, NODE.OUTPUT.
        parameters: Value of each parameter.
    """

    component: Reference
    name: Annotated[str, Field(pattern=NODE_NAME)] | None = None
    after: str | None = None
    before: str | None = None
    inputs: dict[str, str] = {}
    parameters: dict[str, JsonValue] = {}

    @property
    def id(self) -> str:
        """The name of the node."""
        return self.name or self.component.partition(":")[2]

    @property
    def predecessors(self) -> list[str]:
        """The nodes that must have ended before this one starts."""
        producers = [output.partition(".")[0] for output in self.inputs.values()]
        return [*producers, self.after] if self.after is not None else producers


class PipelineConfig(Section):
    """Nodes of your own in the graph (docs/how-to/extending.md).

    Attributes:
        folder: Folder of the modules of your own; null: that of this file. On Kubeflow, the image
            must contain the modules instead.
        nodes: Nodes of your own, with the keys component, name, after, before, inputs and
            parameters.
        extra: Function, MODULE:NAME, that receives all nodes by name, and returns more; null: none.
    """

    folder: str | None = None
    nodes: Annotated[
        Listed[NodeConfig],
        Field(
            max_length=100,
            examples=[
                [
                    {
                        "component": "nodes:Profanity",
                        "before": "TokenizerTrainer",
                        "inputs": {"examples": "CorpusGen.examples"},
                        "parameters": {"limit": 5},
                    }
                ]
            ],
        ),
    ] = ()
    extra: Reference | None = None

    @property
    def references(self) -> dict[KeyPath, str]:
        """The references to code of the user's own, by their keys."""
        result: dict[KeyPath, str] = {
            (*NODES, index, "component"): node.component for index, node in enumerate(self.nodes)
        }
        if self.extra is not None:
            result["pipeline", "extra"] = self.extra
        return result

    def resolved(self, base: Path) -> Self:
        """Return a copy with an absolute path of the folder."""
        return self.model_copy(update={"folder": absolute(base, self.folder or ".")})

    def execution_order(self, nodes: Sequence[str]) -> tuple[str, ...]:
        """Return the names of all nodes in an order in which they can run.

        Args:
            nodes: Regard's nodes, which run in this order.

        Raises:
            CycleError: Nodes wait for each other.
        """
        if not self.nodes:
            return tuple(nodes)
        graph: dict[str, list[str]] = {node.id: node.predecessors for node in self.nodes}
        graph |= {name: [] for name in nodes}
        for earlier, later in pairwise(nodes):
            graph[later].append(earlier)
        for node in self.nodes:
            if node.before is not None:
                graph[node.before].append(node.id)
        return tuple(TopologicalSorter(graph).static_order())


def validate_own_nodes(
    pipeline: PipelineConfig, nodes: Sequence[str], reserved: Sequence[str]
) -> Iterator[Problem]:
    """Yield wrong names of nodes, and nodes that wait for each other; nothing is imported.

    Args:
        pipeline: The section.
        nodes: The names of Regard's nodes in this pipeline.
        reserved: The names of Regard's nodes in any pipeline.
    """
    problems = [*_name_problems(pipeline, reserved), *_reference_problems(pipeline, nodes)]
    yield from problems
    if problems:
        return
    try:
        pipeline.execution_order(nodes)
    except CycleError as error:
        cycle = error.args[1]
        own = [node.id for node in pipeline.nodes]
        index = min(own.index(name) for name in cycle if name in own)
        message = f"nodes wait for each other: {' → '.join(cycle)}; Regard's run in the order "
        yield Problem((*NODES, index), message + ", ".join(nodes))


def validate_parameters(references: References) -> Iterator[Problem]:
    """Yield the parameters of nodes that refer to environment variables.

    ML Metadata would record the values of the variables as execution properties.

    Args:
        references: The variables that the values of the whole file refer to.
    """
    for place, variables in references.items():
        if place[:2] == NODES and place[3:4] == ("parameters",) and variables:
            name = next(iter(variables))
            message = f"cannot refer to ${{{name}}}, because ML Metadata records parameters; "
            yield Problem(place, f'{message}read os.environ["{name}"] in the node')


def _name_problems(pipeline: PipelineConfig, reserved: Sequence[str]) -> Iterator[Problem]:
    """Yield names that are invalid, or those of other nodes; commands ignore the case of names."""
    names = {name.lower() for name in reserved}
    for index, node in enumerate(pipeline.nodes):
        place = (*NODES, index, "component" if node.name is None else "name")
        if not re.fullmatch(NODE_NAME, node.id):  # of a component without `name`
            message = f"{show(node.id)} cannot be the name of a node; set name: letters, digits "
            yield Problem(place, f"{message}and _, starting with a letter")
        if node.id.lower() in names:
            message = f"there already is a node {show(node.id)}; set another name"
            yield Problem(place, message)
        names.add(node.id.lower())


def _reference_problems(pipeline: PipelineConfig, nodes: Sequence[str]) -> Iterator[Problem]:
    """Yield references to nodes that do not exist, and inputs that are no references."""
    names = [*nodes, *(node.id for node in pipeline.nodes)]
    for index, node in enumerate(pipeline.nodes):
        path = (*NODES, index)
        references: dict[KeyPath, str | None] = {
            (*path, "after"): node.after,
            (*path, "before"): node.before,
        }
        for key, output in node.inputs.items():
            producer, separator, _ = output.partition(".")
            if separator:
                references[(*path, "inputs", key)] = producer
            else:
                message = f"{show(output)} is not NODE.OUTPUT, such as CorpusGen.examples"
                yield Problem((*path, "inputs", key), message)
        others = [other for other in names if other != node.id]
        for place, name in references.items():
            if name is not None and name not in others:
                yield Problem(place, unknown(name, others, "another node"))
