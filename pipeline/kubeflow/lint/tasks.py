"""What is wrong with the tasks of a pipeline: what they refer to, and what they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.kubeflow.lint.document import Path
from pipeline.kubeflow.lint.executors import executor_faults, store_faults
from pipeline.kubeflow.lint.fault import FAILS, Fault
from pipeline.kubeflow.lint.heads import VERSION
from pipeline.kubeflow.lint.links import (
    AGAIN,
    Around,
    circle_faults,
    link_faults,
    output_faults,
    placeholder_faults,
)
from pipeline.kubeflow.lint.parameters import TYPES

ROOT = "root"
# What a task at the end is told of the others; the driver fills it in.
_STATUS = "TASK_FINAL_STATUS"


def task_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    """Yields what is wrong with the tasks, from the root on; each component is looked at once."""
    if ROOT in spec.get("components", {}):
        message = "no component may be called root"
        yield Fault("component", ("components", ROOT), message, "Give it another name.")
        return
    if spec.get("root"):
        for key, taken in spec["root"].get("inputDefinitions", {}).get("artifacts", {}).items():
            if not taken.get("isOptional"):
                where = (ROOT, "inputDefinitions", "artifacts", key)
                message = f"the pipeline takes the artifact {key}, which a run cannot give"
                remedy = "Import it, or let a node look for it."
                yield Fault("root-artifact", where, message, remedy, FAILS)
        yield from _Walk(spec).component(ROOT, spec["root"], (ROOT,), ())


class _Walk:
    def __init__(self, spec: dict[str, Any]):
        self.components: dict[str, Any] = spec.get("components", {})
        self.executors: dict[str, Any] = spec["deploymentSpec"].get("executors", {})
        self.seen: set[str] = set()
        self.items = _loop_items(spec)
        # Older schemas name types otherwise, all over; that they are old is told once.
        self.newest = spec.get("schemaVersion") == VERSION

    def component(
        self, name: str, component: dict[str, Any], path: Path, outer: tuple[str, ...]
    ) -> Iterator[Fault]:
        if name in outer:
            circle = " in ".join([name, *reversed(outer[outer.index(name) :])])
            message = f"the component is inside of itself: {circle}"
            yield Fault("circle", path, message, "Compile the pipeline again.")
        if name in self.seen:
            return
        self.seen.add(name)
        if label := component.get("executorLabel"):
            yield from self.executor(label, component, path)
        elif "dag" in component:
            yield from self.dag(name, component, path, (*outer, name))
        else:
            message = f"the component {name} has neither an executor nor tasks"
            yield Fault("component", path, message, "Compile the pipeline again.")
        if name != ROOT and self.newest:  # those of the root are looked at with those of a run
            yield from self.types(component, path)
        for key, output in component.get("outputDefinitions", {}).get("artifacts", {}).items():
            if "schemaUri" in output.get("artifactType", {}):
                where = (*path, "outputDefinitions", "artifacts", key)
                message = f"the type of {key} is given by a schemaUri, which the launcher refuses"
                remedy = "Give a schemaTitle or an instanceSchema."
                yield Fault("artifact-type", where, message, remedy, FAILS)

    def types(self, component: dict[str, Any], path: Path) -> Iterator[Fault]:
        known = component.get("inputDefinitions", {}).get("parameters", {})
        for key, parameter in known.items():
            if parameter.get("parameterType") not in (*TYPES, _STATUS):
                where = (*path, "inputDefinitions", "parameters", key)
                message = f"the input {key} has no type that a parameter can have"
                remedy = f"Give it a parameterType: {', '.join(TYPES)}."
                yield Fault("parameter-type", where, message, remedy, FAILS)

    def executor(self, label: str, component: dict[str, Any], path: Path) -> Iterator[Fault]:
        if label not in self.executors:
            message = f"there is no executor {label!r}"
            yield Fault("executor-label", (*path, "executorLabel"), message, AGAIN)
            return
        takes = bool(component.get("inputDefinitions", {}).get("artifacts"))
        where = ("deploymentSpec", "executors", label)
        executor = self.executors[label]
        yield from executor_faults(executor, where, takes)
        container = executor.get("container", {})
        words = [*container.get("command", []), *container.get("args", [])]
        yield from placeholder_faults(words, component, (*where, "container", "args"))

    def dag(
        self, name: str, component: dict[str, Any], path: Path, outer: tuple[str, ...]
    ) -> Iterator[Fault]:
        around = Around(component, self.components, frozenset(self.items.get(name, ())))
        tasks = around.tasks
        yield from output_faults(around, (*path, "dag"))
        yield from circle_faults(around, (*path, "dag"))
        path = (*path, "dag", "tasks")
        exits = "ALL_UPSTREAM_TASKS_COMPLETED"
        if all(task.get("triggerPolicy", {}).get("strategy") == exits for task in tasks.values()):
            yield Fault("tasks", path, f"{name} has no task", "Give it a node.")
        for key, task in tasks.items():
            where = (*path, key)
            reference = task.get("componentRef", {}).get("name", "")
            if reference not in self.components:
                message = f"there is no component {reference!r}"
                yield Fault("component-ref", (*where, "componentRef"), message, AGAIN)
                continue
            inner = self.components[reference]
            yield from self.task(task, inner, where)
            yield from link_faults(task, inner, around, where)
            yield from self.component(reference, inner, ("components", reference), outer)

    def task(self, task: dict[str, Any], component: dict[str, Any], path: Path) -> Iterator[Fault]:
        if "artifactIterator" in task:
            message = "a loop over artifacts does not run"
            yield Fault("iterator", (*path, "artifactIterator"), message, "Loop over a parameter.")
        executor = self.executors.get(component.get("executorLabel", ""), {})
        yield from store_faults(executor, task, path)
        if "importer" in executor and task.get("triggerPolicy", {}).get("condition"):
            message = "an importer cannot depend on a condition"
            yield Fault("condition", (*path, "triggerPolicy"), message, "Import it always.")
        definitions = component.get("inputDefinitions", {})
        for kind in ("parameters", "artifacts"):
            given = task.get("inputs", {}).get(kind, {})
            for key, value in definitions.get(kind, {}).items():
                needed = not value.get("isOptional") and "defaultValue" not in value
                if needed and key not in given and "parameterIterator" not in task:
                    message = f"the component needs {key}, and the task does not give it"
                    yield Fault("input", (*path, "inputs"), message, AGAIN, FAILS)


def _loop_items(spec: dict[str, Any]) -> dict[str, set[str]]:
    """By component, its parameters that are items of a loop."""
    found: dict[str, set[str]] = {}
    for component in (spec.get("root", {}), *spec.get("components", {}).values()):
        for task in component.get("dag", {}).get("tasks", {}).values():
            name = task.get("componentRef", {}).get("name", "")
            if item := task.get("parameterIterator", {}).get("itemInput"):
                found.setdefault(name, set()).add(item)
    return found
