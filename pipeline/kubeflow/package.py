"""What is handed to a cluster: a compiled pipeline, checked, with the parameters of a run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.errors import UserError
from pipeline.kubeflow.extra import require
from pipeline.kubeflow.given import checked_parameters
from pipeline.kubeflow.lint import findings, refuse
from pipeline.kubeflow.lint.document import Document, documents
from pipeline.kubeflow.lint.heads import kind_of, spec_in


@dataclasses.dataclass(frozen=True)
class Package:
    """A compiled pipeline that open-source Kubeflow Pipelines takes.

    Attributes:
        name: the pipeline's.
        spec: its PipelineSpec.
        platform: its PlatformSpec; empty where there is none.
        parameters: those that were given, each of its type.
        notes: what the nodes may not find.
    """

    name: str
    spec: dict[str, Any]
    platform: dict[str, Any]
    parameters: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def pipeline_root(self) -> str | None:
        """Where its artifacts go; None: the cluster decides."""
        return self.spec.get("defaultPipelineRoot")


def package(path: Path, pairs: Sequence[str] = ()) -> Package:
    """A pipeline's configuration, compiled, or a pipeline's file; checked in any case.

    Args:
        path: the configuration, or the compiled file.
        pairs: ``NAME=VALUE`` of each parameter.

    Raises:
        UserError: something is wrong with the file, or with a parameter; or the extra that it
            takes is not installed.
    """
    require()
    parsed, name = documents(read(path)), str(path)
    told: tuple[str, ...] = ()
    if not _has_pipeline(parsed):
        text, told = _compiled(path)
        parsed, name = documents(text), f"{path}, compiled"
    refuse(findings(parsed), name)
    spec = spec_in(parsed)
    return Package(
        name=spec["pipelineInfo"]["name"],
        spec=spec,
        platform=next((d.value for d in parsed if kind_of(d.value) == "platform"), {}),
        parameters=checked_parameters(pairs, spec),
        notes=told,
    )


def read(path: str | os.PathLike[str]) -> str:
    """The text of a file.

    Raises:
        UserError: it cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8", str(path), "Compile the pipeline again.") from None
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise UserError(message, str(path), "Give the path of a YAML file.") from None


def is_pipeline(text: str) -> bool:
    """Whether a text is a compiled pipeline, right or wrong, and no configuration of one."""
    return _has_pipeline(documents(text))


def _has_pipeline(parsed: Sequence[Document]) -> bool:
    return any(kind_of(document.value) == "pipeline" for document in parsed)


def _compiled(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of the compiled configuration, and the notes on it."""
    from pipeline.kubeflow.compiling import as_text, compiled
    from pipeline.kubeflow.settings import load_for_cluster, notes

    config = load_for_cluster(path)
    return as_text(compiled(config)), tuple(notes(config))
