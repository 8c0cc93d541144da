"""The section ``kubeflow``: where and how the nodes run on a cluster."""

from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from regard.core.bounds import Count
from regard.models.settings.base import Listed, Section

DEFAULT = "default"

# An absolute path without the parts . and ..
# TensorFlow and Beam would read some characters as a pattern.
Folder = Annotated[str, Field(pattern=r"^(/\.{0,2}[^\s/.*?\[\]\\][^\s/*?\[\]\\]*)+$")]
# Also the name of the pod's volume, whose limit is shorter than that of a claim's name.
Claim = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Image = Annotated[str, Field(pattern=r"^[^\s]+$")]
Bucket = Annotated[str, Field(pattern=r"^(minio|s3|gs)://[^/\s?]+(/[^\s?]*)?$")]
# Names of Kubernetes: of a secret, of a label, of an environment variable, of a secret's key.
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_SECRET = rf"{_NAME}(\.{_NAME})*"
Secret = Annotated[str, Field(pattern=rf"^{_SECRET}$", max_length=253)]
Label = Annotated[str, Field(pattern=rf"^({_SECRET}/)?{_LABEL}$", max_length=317)]
LabelValue = Annotated[str, Field(pattern=rf"^({_LABEL})?$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=253)]
SecretKey = Annotated[str, Field(pattern=rf"^{_SECRET}/[-._A-Za-z0-9]+$", max_length=507)]
# Kubeflow copies the number into a Kubernetes quantity, which does not allow 1e-05 or 1e+21.
Amount = Annotated[float, Field(ge=0.001, le=1e6)]


class ResourcesConfig(Section):
    """Resources of a node: both the request and the limit.

    A key that is omitted has the value under ``default``; null removes it.

    Attributes:
        cpu: CPU cores; null: no request or limit.
        memory: Memory in gigabytes (10^9 bytes); null: no request or limit.
        gpu: Number of NVIDIA GPUs; null: none.
    """

    cpu: Amount | None = None
    memory: Amount | None = None
    gpu: Count | None = None


class Toleration(Section):
    """A taint of machines that a node tolerates.

    Attributes:
        key: Key of the taint; null: every taint.
        value: Value of the taint; null: any.
        effect: Effect of the taint; null: all.
    """

    key: Label | None = None
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class PodConfig(Section):
    """How Kubernetes runs a node. A key that is omitted has the value under ``default``.

    Attributes:
        retries: How often a failed node is started again: after one minute, then two, four and so
            on.
        environment: Environment variables.
        secret_environment: Environment variables whose values are secrets, each as SECRET/KEY.
        secret_folders: Secrets by name, and where to mount them.
        image_pull_secrets: Secrets for pulling the image.
        labels: Labels of the pod.
        node_selector: Labels of machines that may run it.
        tolerations: Tolerations: taints of machines on which the node may run.
        scratch: Limit of the files in /tmp in gigabytes; null: none.
    """

    retries: Annotated[int, Field(ge=0, le=10)] = 0
    environment: dict[Variable, str] = {}
    secret_environment: dict[Variable, SecretKey] = {}
    secret_folders: dict[Claim, Folder] = {}
    image_pull_secrets: Listed[Secret] = ()
    labels: dict[Label, LabelValue] = {}
    node_selector: dict[Label, LabelValue] = {}
    tolerations: Listed[Toleration] = ()
    scratch: Amount | None = None


_Settings = TypeVar("_Settings", ResourcesConfig, PodConfig)


class KubeflowConfig(Section):
    """Where and how a pipeline runs that `regard compile` has compiled for Kubeflow Pipelines.

    Attributes:
        image: Image of all nodes, built with the repository's Dockerfile, by the name under which
            the cluster pulls it.
        gpu_image: Image of the nodes that request GPUs, built with --build-arg ACCELERATOR=cuda,
            or jax-cuda for training.backend: jax; null: image.
        pipeline_root: Where the locations of artifacts, reports and logs are stored: minio://,
            s3:// or gs://, a bucket and a path; null: the cluster's default.
        home: The value of ${REGARD_HOME} in the containers: an absolute path on a volume, without .
            and .., for data, artifacts, registry and checkpoints.
        registry: Folder of the model registry in the containers: an absolute path on a volume;
            null: <home>/registry.
        volumes: Volumes mounted into every node: the name of each PersistentVolumeClaim and its
            folder in the containers. One of them must contain home.
        resources: Resources by node: Trainer: {cpu: 4, memory: 16, gpu: 1}. A key that a node omits
            has the value under `default`; null removes it.
        pods: Retries, environment, secrets and machines by node (docs/how-to/kubeflow.md). A key
            that a node omits has the value under `default`.
    """

    image: Annotated[Image, Field(examples=["registry.example.org/regard:0.1.0"])]
    gpu_image: Annotated[
        Image | None, Field(examples=["registry.example.org/regard:0.1.0-cuda"])
    ] = None
    pipeline_root: Annotated[
        Bucket | None,
        Field(examples=["minio://mlpipeline/v2/artifacts"]),
    ] = None
    home: Folder = "/regard"
    registry: Folder | None = None
    volumes: Annotated[dict[Claim, Folder], Field(examples=[{"regard": "/regard"}])] = {}
    resources: Annotated[
        dict[str, ResourcesConfig], Field(examples=[{DEFAULT: {"cpu": 1, "memory": 4}}])
    ] = {}
    pods: Annotated[dict[str, PodConfig], Field(examples=[{DEFAULT: {"retries": 2}}])] = {}

    def resources_of(self, node: str) -> ResourcesConfig:
        """Return the resources of a node, with the defaults filled in."""
        return _with_defaults(self.resources, node, ResourcesConfig())

    def pod_of(self, node: str) -> PodConfig:
        """Return how Kubernetes runs a node, with the defaults filled in."""
        return _with_defaults(self.pods, node, PodConfig())

    def image_of(self, node: str) -> str:
        """Return the image of a node: ``gpu_image`` for one that requests GPUs."""
        if self.resources_of(node).gpu and self.gpu_image:
            return self.gpu_image
        return self.image

    @property
    def registry_folder(self) -> str:
        """Folder of the registry in the containers."""
        return self.registry or str(PurePosixPath(self.home, "registry"))

    def is_on_volume(self, path: PurePosixPath) -> bool:
        """Return whether a path lies on a mounted volume."""
        folders = map(PurePosixPath, self.volumes.values())
        return any(folder in (path, *path.parents) for folder in folders)


def _with_defaults(sections: dict[str, _Settings], node: str, empty: _Settings) -> _Settings:
    section = sections.get(node, empty)
    changes = {name: getattr(section, name) for name in section.model_fields_set}
    return sections.get(DEFAULT, empty).model_copy(update=changes)
