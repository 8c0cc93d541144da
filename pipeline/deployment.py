"""The files that put a pushed model behind TensorFlow Serving: Docker Compose, Kubernetes, KServe.

They are rendered from the templates in ``serving/tf_serving`` and ``serving/kubernetes``; nothing
is sent anywhere.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import serving
from components.errors import UserError

_FOLDER = Path(serving.__file__).parent
_CONFIGS = (
    "tf_serving/models.config.jinja",
    "tf_serving/batching.config.jinja",
    "tf_serving/monitoring.config",
)
TARGETS = {
    "compose": ("tf_serving/compose.yaml.jinja", *_CONFIGS),
    "kubernetes": (
        "kubernetes/kustomization.yaml.jinja",
        "kubernetes/service_account.yaml.jinja",
        "kubernetes/deployment.yaml.jinja",
        "kubernetes/service.yaml.jinja",
        "kubernetes/autoscaler.yaml.jinja",
        "kubernetes/disruption_budget.yaml.jinja",
        *_CONFIGS,
    ),
    "kserve": ("kubernetes/inference_service.yaml.jinja",),
}
# Where the server finds the registry.
_MOUNTED = "/models"
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
# A service of the name with "-pods" behind it has one of 63 letters at the most.
_NAME = r"[a-z]([a-z0-9-]{0,56}[a-z0-9])?"
_CPU = re.compile(r"([0-9]*\.?[0-9]+)(m?)")
_MEMORY = re.compile(r"([1-9][0-9]*)(Mi|Gi)")
_PVC = re.compile(rf"pvc://(?P<claim>{_LABEL})(/(?P<folder>[^\x00]+))?")
_URI = re.compile(r"[a-z][a-z0-9+]*://[^/\s]\S*")


@dataclasses.dataclass(frozen=True)
class Deployment:
    """A model of the registry, and what a server of it may take.

    Attributes:
        name: the model's; a Kubernetes name too.
        storage: where the registry lies: a folder for ``compose``, ``pvc://CLAIM[/FOLDER]`` for
            ``kubernetes``, that or another URI such as ``gs://bucket/registry`` for ``kserve``.
        version: the one that is served; None: always the newest.
        image: TensorFlow Serving's.
        replicas: servers at the least.
        most_replicas: servers at the most.
        cpu: processors of a server, such as ``2`` or ``500m``.
        memory: of a server, such as ``2Gi``.
        namespace: of Kubernetes.
        batching: whether KServe may put requests together, whose server pads nothing: not those of
            models that take points.

    Raises:
        UserError: a value that cannot be; it names the value and what it should be.
    """

    name: str
    storage: str
    version: int | None = None
    image: str = "tensorflow/serving:2.19.1"
    replicas: int = 2
    most_replicas: int = 6
    cpu: str = "2"
    memory: str = "2Gi"
    namespace: str = "default"
    batching: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(_NAME, self.name):
            raise UserError(
                f"{self.name!r} is no name of a service",
                where="model",
                remedy="Up to 58 of a-z, 0-9 and '-', a letter first and no '-' last.",
            )
        if not re.fullmatch(_LABEL, self.namespace) or len(self.namespace) > 63:
            raise UserError(
                f"{self.namespace!r} is no namespace",
                where="namespace",
                remedy="Up to 63 of a-z, 0-9 and '-', with neither end a '-'.",
            )
        if not _CPU.fullmatch(self.cpu) or self.threads < 1:
            remedy = "Such as 2, 0.5 or 500m."
            raise UserError(f"{self.cpu!r} is no number of processors", where="cpu", remedy=remedy)
        if not _MEMORY.fullmatch(self.memory):
            raise UserError(
                f"{self.memory!r} is no amount of memory", where="memory", remedy="Such as 2Gi."
            )
        if not 1 <= self.replicas <= self.most_replicas:
            raise UserError(
                f"{self.replicas} to {self.most_replicas} replicas cannot be",
                where="replicas",
                remedy="At least 1, and at most as many as --max-replicas.",
            )
        if not self.image_version:
            raise UserError(
                f"{self.image!r} does not say which TensorFlow Serving it is",
                where="image",
                remedy="Give its version, as in tensorflow/serving:2.19.1.",
            )

    @property
    def threads(self) -> int:
        """Threads of a server: its processors, since it would count those of the whole machine."""
        return math.ceil(self.processors)

    @property
    def processors(self) -> float:
        """``cpu`` as a number."""
        number, milli = _CPU.fullmatch(self.cpu).groups()  # type: ignore[union-attr]
        return float(number) / (1000 if milli else 1)

    @property
    def image_version(self) -> str:
        """The version that the image's tag begins with; empty where there is none."""
        found = re.search(r":(\d+\.\d+(\.\d+)?)[^/]*$", self.image.partition("@")[0])
        return found[1] if found else ""


def render(deployment: Deployment, target: str) -> dict[str, str]:
    """The files of a target, by name.

    Args:
        deployment: what is served, and with what.
        target: one of ``TARGETS``.

    Raises:
        UserError: the target has no place for what the deployment says.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # YAML and text protos, whose strings `quoted` writes
    )
    environment.filters["quoted"] = lambda text: json.dumps(str(text), ensure_ascii=False)
    # Compose fills in variables in every string.
    environment.filters["literal"] = lambda text: str(text).replace("$", "$$")
    values = {
        **{field.name: getattr(deployment, field.name) for field in dataclasses.fields(deployment)},
        **_placed(deployment, target),
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


def _placed(deployment: Deployment, target: str) -> dict[str, str]:
    """What the templates need to know about the storage, which each target has its own kinds of."""
    storage = deployment.storage.rstrip("/")
    if target == "compose":
        if "://" in storage:
            raise UserError(
                f"{storage!r} is no folder",
                where="storage",
                remedy="Give the folder of the registry, or render for kserve.",
            )
        return {"storage": str(Path(deployment.storage).expanduser().resolve())}
    if target == "kserve":
        if deployment.version is not None:
            raise UserError(
                "KServe serves the newest version of a folder",
                where=f"{deployment.name}@{deployment.version}",
                remedy="Leave the version out, or render for kubernetes.",
            )
        if not _URI.fullmatch(storage):
            remedy = "Such as pvc://regard-registry or gs://bucket/registry."
            raise UserError(f"{storage!r} is no URI", where="storage", remedy=remedy)
        return {"storage": storage}
    volume = _PVC.fullmatch(storage)
    if volume is None:
        raise UserError(
            f"{storage!r} is no volume of Kubernetes",
            where="storage",
            remedy="Give pvc://CLAIM or pvc://CLAIM/FOLDER; other storage: --to kserve.",
        )
    folder = volume["folder"] or ""
    if {"", ".", ".."} & {*folder.split("/")} and folder:
        raise UserError(
            f"{folder!r} is no folder of a volume",
            where="storage",
            remedy="Give it from the volume's root, without '.', '..' or '//'.",
        )
    return {"claim": volume["claim"], "folder": folder}


def _flags(threads: int) -> list[str]:
    """TensorFlow Serving's own, the configuration files at ``/config``."""
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
