"""Checks on the section ``kubeflow`` that need the whole configuration."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from regard.components.data.span_rules import path_locations
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.validation_errors import show, unknown
from regard.pipeline.config.config import Config
from regard.pipeline.config.kubeflow import DEFAULT, KubeflowConfig, PodConfig

# Environment variables by which Kubeflow and Regard find things.
_OWN_VARIABLES = ("KFP_", "NAMESPACE", "REGARD_STORAGE")
_TAKEN = "{} is already the folder of another volume"


def validate_kubeflow(config: Config) -> Iterator[Problem]:
    """Yield what cannot work on a cluster, if the configuration has one."""
    if (kubeflow := config.kubeflow) is None:
        return
    names = (DEFAULT, *config.regard_nodes, *(node.id for node in config.pipeline.nodes))
    for section in ("resources", "pods"):
        for name in getattr(kubeflow, section):
            if name not in names and config.pipeline.extra is None:  # whose nodes are unknown
                yield Problem(("kubeflow", section, name), unknown(name, names, "a node"))
    for name in kubeflow.pods:
        for path, message in _pod_problems(kubeflow.pod_of(name), kubeflow):
            yield Problem(("kubeflow", "pods", name, *path), message)
    yield from _check_folders(kubeflow)
    if config.serving.registry is not None and kubeflow.registry is None:
        yield Problem(("serving", "registry"), "has no effect on a cluster; use kubeflow.registry")


def input_paths(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield every path that a node reads, as written in the configuration, with its key."""
    data = config.data
    paths: dict[KeyPath, str | None] = {
        ("data", "root"): data.root,
        ("data", "images"): data.images,
    }
    if config.tokenizer is not None:
        paths["tokenizer", "word_list"] = config.tokenizer.word_list
        model = config.tokenizer.model
        if isinstance(model, dict):
            paths |= {("tokenizer", "model", name): path for name, path in model.items()}
        else:
            paths["tokenizer", "model"] = model
    if pretrained := getattr(config.model, "pretrained", None):
        paths |= {("model", "pretrained", name): path for name, path in pretrained.files().items()}
    if config.training.warm_start is not None:  # or a name
        paths["training", "warm_start", "model"] = config.training.warm_start.model
    yield from ((key, path) for key, path in paths.items() if path is not None)
    yield from ((location.path, location.pattern) for location in path_locations(data))
    yield from ((("data", "monolingual", i), path) for i, path in enumerate(data.monolingual))


def _pod_problems(pod: PodConfig, kubeflow: KubeflowConfig) -> Iterator[tuple[KeyPath, str]]:
    """Yield what Kubernetes would refuse, or what would break the launcher, with its key."""
    for key in ("environment", "secret_environment"):
        for name in getattr(pod, key):
            if name.startswith(_OWN_VARIABLES):
                yield (key, name), "is set by Kubeflow; choose another name"
    for name in pod.environment.keys() & pod.secret_environment:
        yield ("secret_environment", name), "is also set by environment"
    mounts = list(kubeflow.volumes.values())
    for secret, folder in pod.secret_folders.items():
        if secret in kubeflow.volumes:
            yield ("secret_folders", secret), "is also the name of a volume"
        if folder in mounts:
            yield ("secret_folders", secret), _TAKEN.format(show(folder))
        mounts.append(folder)
    for index, taint in enumerate(pod.tolerations):
        if taint.value is not None and taint.key is None:
            yield ("tolerations", index, "value"), "needs a key"


def _check_folders(kubeflow: KubeflowConfig) -> Iterator[Problem]:
    """Every volume has a folder of its own; home and registry must be on one."""
    folders = list(kubeflow.volumes.values())
    for index, (claim, folder) in enumerate(kubeflow.volumes.items()):
        if folder in folders[:index]:
            yield Problem(("kubeflow", "volumes", claim), _TAKEN.format(show(folder)))
    for name, folder in (("home", kubeflow.home), ("registry", kubeflow.registry_folder)):
        if not kubeflow.is_on_volume(PurePosixPath(folder)):
            message = f"no volume contains {folder}; mount one with kubeflow.volumes"
            yield Problem(("kubeflow", name), message)
            return
