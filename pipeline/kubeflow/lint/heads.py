"""What is wrong with the file as a whole: its documents, version, name and storage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.kubeflow.lint.document import Document, Path, mapping_at
from pipeline.kubeflow.lint.fault import IGNORED, Fault
from pipeline.kubeflow.lint.typed import NotTyped, check_platform
from pipeline.kubeflow.storage import FOLDERS

VERSION = "2.1.0"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME = 128
_BUCKET = re.compile(r"(?P<scheme>[a-z][a-z0-9]+)://(?P<bucket>[^/?]+)(/[^?]*)?(\?.+)?")
# KubernetesExecutorConfig, of kubernetes_platform/proto.
_NAMES = (
    *("secretAsVolume", "secretAsEnv", "pvcMount", "nodeSelector", "podMetadata"),
    *("imagePullSecret", "imagePullPolicy", "configMapAsVolume", "configMapAsEnv"),
    *("activeDeadlineSeconds", "fieldPathAsEnv", "tolerations", "genericEphemeralVolume"),
    *("nodeAffinity", "podAffinity", "enabledSharedMemory", "emptyDirMounts", "securityContext"),
)
_COMPILE = (
    "With TFX: KubeflowV2DagRunnerConfig(use_pipeline_spec_2_1=True) and an output_filename that "
    "ends in .yaml; `regard compile` does both."
)


def kind_of(value: Any) -> str:
    """``pipeline``, ``platform`` or ``other``: what a document is meant as."""
    if not isinstance(value, dict):
        return "other"
    if "platforms" in value:
        return "platform"
    keys = {"pipelineSpec", "pipelineInfo", "pipeline_info", "schemaVersion", "root"}
    return "pipeline" if keys & set(value) else "other"


def pipeline_in(value: dict[str, Any]) -> tuple[Path, Any]:
    """The PipelineSpec in a document, and where: a PipelineJob has it inside."""
    if "pipelineSpec" in value:
        return ("pipelineSpec",), value["pipelineSpec"]
    return (), value


def spec_in(parsed: Sequence[Document]) -> Any:
    """The PipelineSpec of a file's first pipeline; an empty mapping where there is none."""
    for document in parsed:
        if kind_of(document.value) == "pipeline":
            return pipeline_in(document.value)[1]
    return {}


def head_faults(document: Document, pipelines: list[Document]) -> Iterator[Fault]:
    """Yields what is wrong with a pipeline before its nodes are looked at."""
    prefix, value = pipeline_in(document.value)
    if prefix:
        message = "this is a PipelineJob, as Google's Vertex AI takes it, and no PipelineSpec"
        yield Fault("job", (), message, _COMPILE)
        if "runtimeConfig" in document.value:
            message = "a PipelineJob's pipeline root and parameters are lost with it"
            remedy = "Give them when the run is started: `regard submit --param NAME=VALUE`."
            yield Fault("job", ("runtimeConfig",), message, remedy, IGNORED)
    if pipelines[0] is not document:
        yield Fault("several", (), "a second pipeline in one file", "Put it in a file of its own.")
    if not isinstance(value, dict):
        return
    version = value.get("schemaVersion")
    if version != VERSION:
        said = f"the schema version is {version}" if version else "there is no schema version"
        yield Fault("schema", (*prefix, "schemaVersion"), f"{said}; only {VERSION} runs", _COMPILE)
    yield from _name_faults(value, prefix)
    if not value.get("root"):
        yield Fault("root", (*prefix, "root"), "the pipeline has no root", "Give it a node.")
    root = value.get("defaultPipelineRoot")
    if isinstance(root, str):
        yield from _bucket_faults(root, (*prefix, "defaultPipelineRoot"))


def _name_faults(value: dict[str, Any], prefix: Path) -> Iterator[Fault]:
    name = mapping_at(value, "pipelineInfo").get("name")
    path = (*prefix, "pipelineInfo", "name")
    rule = f"Use small letters, digits, '-' and '.', {LONGEST_NAME} characters at most; the first "
    rule += "and the last are no signs."
    if not name:
        yield Fault("name", path, "the pipeline has no name", rule)
    elif not isinstance(name, str):
        yield Fault("name", path, f"the pipeline's name is read as {name}, no text", "Quote it.")
    elif not NAME.fullmatch(name):
        yield Fault("name", path, f"{name!r} cannot be a pipeline's name", rule)
    elif len(name) > LONGEST_NAME:
        yield Fault("name", path, f"the name has {len(name)} characters", rule)


def _bucket_faults(root: str, path: Path) -> Iterator[Fault]:
    found = _BUCKET.fullmatch(root)
    if found is None or found["scheme"] not in FOLDERS:
        schemes = ", ".join(f"{scheme}://" for scheme in FOLDERS)
        message = f"{root!r} is no store that the launcher reads and writes"
        yield Fault("storage", path, message, f"Use a bucket and a path behind one of {schemes}.")


def platform_faults(
    document: Document, pipelines: list[Document], platforms: list[Document]
) -> Iterator[Fault]:
    """Yields what is wrong with a document that is no pipeline."""
    value = document.value
    if not pipelines:
        message = "there is no pipeline in this file"
        yield Fault("none", (), message, "Compile one: `regard compile CONFIG --to kubeflow`.")
        return
    if kind_of(value) != "platform":
        message = "this document is neither a pipeline nor a platform"
        yield Fault("document", (), message, "Leave it out.", IGNORED)
        return
    try:
        check_platform(value)
    except NotTyped as error:
        message, remedy = f"this is no PlatformSpec: {error}", "Compile the pipeline again."
        yield Fault("shape", ("platforms",), message, remedy, IGNORED)
        return
    if not mapping_at(value, "platforms", "kubernetes"):
        message = "only the platform kubernetes is read"
        yield Fault("platform", ("platforms",), message, "Leave it out.", IGNORED)
        return
    known = mapping_at(spec_in(pipelines), "deploymentSpec", "executors")
    path = ("platforms", "kubernetes", "deploymentSpec", "executors")
    if platforms[0] is not document:
        message = "a second platform in one file"
        yield Fault("several", ("platforms",), message, "Put both into one document.")
    for label, settings in mapping_at(value, *path).items():
        for key in settings if isinstance(settings, dict) else ():
            if _plain(key) not in _SETTINGS:
                message = f"nothing of a node is called {key!r}: older servers fail, newer ones "
                message += "pass over it"
                remedy = f"Mend its name; there are {', '.join(sorted(_SETTINGS.values()))}."
                yield Fault("unknown", (*path, label, key), message, remedy, IGNORED)
        if label not in known:
            message = f"the pipeline has no executor {label!r}"
            remedy = f"Its executors: {', '.join(known)}."
            yield Fault("platform", (*path, label), message, remedy, IGNORED)


def _plain(key: Any) -> str:
    """A key in whichever of its two ways of writing, ``pvcMount`` or ``pvc_mount``."""
    return str(key).replace("_", "").lower()


_SETTINGS = {_plain(name): name for name in _NAMES}
