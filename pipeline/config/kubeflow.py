"""The section ``kubeflow``: where and how the nodes run on a cluster."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from regard.models.settings.base import Count, Section, option

DEFAULT = "default"

# An absolute path without the parts . and ..
Folder = Annotated[str, Field(pattern=r"^(/\.{0,2}[^\s/.][^\s/]*)+$")]
# Also the name of the pod's volume, whose limit is shorter than that of a claim's name.
Claim = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Image = Annotated[str, Field(pattern=r"^[^\s]+$")]
Bucket = Annotated[str, Field(pattern=r"^(minio|s3|gs)://[^/\s?]+(/[^\s?]*)?$")]
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

    def resources_of(self, node: str) -> ResourcesConfig:
        """Return the resources of a node, with the defaults filled in."""
        default = self.resources.get(DEFAULT, ResourcesConfig())
        own = self.resources.get(node, ResourcesConfig())
        return default.model_copy(update=own.model_dump(exclude_unset=True))

    def image_of(self, node: str) -> str:
        """Return the image of a node: ``gpu_image`` for one that requests GPUs."""
        return (self.resources_of(node).gpu and self.gpu_image) or self.image

    @property
    def registry_folder(self) -> str:
        """Folder of the registry in the containers."""
        return self.registry or str(PurePosixPath(self.home, "registry"))

    def is_on_volume(self, path: PurePosixPath) -> bool:
        """Return whether a path lies on a mounted volume."""
        folders = map(PurePosixPath, self.volumes.values())
        return any(folder in (path, *path.parents) for folder in folders)
