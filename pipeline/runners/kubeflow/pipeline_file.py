"""The YAML file of a compiled pipeline: a PipelineSpec and, with volumes, a PlatformSpec."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import yaml

from regard.components.common.errors import UserError

RECOMPILE = "Compile the pipeline again with `regard compile`."
_SPEC_KEYS = {"pipelineInfo", "schemaVersion", "root", "deploymentSpec", "pipelineSpec"}
_FLOAT_TAG = "tag:yaml.org,2002:float"
# A number in YAML 1.2, which the API server reads, but a string in YAML 1.1, which PyYAML reads.
_YAML_1_2_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z")


class _Loader(yaml.CSafeLoader):
    """Reads numbers as the API server does."""


class _Dumper(yaml.SafeDumper):
    """Quotes what the API server would read as a number, and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(_FLOAT_TAG, _YAML_1_2_FLOAT, list("-+.0123456789"))


@dataclasses.dataclass(frozen=True)
class CompiledPipeline:
    """A compiled pipeline.

    Attributes:
        spec: the PipelineSpec as JSON.
        platform: the PlatformSpec as JSON (the mounted volumes); empty without volumes.
    """

    spec: dict[str, Any]
    platform: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return str(self.spec["pipelineInfo"]["name"])

    @property
    def pipeline_root(self) -> str | None:
        """Where the artifacts are stored; None: the cluster decides."""
        return self.spec.get("defaultPipelineRoot")

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The definition of each run parameter."""
        return self.spec["root"].get("inputDefinitions", {}).get("parameters", {})

    @classmethod
    def from_yaml(cls, text: str, source: str) -> CompiledPipeline:
        """Parse a compiled pipeline.

        Args:
            text: the file's content.
            source: the file's name, for error messages.

        Raises:
            UserError: the text is not YAML, or not one pipeline.
        """
        try:
            documents = _load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            message = f"Invalid YAML: {getattr(error, 'problem', None) or type(error).__name__}."
            raise UserError(message, _location(source, error), RECOMPILE) from None
        specs = [document for document in documents if _is_spec(document)]
        platforms = [document for document in documents if _is_platform(document)]
        if len(specs) != 1 or len(platforms) > 1 or len(specs) + len(platforms) < len(documents):
            counts = f"{len(specs)} and {len(platforms)} in {len(documents)} documents"
            message = f"Expected one PipelineSpec and at most one PlatformSpec, found {counts}."
            raise UserError(message, source, RECOMPILE)
        if "pipelineSpec" in specs[0]:
            message = (
                "This is a PipelineJob for Vertex AI. Kubeflow Pipelines needs a PipelineSpec."
            )
            raise UserError(message, source, RECOMPILE)
        return cls(specs[0], *platforms)

    def to_yaml(self) -> str:
        """Return the file's content. It begins with a comment on each run parameter."""
        head = [f"# Pipeline {self.name}, compiled by `regard compile`."]
        for name, parameter in sorted(self.parameters.items()):
            value = parameter["defaultValue"]
            default = (value or "empty") if isinstance(value, str) else f"{value:g}"
            head.append(f"# Parameter {name} (default {default}): {parameter['description']}")
        documents = [self.spec, self.platform] if self.platform else [self.spec]
        body = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=True, allow_unicode=True)
        return "\n".join(head) + "\n" + body


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a UTF-8 file.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("The file is not UTF-8.", str(path), RECOMPILE) from None
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise UserError(message, str(path), "Give the path of a YAML file.") from None


def is_compiled_pipeline(text: str) -> bool:
    """Return whether a text is a compiled pipeline, valid or not, as opposed to a configuration."""
    try:
        return any(_is_spec(document) for document in _load(text))
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def _load(text: str) -> list[Any]:
    documents = yaml.load_all(text, Loader=_Loader)
    return [document for document in documents if document is not None]


def _is_spec(document: Any) -> bool:
    return isinstance(document, dict) and bool(_SPEC_KEYS & set(document))


def _is_platform(document: Any) -> bool:
    return isinstance(document, dict) and "platforms" in document


def _location(source: str, error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"{source}:{mark.line + 1}" if mark else source
