"""What is wrong with the links of a pipeline: what a task takes, from where, and of which type."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from pipeline.kubeflow.lint.document import Path
from pipeline.kubeflow.lint.fault import FAILS, Fault
from pipeline.kubeflow.lint.parameters import TYPES, fits

AGAIN = "Compile the pipeline again, or mend the name."
_CONDITION = re.compile(r"""inputs\.parameter_values\[(['"])(?P<name>.+?)\1\]""")
_PLACEHOLDER = re.compile(
    r"""\{\{\$\.(?P<way>inputs|outputs)\.(?P<kind>parameters|artifacts)\[(['"])(?P<name>.+?)\3\]"""
)
_NUMBERS = ("NUMBER_INTEGER", "NUMBER_DOUBLE")


@dataclasses.dataclass(frozen=True)
class Around:
    """What a task lies in.

    Attributes:
        component: the component whose task it is.
        components: all of the pipeline, by name.
        items: the parameters of that component that are items of a loop: of no certain type.
    """

    component: dict[str, Any]
    components: dict[str, Any]
    items: frozenset[str] = frozenset()

    @property
    def tasks(self) -> dict[str, Any]:
        """The task itself, and those beside it."""
        return self.component["dag"].get("tasks", {})

    def taken(self, kind: str) -> dict[str, Any]:
        """The component's own ``parameters`` or ``artifacts``."""
        return self.component.get("inputDefinitions", {}).get(kind, {})

    def made(self, task: str, kind: str) -> dict[str, Any] | None:
        """The ``parameters`` or ``artifacts`` that a task gives; None where nobody knows it."""
        reference = self.tasks[task].get("componentRef", {}).get("name", "")
        if reference not in self.components:
            return None
        return self.components[reference].get("outputDefinitions", {}).get(kind, {})


def link_faults(
    task: dict[str, Any], component: dict[str, Any], around: Around, path: Path
) -> Iterator[Fault]:
    """Yields what is wrong with what a task takes.

    Args:
        task: the task.
        component: the one that it runs.
        around: where it lies.
        path: where it stands in the file.
    """
    for index, name in enumerate(task.get("dependentTasks", [])):
        if name not in around.tasks:
            message = f"there is no task {name!r} beside it"
            yield Fault("dependency", (*path, "dependentTasks", index), message, AGAIN)
    inputs = task.get("inputs", {})
    wanted = component.get("inputDefinitions", {}).get("parameters", {})
    for key, source in inputs.get("parameters", {}).items():
        where = (*path, "inputs", "parameters", key)
        kind = wanted.get(key, {}).get("parameterType", "")
        yield from _parameter_faults(source, kind, around, where)
    for key, source in inputs.get("artifacts", {}).items():
        where = (*path, "inputs", "artifacts", key)
        name = source.get("componentInputArtifact")
        if name is not None and name not in around.taken("artifacts"):
            yield Fault("input", where, f"there is no artifact {name!r} around it", AGAIN, FAILS)
        if output := source.get("taskOutputArtifact"):
            named = output.get("producerTask", ""), output.get("outputArtifactKey", "")
            yield from _producer_faults(*named, "artifacts", around, where)
    given = inputs.get("parameters", {})
    iterator = task.get("parameterIterator", {})
    name = iterator.get("items", {}).get("inputParameter")
    if name is not None and name not in given:
        message = f"it loops over {name!r}, which it does not take"
        yield Fault("iterator", (*path, "parameterIterator"), message, AGAIN, FAILS)
    for found in _CONDITION.finditer(task.get("triggerPolicy", {}).get("condition", "")):
        if found["name"] not in given:
            message = f"it depends on {found['name']!r}, which it does not take"
            yield Fault("condition", (*path, "triggerPolicy", "condition"), message, AGAIN, FAILS)


def output_faults(around: Around, path: Path) -> Iterator[Fault]:
    """Yields what is wrong with what a component of tasks hands on from them."""
    outputs = around.component["dag"].get("outputs", {})
    for key, output in outputs.get("artifacts", {}).items():
        for source in output.get("artifactSelectors", []):
            named = source.get("producerSubtask", ""), source.get("outputArtifactKey", "")
            where = (*path, "outputs", "artifacts", key)
            yield from _producer_faults(*named, "artifacts", around, where)
    for key, output in outputs.get("parameters", {}).items():
        one = output.get("valueFromParameter")
        several = output.get("valueFromOneof", {}).get("parameterSelectors", [])
        for source in [one, *several] if one else several:
            named = source.get("producerSubtask", ""), source.get("outputParameterKey", "")
            where = (*path, "outputs", "parameters", key)
            yield from _producer_faults(*named, "parameters", around, where)


def circle_faults(around: Around, path: Path) -> Iterator[Fault]:
    """Yields the tasks that wait for each other."""
    waiting = {name: _awaited(task) & set(around.tasks) for name, task in around.tasks.items()}
    while free := {name for name, before in waiting.items() if not before & set(waiting)}:
        waiting = {name: before for name, before in waiting.items() if name not in free}
    # Left are those of a circle, and those that wait for one of these.
    while idle := set(waiting).difference(*waiting.values()):
        waiting = {name: before for name, before in waiting.items() if name not in idle}
    if waiting:
        names = sorted(waiting)
        message = f"tasks wait for each other: {', '.join(names)}"
        if len(names) == 1:
            message = f"the task {names[0]} waits for itself"
        where = (*path, "tasks", names[0])
        yield Fault("circle", where, message, "Take one of their dependencies away.")


def placeholder_faults(words: list[str], component: dict[str, Any], path: Path) -> Iterator[Fault]:
    """Yields the places in a command for what its component does not have."""
    for found in _PLACEHOLDER.finditer("\n".join(words)):
        known = component.get(f"{found['way'][:-1]}Definitions", {}).get(found["kind"], {})
        if found["name"] not in known:
            message = f"{found[0]}}}}} stands for nothing: the component has no {found['name']!r}"
            yield Fault("placeholder", path, message, AGAIN, FAILS)


def _parameter_faults(
    source: dict[str, Any], kind: str, around: Around, path: Path
) -> Iterator[Fault]:
    name = source.get("componentInputParameter")
    if name is not None:
        outer = around.taken("parameters").get(name)
        if outer is None:
            yield Fault("input", path, f"there is no parameter {name!r} around it", AGAIN, FAILS)
        elif name not in around.items and not source.get("parameterExpressionSelector"):
            yield from _type_faults(outer.get("parameterType", ""), kind, path)
    if "runtimeValue" in source:
        constant = source["runtimeValue"].get("constant")
        if "constant" not in source["runtimeValue"]:
            message = "the value is written as in schema version 2.0"
            yield Fault("constant", path, message, "Write it as a `constant`.", FAILS)
        elif kind in TYPES and kind != "STRING" and not fits(constant, kind):
            message = f"{TYPES[kind][0]} is taken, and {constant!r} is given"
            yield Fault("type", path, message, "Give a value of its type.", FAILS)
    if output := source.get("taskOutputParameter"):
        named = output.get("producerTask", ""), output.get("outputParameterKey", "")
        yield from _producer_faults(*named, "parameters", around, path)


def _type_faults(outer: str, inner: str, path: Path) -> Iterator[Fault]:
    """A text takes anything, and numbers take each other."""
    if outer not in TYPES or inner not in TYPES or inner in (outer, "STRING"):
        return
    if not (outer in _NUMBERS and inner in _NUMBERS):
        message = f"{TYPES[inner][0]} is taken, and {TYPES[outer][0]} is given"
        yield Fault("type", path, message, "Give both the same type.", FAILS)


def _producer_faults(name: str, key: str, kind: str, around: Around, path: Path) -> Iterator[Fault]:
    if name not in around.tasks:
        yield Fault("dependency", path, f"there is no task {name!r} beside it", AGAIN)
        return
    made = around.made(name, kind)
    if made is not None and key not in made:
        yield Fault("input", path, f"the task {name} has no output {key!r}", AGAIN, FAILS)


def _awaited(task: dict[str, Any]) -> set[str]:
    """The tasks that a task waits for."""
    inputs = task.get("inputs", {})
    sources = [
        *(source.get("taskOutputParameter") for source in inputs.get("parameters", {}).values()),
        *(source.get("taskOutputArtifact") for source in inputs.get("artifacts", {}).values()),
    ]
    producers = {source.get("producerTask", "") for source in sources if source}
    return {*task.get("dependentTasks", []), *producers}
