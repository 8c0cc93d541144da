"""The section ``kubeflow``: where and how the nodes run on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from models.settings.base import Count, Problem, Section
from pipeline.config.errors import show, suggest
from pipeline.nodes import nodes_of

DEFAULT = "default"

Folder = Annotated[str, Field(pattern=r"^(/[^\s/]+)+$")]
Claim = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Bucket = Annotated[str, Field(pattern=r"^(minio|s3|gs)://[^/\s?]+(/[^\s?]*)?$")]
Amount = Annotated[float, Field(gt=0.0)]


class Resources(Section):
    """What a node asks of the cluster, and what it gets at most."""

    cpu: Amount | None = Field(default=None, description="Cores; null: no request, no limit.")
    memory: Amount | None = Field(
        default=None, description="Gigabytes (10^9 bytes); null: no request, no limit."
    )
    gpu: Count | None = Field(default=None, description="Accelerators; null: none.")
    accelerator: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")] | None = Field(
        default=None,
        description="The accelerator's resource, DOMAIN/NAME; null: nvidia.com/gpu.",
    )


class Kubeflow(Section):
    """Where a pipeline compiled with `regard compile --to kubeflow` runs, and how."""

    image: Annotated[str, Field(pattern=r"^[^\s]+$")] = Field(
        description="The image of all nodes, built with the repository's Dockerfile, by the name "
        "that the cluster finds it by.",
        examples=["registry.example.org/regard:0.1.0"],
    )
    gpu_image: Annotated[str, Field(pattern=r"^[^\s]+$")] | None = Field(
        default=None,
        description="The image of the nodes that ask for accelerators, built with "
        "--build-arg ACCELERATOR=cuda; null: image.",
        examples=["registry.example.org/regard:0.1.0-cuda"],
    )
    pipeline_root: Bucket | None = Field(
        default=None,
        description="Where the artifacts go: minio://, s3:// or gs://, a bucket and a path; null: "
        "the cluster's own default.",
        examples=["minio://mlpipeline/v2/artifacts"],
    )
    home: Folder = Field(
        default="/regard",
        description="What ${REGARD_HOME} is in the containers: an absolute path, on a volume. "
        "Data, the registry and the checkpoints lie there.",
    )
    registry: Folder | None = Field(
        default=None,
        description="Folder of the served models in the containers: an absolute path, on a volume; "
        "null: <home>/registry.",
    )
    volumes: dict[Claim, Folder] = Field(
        default_factory=dict,
        description="What is mounted into every node: the name of a PersistentVolumeClaim, and its "
        "folder in the containers. One of them has to hold home.",
        examples=[{"regard": "/regard"}],
    )
    resources: dict[str, Resources] = Field(
        default_factory=dict,
        description="What nodes ask for, by name: Trainer: {cpu: 4, memory: 16, gpu: 1}. What a "
        "node leaves out is as under `default`.",
        examples=[{DEFAULT: {"cpu": 1, "memory": 4}}],
    )

    def resources_of(self, node: str) -> Resources:
        """What a node asks for, with the defaults filled in."""
        default = self.resources.get(DEFAULT, Resources())
        own = self.resources.get(node, Resources())
        return default.model_copy(update=own.model_dump(exclude_none=True))

    def image_of(self, node: str) -> str:
        """The image of a node: the one with the accelerator's libraries where it asks for one."""
        return (self.resources_of(node).gpu and self.gpu_image) or self.image

    @property
    def served(self) -> str:
        """The registry's folder in the containers."""
        return self.registry or str(PurePosixPath(self.home, "registry"))


def impossible_kubeflow(kubeflow: Kubeflow, text: bool) -> Iterator[Problem]:
    """Yields what cannot work on a cluster.

    Args:
        kubeflow: the section.
        text: whether the task has features of text.
    """
    names = (DEFAULT, *nodes_of(text))
    for name in kubeflow.resources:
        if name not in names:
            path = ("kubeflow", "resources", name)
            yield Problem(path, f"{show(name)} is no node{suggest(name, names)}")
    mounted: list[PurePosixPath] = []
    for claim, folder in kubeflow.volumes.items():
        if PurePosixPath(folder) in mounted:
            message = f"{show(folder)} is the folder of another volume, too"
            yield Problem(("kubeflow", "volumes", claim), message)
        mounted.append(PurePosixPath(folder))
    for key, folder in (("home", kubeflow.home), ("registry", kubeflow.served)):
        place = PurePosixPath(folder)
        if not any(volume in (place, *place.parents) for volume in mounted):
            message = f"no volume holds {folder}, so what is written there would go with the node"
            yield Problem(("kubeflow", key), f"{message}; mount one with kubeflow.volumes")
            return
