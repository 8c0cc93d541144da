"""What is wrong with the tasks of a pipeline: what they refer to, and what they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.kubeflow.lint.document import Path
from pipeline.kubeflow.lint.executors import executor_faults
from pipeline.kubeflow.lint.fault import FAILS, Fault

ROOT = "root"
_AGAIN = "Compile the pipeline again, or mend the name."


def task_faults(spec: dict[str, Any]) -> Iterator[Fault]:
    """Yields what is wrong with the tasks, from the root on; each component is looked at once."""
    if ROOT in spec.get("components", {}):
        message = "no component may be called root"
        yield Fault("component", ("components", ROOT), message, "Give it another name.")
        return
    if spec.get("root"):
        yield from _Walk(spec).component(ROOT, spec["root"], (ROOT,), ())


class _Walk:
    def __init__(self, spec: dict[str, Any]):
        self.components: dict[str, Any] = spec.get("components", {})
        self.executors: dict[str, Any] = spec["deploymentSpec"].get("executors", {})
        self.seen: set[str] = set()

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
        for key, output in component.get("outputDefinitions", {}).get("artifacts", {}).items():
            if "schemaUri" in output.get("artifactType", {}):
                where = (*path, "outputDefinitions", "artifacts", key)
                message = f"the type of {key} is given by a schemaUri, which the launcher refuses"
                remedy = "Give a schemaTitle or an instanceSchema."
                yield Fault("artifact-type", where, message, remedy, FAILS)

    def executor(self, label: str, component: dict[str, Any], path: Path) -> Iterator[Fault]:
        if label not in self.executors:
            message = f"there is no executor {label!r}"
            yield Fault("executor-label", (*path, "executorLabel"), message, _AGAIN)
            return
        takes = bool(component.get("inputDefinitions", {}).get("artifacts"))
        where = ("deploymentSpec", "executors", label)
        yield from executor_faults(self.executors[label], where, takes)

    def dag(
        self, name: str, component: dict[str, Any], path: Path, outer: tuple[str, ...]
    ) -> Iterator[Fault]:
        tasks = component["dag"].get("tasks", {})
        path = (*path, "dag", "tasks")
        exits = "ALL_UPSTREAM_TASKS_COMPLETED"
        if all(task.get("triggerPolicy", {}).get("strategy") == exits for task in tasks.values()):
            yield Fault("tasks", path, f"{name} has no task", "Give it a node.")
        for key, task in tasks.items():
            where = (*path, key)
            reference = task.get("componentRef", {}).get("name", "")
            if reference not in self.components:
                message = f"there is no component {reference!r}"
                yield Fault("component-ref", (*where, "componentRef"), message, _AGAIN)
                continue
            inner = self.components[reference]
            yield from self.task(task, inner, where)
            yield from self.links(task, component, tasks, where)
            yield from self.component(reference, inner, ("components", reference), outer)

    def task(self, task: dict[str, Any], component: dict[str, Any], path: Path) -> Iterator[Fault]:
        if "artifactIterator" in task:
            message = "a loop over artifacts does not run"
            yield Fault("iterator", (*path, "artifactIterator"), message, "Loop over a parameter.")
        executor = self.executors.get(component.get("executorLabel", ""), {})
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
                    yield Fault("input", (*path, "inputs"), message, _AGAIN, FAILS)

    def links(
        self, task: dict[str, Any], around: dict[str, Any], tasks: dict[str, Any], path: Path
    ) -> Iterator[Fault]:
        for index, name in enumerate(task.get("dependentTasks", [])):
            if name not in tasks:
                message = f"there is no task {name!r} beside it"
                yield Fault("dependency", (*path, "dependentTasks", index), message, _AGAIN)
        inputs = task.get("inputs", {})
        of_root = around.get("inputDefinitions", {})
        for key, source in inputs.get("parameters", {}).items():
            where = (*path, "inputs", "parameters", key)
            name = source.get("componentInputParameter")
            if name is not None and name not in of_root.get("parameters", {}):
                message = f"there is no parameter {name!r} around it"
                yield Fault("input", where, message, _AGAIN, FAILS)
            if "runtimeValue" in source and "constant" not in source["runtimeValue"]:
                message = "the value is written as in schema version 2.0"
                yield Fault("constant", where, message, "Write it as a `constant`.", FAILS)
            if output := source.get("taskOutputParameter"):
                made = ("parameters", output.get("outputParameterKey"))
                yield from self.producer(output, made, tasks, where)
        for key, source in inputs.get("artifacts", {}).items():
            where = (*path, "inputs", "artifacts", key)
            if output := source.get("taskOutputArtifact"):
                made = ("artifacts", output.get("outputArtifactKey"))
                yield from self.producer(output, made, tasks, where)

    def producer(
        self, output: dict[str, Any], made: tuple[str, Any], tasks: dict[str, Any], path: Path
    ) -> Iterator[Fault]:
        name = output.get("producerTask", "")
        if name not in tasks:
            message = f"there is no task {name!r} beside it"
            yield Fault("dependency", path, message, _AGAIN)
            return
        reference = tasks[name].get("componentRef", {}).get("name", "")
        definitions = self.components.get(reference, {}).get("outputDefinitions", {})
        kind, key = made
        if reference in self.components and key not in definitions.get(kind, {}):
            message = f"the task {name} has no output {key!r}"
            yield Fault("input", path, message, _AGAIN, FAILS)
