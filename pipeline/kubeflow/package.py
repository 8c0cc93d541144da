"""What is handed to a cluster: a compiled pipeline, checked, with the parameters of a run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from components.errors import UserError
from pipeline.kubeflow.lint import lint, refuse
from pipeline.kubeflow.lint.document import documents, mapping_at
from pipeline.kubeflow.lint.heads import kind_of, pipeline_in


@dataclasses.dataclass(frozen=True)
class Package:
    """A compiled pipeline that open-source Kubeflow Pipelines takes.

    Attributes:
        path: the file, called ``.yaml``.
        name: the pipeline's.
        pipeline_root: where its artifacts go; None: the cluster decides.
        parameters: those that were given, each of its type.
        notes: what the nodes may not find.
    """

    path: Path
    name: str
    pipeline_root: str | None
    parameters: dict[str, Any]
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def package(path: Path, pairs: Sequence[str] = ()) -> Iterator[Package]:
    """A pipeline's configuration, compiled, or a pipeline's file; checked in any case.

    Args:
        path: the configuration, or the compiled file.
        pairs: ``NAME=VALUE`` of each parameter.

    Raises:
        UserError: something is wrong with the file, or with a parameter.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = read(path)
        told: tuple[str, ...] = ()
        if not is_pipeline(text):
            text, told = _compiled(path, Path(folder, "compiled.yaml"))
        found = [document for document in documents(text) if kind_of(document.value) == "pipeline"]
        spec = pipeline_in(found[0].value)[1] if found else {}
        given = given_parameters(pairs, spec)
        refuse(lint(text, given), str(path))
        file = Path(folder, "pipeline.yaml")
        file.write_text(text, encoding="utf-8")
        name = spec["pipelineInfo"]["name"]
        yield Package(file, name, spec.get("defaultPipelineRoot"), given, told)


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
    return any(kind_of(document.value) == "pipeline" for document in documents(text))


def given_parameters(pairs: Sequence[str], spec: Any) -> dict[str, Any]:
    """The values of ``NAME=VALUE``, each read as its parameter's type wants it.

    Args:
        pairs: as they were given.
        spec: the pipeline.

    Raises:
        UserError: one has no ``=``, or is given twice.
    """
    known = mapping_at(spec, "root", "inputDefinitions", "parameters")
    given: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise UserError(f"{pair!r} is no parameter", "--param", "Write --param NAME=VALUE.")
        if name in given:
            raise UserError(f"{name} is given twice", "--param", "Give it once.")
        kind = mapping_at(known, name).get("parameterType", "STRING")
        given[name] = value if kind == "STRING" else _read(value)
    return given


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:  # the check says what it should have been
        return value


def _compiled(path: Path, target: Path) -> tuple[str, tuple[str, ...]]:
    """The text of the compiled configuration, and the notes on it."""
    from pipeline.kubeflow.compiling import compiled, write
    from pipeline.kubeflow.settings import load_for_cluster, notes

    config = load_for_cluster(path)
    write(compiled(config), target)
    return target.read_text(encoding="utf-8"), tuple(notes(config))
