"""Render the files that run a model in TensorFlow Serving: Docker Compose, Kubernetes, KServe.

The templates are in ``serving/deploy``. Nothing is sent anywhere.
"""

import dataclasses
import json
import math
import re
from pathlib import Path

from regard import serving
from regard.core.errors import UserError

_FOLDER = Path(serving.__file__).parent / "deploy"
# The folders with the templates of each target.
TARGETS = {
    "compose": ("compose", "tf_serving"),
    "kubernetes": ("kubernetes", "tf_serving"),
    "kserve": ("kserve",),
}
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
# With the suffix "-pods" a service name has at most 63 characters.
_NAME = r"[a-z]([a-z0-9-]{0,56}[a-z0-9])?"
# KServe labels its pods "isvc.NAME-predictor"; a label has at most 63 characters.
_KSERVE_NAME_LENGTH = 48
_CPU = re.compile(r"([0-9]*\.?[0-9]+)(m?)")
_MEMORY = re.compile(r"([1-9][0-9]*)(Mi|Gi)")
_PART = r"(?!\.{1,2}(/|$))[^/\x00]+"  # of a path, but neither "." nor ".."
_PVC = re.compile(rf"pvc://(?P<claim>{_LABEL})(/(?P<folder>{_PART}(/{_PART})*))?")
_URI = re.compile(r"[a-z][a-z0-9+]*://[^/\s]\S*")
_REMEDIES = {
    "MODEL": "Use up to 58 of a-z, 0-9 and '-'. Start with a letter.",
    "--namespace": "Use up to 63 of a-z, 0-9 and '-', not starting or ending with '-'.",
    "--cpu": "Use a number such as 2, 0.5 or 500m.",
    "--memory": "Use an amount such as 2Gi.",
    "--replicas": "Use at least 1, and at most --max-replicas.",
    "--image": "Give a versioned image, such as tensorflow/serving:2.19.1.",
}


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
        quantization: the type of the weights in CTranslate2, which ``regard serve`` then runs in an
            image of Regard; None: TensorFlow Serving.

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
    quantization: str | None = None

    def __post_init__(self) -> None:
        has_name = re.fullmatch(_NAME, self.name)
        has_cpus = bool(_CPU.fullmatch(self.cpu)) and self.threads >= 1
        has_namespace = re.fullmatch(_LABEL, self.namespace) and len(self.namespace) <= 63
        has_memory = _MEMORY.fullmatch(self.memory)
        has_replicas = 1 <= self.replicas <= self.max_replicas
        replicas = f"{self.replicas} to {self.max_replicas} replicas"
        for where, is_valid, problem in (
            ("MODEL", has_name, f"{self.name!r} is not a valid service name."),
            ("--namespace", has_namespace, f"{self.namespace!r} is not a valid namespace."),
            ("--cpu", has_cpus, f"{self.cpu!r} is not a number of CPUs."),
            ("--memory", has_memory, f"{self.memory!r} is not an amount of memory."),
            ("--replicas", has_replicas, f"The range of {replicas} is empty."),
            ("--image", self.image_version, f"The tag of {self.image!r} is not a version."),
        ):
            if not is_valid:
                raise UserError(problem, where, _REMEDIES[where])

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
        **dataclasses.asdict(deployment),
        **_storage_values(deployment, target),
        "threads": deployment.threads,
        "processors": deployment.processors,
    }
    texts = {}
    for folder in TARGETS[target]:
        for path in sorted((_FOLDER / folder).iterdir()):
            if path.name == "flags.jinja":  # other templates import it
                continue
            template = environment.get_template(path.relative_to(_FOLDER).as_posix())
            texts[path.name.removesuffix(".jinja")] = template.render(values)
    return texts


def _storage_values(deployment: Deployment, target: str) -> dict[str, str]:
    """Return the template values for the storage, whose form depends on the target."""
    storage = deployment.storage.rstrip("/")
    if target == "compose":
        if "://" in storage:
            remedy = "Give the folder of the registry, or render for kserve."
            raise UserError(f"{storage!r} is not a folder.", "--storage", remedy)
        return {"storage": str(Path(deployment.storage).expanduser().resolve())}
    if target == "kserve":
        if len(deployment.name) > _KSERVE_NAME_LENGTH:
            message = f"{deployment.name!r} is too long for KServe, which adds to the name."
            remedy = f"Use up to {_KSERVE_NAME_LENGTH} characters, or render for kubernetes."
            raise UserError(message, "MODEL", remedy)
        if deployment.version is not None:
            message = "KServe always serves the newest version in a folder."
            remedy = "Leave the version out, or render for kubernetes."
            raise UserError(message, f"{deployment.name}@{deployment.version}", remedy)
        if not _URI.fullmatch(storage):
            remedy = "Use a URI such as pvc://regard-registry or gs://bucket/registry."
            raise UserError(f"{storage!r} is not a URI.", "--storage", remedy)
        return {"storage": storage}
    if (volume := _PVC.fullmatch(storage)) is None:
        remedy = "Use pvc://CLAIM[/FOLDER] without '.', '..' and '//', or --to kserve."
        raise UserError(f"{storage!r} is not a folder in a Kubernetes volume.", "--storage", remedy)
    return {"claim": volume["claim"], "folder": volume["folder"] or ""}
