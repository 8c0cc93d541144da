"""What open-source Kubeflow Pipelines would refuse in a pipeline's file, or pass over in silence.

The rules are those of its API server (``template/v2_template.go``), of its compiler to Argo
workflows (``v2/compiler``), of its driver and of its launcher, which all speak only when it is
late: some at the upload, some at the start of a run, some in the middle of one. Nothing here needs
a cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from components.errors import UserError
from pipeline.kubeflow.lint.document import Document, documents
from pipeline.kubeflow.lint.fault import IGNORED, Fault
from pipeline.kubeflow.lint.heads import head_faults, kind_of, pipeline_in, platform_faults
from pipeline.kubeflow.lint.parameters import given_faults, parameter_faults
from pipeline.kubeflow.lint.tasks import task_faults
from pipeline.kubeflow.lint.typed import NotTyped, deployment, typed, unknown_keys

__all__ = ["Finding", "findings", "lint", "refuse"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is wrong in a pipeline's file.

    Attributes:
        line: in the file, from 1.
        key: the keys from the outermost on, with dots.
        rule: its name, for machines.
        effect: ``refused``, ``ignored`` (in silence) or ``fails`` (while it runs).
        message: what is wrong.
        remedy: what to do about it.
    """

    line: int
    key: str
    rule: str
    effect: str
    message: str
    remedy: str


def lint(text: str, given: Mapping[str, Any] | None = None) -> list[Finding]:
    """Everything that is wrong in a pipeline's file, in the order of its lines.

    Args:
        text: the file's, YAML or JSON.
        given: the parameters of a run; None: of no run in particular.
    """
    return findings(documents(text), given)


def findings(parsed: list[Document], given: Mapping[str, Any] | None = None) -> list[Finding]:
    """What ``lint`` finds in a file whose documents are read already."""
    found = []
    for document in parsed:
        for fault in _faults(document, parsed, given):
            line = document.line(fault.path)
            key = ".".join(map(str, fault.path))
            found.append(Finding(line, key, fault.rule, fault.effect, fault.message, fault.remedy))
    return sorted(dict.fromkeys(found), key=lambda finding: finding.line)


def refuse(found: list[Finding], name: str) -> None:
    """Raises the one error that findings add up to, if there are any."""
    if found:
        lines = [f"{name}:{f.line}: {f.key}: {f.message}. {f.remedy}" for f in found]
        raise UserError("\n".join(lines), remedy="`regard lint` explains each of them.")


def _faults(
    document: Document, parsed: list[Document], given: Mapping[str, Any] | None
) -> Iterator[Fault]:
    if document.fault is not None:
        yield document.fault
        return
    pipelines = [other for other in parsed if kind_of(other.value) == "pipeline"]
    if kind_of(document.value) != "pipeline":
        platforms = [other for other in parsed if kind_of(other.value) == "platform"]
        yield from platform_faults(document, pipelines, platforms)
        return
    prefix, value = pipeline_in(document.value)
    yield from head_faults(document, pipelines)
    try:
        spec = typed(value)
    except NotTyped as error:
        yield Fault(
            "shape", prefix, f"this is no PipelineSpec: {error}", "Compile the pipeline again."
        )
        return
    for path in unknown_keys(value.get("deploymentSpec"), deployment()):
        message = f"nothing knows {path[-1]!r} here"
        remedy = "Mend its name, or leave it out."
        yield Fault("unknown", (*prefix, "deploymentSpec", *path), message, remedy, IGNORED)
    of_run = () if given is None else given_faults(spec, given)
    for fault in (*task_faults(spec), *parameter_faults(spec), *of_run):
        yield dataclasses.replace(fault, path=(*prefix, *fault.path))
