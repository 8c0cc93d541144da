"""The YAML file of a compiled pipeline: a PipelineSpec and, with volumes, a PlatformSpec."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from regard.components.common.files import check_regular
from regard.components.common.yaml_text import find_excess


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

    def to_yaml(self) -> str:
        """Return the file's content. It begins with a comment on each run parameter."""
        head = [f"# Pipeline {self.name}, compiled by `regard compile`."]
        for name, parameter in sorted(self.parameters.items()):
            value = parameter["defaultValue"]
            default = (value or "empty") if isinstance(value, str) else f"{value:g}"
            head.append(f"# Parameter {name} (default {default}): {parameter['description']}")
        documents = [self.spec, self.platform] if self.platform else [self.spec]
        body = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True)
        return "\n".join(head) + "\n" + body


def read_pipeline(path: Path) -> CompiledPipeline | None:
    """Read a compiled pipeline; None if a file is anything else, such as a configuration."""
    try:
        check_regular(path)
        text = path.read_text(encoding="utf-8-sig")
        if find_excess(yaml.parse(text, yaml.CSafeLoader)):
            return None
        documents = list(yaml.load_all(text, yaml.CSafeLoader))
    except (OSError, ValueError, LookupError, AttributeError, yaml.YAMLError, RecursionError):
        return None
    match documents:
        case [{"pipelineInfo": _} as spec]:
            return CompiledPipeline(spec)
        case [{"pipelineInfo": _} as spec, {"platforms": _} as platform]:
            return CompiledPipeline(spec, platform)
    return None
