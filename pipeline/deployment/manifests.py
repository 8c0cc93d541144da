"""Render the files that run a model in TensorFlow Serving: Docker Compose, Kubernetes, KServe.

The templates are in ``serving/deploy``. Nothing is sent anywhere.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

from regard import serving
from regard.components.common.errors import UserError

_FOLDER = Path(serving.__file__).parent
_CONFIGS = (
    "deploy/tf_serving/models.config.jinja",
    "deploy/tf_serving/batching.config.jinja",
    "deploy/tf_serving/monitoring.config",
)
TARGETS = {
    "compose": ("deploy/tf_serving/compose.yaml.jinja", *_CONFIGS),
    "kubernetes": (
        "deploy/kubernetes/kustomization.yaml.jinja",
        "deploy/kubernetes/service_account.yaml.jinja",
        "deploy/kubernetes/deployment.yaml.jinja",
        "deploy/kubernetes/service.yaml.jinja",
        "deploy/kubernetes/autoscaler.yaml.jinja",
        "deploy/kubernetes/disruption_budget.yaml.jinja",
        *_CONFIGS,
    ),
    "kserve": ("deploy/kubernetes/inference_service.yaml.jinja",),
}
# The registry's path in the server's container.
_MOUNTED = "/models"
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
# With the suffix "-pods" a service name has at most 63 characters.
_NAME = r"[a-z]([a-z0-9-]{0,56}[a-z0-9])?"
_CPU = re.compile(r"([0-9]*\.?[0-9]+)(m?)")
_MEMORY = re.compile(r"([1-9][0-9]*)(Mi|Gi)")
_PVC = re.compile(rf"pvc://(?P<claim>{_LABEL})(/(?P<folder>[^\x00]+))?")
_URI = re.compile(r"[a-z][a-z0-9+]*://[^/\s]\S*")


@dataclasses.dataclass(frozen=True)
class Deployment:
    """A model in the registry and the resources of its servers.

    Attributes:
        name: the model's name, also used as the name of Kubernetes objects.
        storage: the registry: a folder for ``compose``, ``pvc://CLAIM[/FOLDER]`` for
            ``kubernetes``, that or another URI such as ``gs://bucket/registry`` for ``kserve``.
        version: the served version; None: always the newest.
        image: the image of TensorFlow Serving.
        replicas: minimum number of servers.
        max_replicas: maximum number of servers.
        cpu: CPUs of a server, such as ``2`` or ``500m``.
        memory: memory of a server, such as ``2Gi``.
        namespace: the Kubernetes namespace.
        batching: whether KServe may batch requests; it cannot pad, so not for models of points.

    Raises:
        UserError: a value is invalid.
    """

    name: str
    storage: str
    version: int | None = None
    image: str = "tensorflow/serving:2.19.1"
    replicas: int = 2
    max_replicas: int = 6
    cpu: str = "2"
    memory: str = "2Gi"
    namespace: str = "default"
    batching: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(_NAME, self.name):
            raise UserError(
                f"{self.name!r} is not a valid service name.",
                where="model",
                remedy="Use up to 58 of a-z, 0-9 and '-'. Start with a letter.",
            )
        if not re.fullmatch(_LABEL, self.namespace) or len(self.namespace) > 63:
            raise UserError(
                f"{self.namespace!r} is not a valid namespace.",
                where="namespace",
                remedy="Use up to 63 of a-z, 0-9 and '-', not starting or ending with '-'.",
            )
        if not _CPU.fullmatch(self.cpu) or self.threads < 1:
            remedy = "Use a number such as 2, 0.5 or 500m."
            raise UserError(f"{self.cpu!r} is not a number of CPUs.", where="cpu", remedy=remedy)
        if not _MEMORY.fullmatch(self.memory):
            raise UserError(
                f"{self.memory!r} is not an amount of memory.",
                where="memory",
                remedy="Use an amount such as 2Gi.",
            )
        if not 1 <= self.replicas <= self.max_replicas:
            raise UserError(
                f"The range of {self.replicas} to {self.max_replicas} replicas is empty.",
                where="replicas",
                remedy="Use at least 1, and at most --max-replicas.",
            )
        if not self.image_version:
            raise UserError(
                f"The tag of {self.image!r} is not a version.",
                where="image",
                remedy="Give a versioned image, such as tensorflow/serving:2.19.1.",
            )

    @property
    def threads(self) -> int:
        """Threads of a server; by itself it would count the CPUs of the whole machine."""
        return math.ceil(self.processors)

    @property
    def processors(self) -> float:
        """``cpu`` as a number."""
        number, milli = _CPU.fullmatch(self.cpu).groups()  # type: ignore[union-attr]
        return float(number) / (1000 if milli else 1)

    @property
    def image_version(self) -> str:
        """The version in the image's tag; empty if there is none."""
        match = re.search(r":(\d+\.\d+(\.\d+)?)[^/]*$", self.image.partition("@")[0])
        return match[1] if match else ""


def render(deployment: Deployment, target: str) -> dict[str, str]:
    """Return the texts of the files of a target by name.

    Args:
        deployment: the model and its resources.
        target: one of ``TARGETS``.

    Raises:
        UserError: the target does not support the storage or the version.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # YAML and text protos; the filter `quoted` escapes strings
    )
    environment.filters["quoted"] = lambda text: json.dumps(str(text), ensure_ascii=False)
    # Compose substitutes variables in every string.
    environment.filters["literal"] = lambda text: str(text).replace("$", "$$")
    values = {
        **{field.name: getattr(deployment, field.name) for field in dataclasses.fields(deployment)},
        **_storage_values(deployment, target),
        "threads": deployment.threads,
        "compose_cpus": f"{deployment.processors:g}",
        "compose_memory": deployment.memory[:-1].lower(),
        "mounted": _MOUNTED,
        "flags": _flags(deployment.threads),
        "status": f"/v1/models/{deployment.name}",
    }
    return {
        Path(file).name.removesuffix(".jinja"): environment.get_template(file).render(values)
        for file in TARGETS[target]
    }


def _storage_values(deployment: Deployment, target: str) -> dict[str, str]:
    """Return the template values for the storage, whose form depends on the target."""
    storage = deployment.storage.rstrip("/")
    if target == "compose":
        if "://" in storage:
            raise UserError(
                f"{storage!r} is not a folder.",
                where="storage",
                remedy="Give the folder of the registry, or render for kserve.",
            )
        return {"storage": str(Path(deployment.storage).expanduser().resolve())}
    if target == "kserve":
        if deployment.version is not None:
            raise UserError(
                "KServe always serves the newest version in a folder.",
                where=f"{deployment.name}@{deployment.version}",
                remedy="Leave the version out, or render for kubernetes.",
            )
        if not _URI.fullmatch(storage):
            remedy = "Use a URI such as pvc://regard-registry or gs://bucket/registry."
            raise UserError(f"{storage!r} is not a URI.", where="storage", remedy=remedy)
        return {"storage": storage}
    volume = _PVC.fullmatch(storage)
    if volume is None:
        raise UserError(
            f"{storage!r} is not a Kubernetes volume.",
            where="storage",
            remedy="Use pvc://CLAIM[/FOLDER], or --to kserve for other storage.",
        )
    folder = volume["folder"] or ""
    if {"", ".", ".."} & {*folder.split("/")} and folder:
        raise UserError(
            f"{folder!r} is not a valid folder in a volume.",
            where="storage",
            remedy="Give its path from the volume's root, without '.', '..' or '//'.",
        )
    return {"claim": volume["claim"], "folder": folder}


def _flags(threads: int) -> list[str]:
    """Return TensorFlow Serving's flags; its configuration files are at ``/config``."""
    return [
        "--port=8500",
        "--rest_api_port=8501",
        "--model_config_file=/config/models.config",
        "--model_config_file_poll_wait_seconds=60",
        "--enable_batching=true",
        "--batching_parameters_file=/config/batching.config",
        "--monitoring_config_file=/config/monitoring.config",
        "--allow_version_labels_for_unavailable_models=true",
        f"--tensorflow_intra_op_parallelism={threads}",
        f"--tensorflow_inter_op_parallelism={threads}",
    ]
