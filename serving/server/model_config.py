"""Which models and versions are served, read from TensorFlow Serving's ``models.config``."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpc import StatusCode

from regard.core.regular_files import open_regular
from regard.serving.server.errors import ServingError, invalid

PLATFORM = "tensorflow"
_MAX_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class VersionPolicy:
    """Which of the existing versions are served.

    Attributes:
        latest: how many of the newest versions; None if ``specific`` decides.
        specific: these versions, if they exist; None: every version.
    """

    latest: int | None = 1
    specific: tuple[int, ...] | None = None

    def select(self, versions: Sequence[int]) -> list[int]:
        """Return the versions to serve, the oldest first."""
        if self.latest is not None:
            return sorted(versions)[-self.latest :]
        return sorted(versions if self.specific is None else set(self.specific) & set(versions))


@dataclass(frozen=True)
class ModelConfig:
    """One served model.

    Attributes:
        name: the name in requests.
        base_path: the folder with one folder for each version.
        policy: the rule for the versions that are served.
        labels: version numbers by label.
        refresh: copies new versions into ``base_path``; None if other processes write it.
    """

    name: str
    base_path: Path
    policy: VersionPolicy = VersionPolicy()
    labels: Mapping[str, int] = field(default_factory=dict)
    refresh: Callable[[], object] | None = None


def read_models(path: str | os.PathLike[str]) -> list[ModelConfig]:
    """Read a ``ModelServerConfig`` file in the text format of protocol buffers.

    Raises:
        ServingError: the file cannot be read, or a model in it is invalid.
    """
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    try:
        with os.fdopen(open_regular(path), encoding="utf-8") as file:
            text = file.read(_MAX_CHARACTERS + 1)
        if len(text) > _MAX_CHARACTERS:
            raise invalid(f"{os.fspath(path)} has more than {_MAX_CHARACTERS:,} characters.")
        text_format.Parse(text, config)
    except OSError as error:
        raise ServingError(StatusCode.NOT_FOUND, f"{os.fspath(path)}: {error.strerror}") from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise invalid(f"{os.fspath(path)}:{error}") from None
    return parse_models(config)


def parse_models(config: Any) -> list[ModelConfig]:
    """Convert a ``ModelServerConfig`` message, or the bytes of one.

    Raises:
        ServingError: two models have the same name, or a model is invalid.
    """
    if isinstance(config, bytes):
        from google.protobuf.message import DecodeError
        from tensorflow_serving.config import model_server_config_pb2

        try:
            config = model_server_config_pb2.ModelServerConfig.FromString(config)
        except DecodeError:
            raise invalid("The configuration is not a valid ModelServerConfig.") from None
    if config.WhichOneof("config") != "model_config_list":
        raise invalid("The configuration has no model_config_list.")
    models: dict[str, ModelConfig] = {}
    for entry in config.model_config_list.config:
        if entry.name in models:
            raise invalid(f"The configuration lists model {entry.name!r} twice.")
        models[entry.name] = _parse_model(entry)
    return list(models.values())


def check_roots(models: Sequence[ModelConfig], roots: Sequence[Path]) -> None:
    """Check that the folder of every model, links followed, lies in one of the roots.

    Raises:
        ServingError: it does not, or there are no roots.
    """
    if not roots:
        message = "Clients may not replace the models. See `regard serve --allow-reload`."
        raise ServingError(StatusCode.PERMISSION_DENIED, message)
    allowed = [os.path.realpath(root) for root in roots]
    for model in models:
        folder = Path(os.path.realpath(model.base_path))
        if not any(folder.is_relative_to(root) for root in allowed):
            path = str(model.base_path)
            message = f"Model {model.name!r}: clients may not load models from {path!r}."
            raise ServingError(StatusCode.PERMISSION_DENIED, message)


def _parse_model(entry: Any) -> ModelConfig:
    validate_name(entry.name)
    if not entry.model_type and entry.model_platform != PLATFORM:
        platform = entry.model_platform or "none"
        raise invalid(f"Model {entry.name!r}: model_platform is {platform}. Use {PLATFORM!r}.")
    path = entry.base_path.removeprefix("file://")
    if "\0" in path:
        raise invalid(f"Model {entry.name!r}: base_path {entry.base_path!r} has a null character.")
    if not os.path.isabs(path):
        raise invalid(f"Model {entry.name!r}: base_path {entry.base_path!r} is not absolute.")
    choice = entry.model_version_policy.WhichOneof("policy_choice")
    policy = VersionPolicy()
    if choice == "latest":
        policy = VersionPolicy(latest=entry.model_version_policy.latest.num_versions or 1)
    elif choice == "all":
        policy = VersionPolicy(latest=None)
    elif choice == "specific":
        versions = tuple(entry.model_version_policy.specific.versions)
        if not versions:
            raise invalid(f"Model {entry.name!r}: the policy `specific` lists no versions.")
        policy = VersionPolicy(latest=None, specific=versions)
    return ModelConfig(entry.name, Path(path), policy, dict(entry.version_labels))


def validate_name(name: str) -> None:
    """Reject a model name that is empty or could leave the registry's folder.

    Raises:
        ServingError: the name is invalid.
    """
    if not name.isprintable() or name in ("", ".", "..") or "/" in name or "\\" in name:
        raise invalid(f"{name!r} is not a valid model name.")
