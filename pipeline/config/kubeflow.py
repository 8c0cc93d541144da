"""The section ``kubeflow``: where and how the nodes run on a cluster."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from regard.models.settings.base import Count, Listed, Section, option

DEFAULT = "default"

# An absolute path without the parts . and ..
Folder = Annotated[str, Field(pattern=r"^(/\.{0,2}[^\s/.][^\s/]*)+$")]
# Also the name of the pod's volume, whose limit is shorter than that of a claim's name.
Claim = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Image = Annotated[str, Field(pattern=r"^[^\s]+$")]
Bucket = Annotated[str, Field(pattern=r"^(minio|s3|gs)://[^/\s?]+(/[^\s?]*)?$")]
# Names of Kubernetes: of an object, of a label, and of an environment variable.
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
Object = Annotated[str, Field(pattern=rf"^{_NAME}(\.{_NAME})*$", max_length=253)]
Label = Annotated[str, Field(pattern=rf"^({_NAME}(\.{_NAME})*/)?{_LABEL}$", max_length=253 + 64)]
LabelValue = Annotated[str, Field(pattern=rf"^({_LABEL})?$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=253)]
SecretKey = Annotated[str, Field(pattern=r"^[-._A-Za-z0-9]+$", max_length=253)]
# Kubeflow copies the number into a Kubernetes quantity, which does not allow 1e-05 or 1e+21.
Amount = Annotated[float, Field(ge=0.001, le=1e6)]


class ResourcesConfig(Section):
    """Resources of a node: both the request and the limit.

    A key that is omitted has the value under ``default``; null removes it.
    """

    cpu: Amount | None = option(None, "CPU cores; null: no request or limit.")
    memory: Amount | None = option(
        None, "Memory in gigabytes (10^9 bytes); null: no request or limit."
    )
    gpu: Count | None = option(None, "Number of NVIDIA GPUs; null: none.")


class Toleration(Section):
    """A taint of machines that a node tolerates."""

    key: Label | None = option(None, "Key of the taint; null: every taint.")
    value: LabelValue | None = option(None, "Value of the taint; null: any.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = option(
        None, "Effect of the taint; null: all."
    )
    seconds: Count | None = option(
        None, "Seconds until a node with effect: NoExecute has to leave; null: no limit."
    )


class PodConfig(Section):
    """How Kubernetes runs a node. A key that is omitted has the value under ``default``."""

    retries: Annotated[int, Field(ge=0, le=100)] = option(
        0,
        "How often the node is started again after a failure: after one minute, then two, four and "
        "so on. A training resumes from its last checkpoint.",
    )
    environment: dict[Variable, str] = option(
        {}, "Environment variables.", examples=[{"OMP_NUM_THREADS": "4"}]
    )
    secrets: dict[Object, Folder | dict[Variable, SecretKey]] = option(
        {},
        "Secrets by name: the folder in which the secret is mounted, or environment variables with "
        "the key of the secret that each contains.",
        examples=[{"proxy": {"HTTPS_PROXY": "url"}, "certificates": "/etc/certificates"}],
    )
    image_pull_secrets: Listed[Object] = option((), "Secrets for pulling the image.")
    labels: dict[Label, LabelValue] = option(
        {}, "Labels of the pod, by which for example a Service selects it."
    )
    node_selector: dict[Label, LabelValue] = option(
        {},
        "Labels of the machines that may run the node.",
        examples=[{"cloud.google.com/gke-accelerator": "nvidia-l4"}],
    )
    tolerations: Listed[Toleration] = option(
        (), "Taints of machines that the node tolerates.", examples=[[{"key": "nvidia.com/gpu"}]]
    )
    scratch: Amount | None = option(
        None,
        "Limit of the temporary files in /tmp, in gigabytes: Kubernetes ends a node that exceeds "
        "it; null: no limit of its own.",
    )


_Settings = TypeVar("_Settings", ResourcesConfig, PodConfig)


class KubeflowConfig(Section):
    """Where and how a pipeline runs that `regard compile` has compiled for Kubeflow Pipelines."""

    image: Image = Field(
        description="Image of all nodes, built with the repository's Dockerfile, by the name under "
        "which the cluster pulls it.",
        examples=["registry.example.org/regard:0.1.0"],
    )
    gpu_image: Image | None = option(
        None,
        "Image of the nodes that request GPUs, built with --build-arg ACCELERATOR=cuda; null: "
        "image.",
        examples=["registry.example.org/regard:0.1.0-cuda"],
    )
    pipeline_root: Bucket | None = option(
        None,
        "Where artifacts are stored: minio://, s3:// or gs://, a bucket and a path; null: the "
        "cluster's default.",
        examples=["minio://mlpipeline/v2/artifacts"],
    )
    artifacts: Literal["volume", "store"] = option(
        "volume",
        "Where nodes write the content of artifacts: volume (<home>/artifacts; pipeline_root then "
        "contains their locations and the report) or store (pipeline_root; every node downloads "
        "all its inputs). Beam on a cluster and training.devices: workers require volume.",
    )
    home: Folder = option(
        "/regard",
        "The value of ${REGARD_HOME} in the containers: an absolute path on a volume, without . "
        "and .., for data, registry and checkpoints.",
    )
    registry: Folder | None = option(
        None,
        "Folder of the model registry in the containers: an absolute path on a volume; null: "
        "<home>/registry.",
    )
    volumes: dict[Claim, Folder] = Field(
        default_factory=dict,
        description="Volumes mounted into every node: the name of each PersistentVolumeClaim and "
        "its folder in the containers. One of them must contain home.",
        examples=[{"regard": "/regard"}],
    )
    resources: dict[str, ResourcesConfig] = Field(
        default_factory=dict,
        description="Resources by node: Trainer: {cpu: 4, memory: 16, gpu: 1}. A key that a node "
        "omits has the value under `default`; null removes it.",
        examples=[{DEFAULT: {"cpu": 1, "memory": 4}}],
    )
    pods: dict[str, PodConfig] = Field(
        default_factory=dict,
        description="Retries, environment, secrets and machines by node. A key that a node omits "
        "has the value under `default`.",
        examples=[{DEFAULT: {"retries": 2}}],
    )

    def resources_of(self, node: str) -> ResourcesConfig:
        """Return the resources of a node, with the defaults filled in."""
        return _with_defaults(self.resources, node, ResourcesConfig())

    def pod_of(self, node: str) -> PodConfig:
        """Return how Kubernetes runs a node, with the defaults filled in."""
        return _with_defaults(self.pods, node, PodConfig())

    def image_of(self, node: str) -> str:
        """Return the image of a node: ``gpu_image`` for one that requests GPUs."""
        return (self.resources_of(node).gpu and self.gpu_image) or self.image

    @property
    def artifact_folder(self) -> str:
        """Folder of the artifacts in the containers; empty if they are in the store."""
        return str(PurePosixPath(self.home, "artifacts")) if self.artifacts == "volume" else ""

    @property
    def registry_folder(self) -> str:
        """Folder of the registry in the containers."""
        return self.registry or str(PurePosixPath(self.home, "registry"))

    def is_on_volume(self, path: PurePosixPath) -> bool:
        """Return whether a path lies on a mounted volume."""
        folders = map(PurePosixPath, self.volumes.values())
        return any(folder in (path, *path.parents) for folder in folders)


def _with_defaults(sections: dict[str, _Settings], node: str, empty: _Settings) -> _Settings:
    own = sections.get(node, empty)
    changes = {name: getattr(own, name) for name in own.model_fields_set}
    return sections.get(DEFAULT, empty).model_copy(update=changes)
