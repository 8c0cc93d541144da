"""Which models are served, in which versions, and how requests are put together: the files' way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from serving.local.status import Code, ServingError, invalid

PLATFORM = "tensorflow"


@dataclass(frozen=True)
class Policy:
    """Which of the versions that are there are served.

    Attributes:
        latest: so many of the newest; None where another attribute says it.
        every: all of them.
        specific: these, as far as they are there.
    """

    latest: int | None = 1
    every: bool = False
    specific: tuple[int, ...] = ()

    def choose(self, there: Sequence[int]) -> list[int]:
        """The versions to serve of those that are there, the oldest first."""
        if self.every:
            return sorted(there)
        if self.latest is not None:
            return sorted(there)[-self.latest :]
        return sorted(set(self.specific) & set(there))


@dataclass(frozen=True)
class ModelConfig:
    """One model.

    Attributes:
        name: by which it is asked for.
        base_path: the folder of its versions.
        policy: which of these are served.
        labels: versions by names of their own.
    """

    name: str
    base_path: Path
    policy: Policy = Policy()
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Batching:
    """How requests that wait are put together into one; the fields of TensorFlow Serving's file.

    Attributes:
        max_batch_size: rows of a batch at most.
        batch_timeout_micros: how long an incomplete batch waits for more, in microseconds.
        max_enqueued_batches: how many batches may wait; beyond that requests are refused.
        num_batch_threads: how many batches are worked on side by side.
        enable_large_batch_splitting: whether a request of more rows is taken apart.
        max_execution_batch_size: rows of each part then; 0: ``max_batch_size``.
        allowed_batch_sizes: the sizes that batches are filled up to; none: any.
        pad_variable_length_inputs: whether tensors of different shapes are padded to one, with
            the first element of each, as TensorFlow Serving does it.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = os.cpu_count() or 1
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 0
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False

    def __post_init__(self) -> None:
        sizes = self.allowed_batch_sizes
        if sizes and list(sizes) != sorted(set(sizes)):
            raise invalid("allowed_batch_sizes entries must be monotonically increasing")
        largest = self.largest
        if sizes and sizes[-1] != largest:
            split = self.enable_large_batch_splitting
            limit = "max_execution_batch_size" if split else "max_batch_size"
            told = f"Last entry in allowed_batch_sizes must match {limit}; last entry was "
            raise invalid(told, f"{sizes[-1]}; expected {largest}")

    @property
    def largest(self) -> int:
        """Rows of what is run at once, at most."""
        if self.enable_large_batch_splitting and self.max_execution_batch_size:
            return self.max_execution_batch_size
        return self.max_batch_size


def read_models(path: str | os.PathLike[str]) -> list[ModelConfig]:
    """The models of a ``ModelServerConfig`` in the text format of protocol buffers.

    Raises:
        ServingError: the file cannot be read, or says something that cannot be.
    """
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    _read_text(path, config)
    return models_of(config)


def models_of(config: Any) -> list[ModelConfig]:
    """The models of a ``ModelServerConfig``.

    Raises:
        ServingError: two have one name, or one lacks something.
    """
    if config.WhichOneof("config") != "model_config_list":
        raise invalid("Invalid ServerModelConfig: only model_config_list is supported.")
    models: dict[str, ModelConfig] = {}
    for entry in config.model_config_list.config:
        if entry.name in models:
            raise invalid("Illegal to list model ", entry.name, " multiple times in config list")
        models[entry.name] = _model(entry)
    return list(models.values())


def _model(entry: Any) -> ModelConfig:
    check_name(entry.name)
    if not entry.model_platform and not entry.model_type:
        raise invalid("Illegal setting neither model type nor platform for model ", entry.name)
    if entry.model_platform not in ("", PLATFORM):
        raise invalid("ModelServer does not support platform ", entry.model_platform)
    path = entry.base_path.removeprefix("file://")
    if not os.path.isabs(path):
        told = f"Expected model {entry.name} to have an absolute path or URI; got base_path()="
        raise invalid(told, entry.base_path)
    kind = entry.model_version_policy.WhichOneof("policy_choice")
    policy = Policy()
    if kind == "latest":
        policy = Policy(latest=entry.model_version_policy.latest.num_versions or 1)
    elif kind == "all":
        policy = Policy(latest=None, every=True)
    elif kind == "specific":
        versions = tuple(entry.model_version_policy.specific.versions)
        if not versions:
            raise invalid("No specific versions found to serve for model ", entry.name)
        policy = Policy(latest=None, specific=versions)
    return ModelConfig(entry.name, Path(path), policy, dict(entry.version_labels))


def check_name(name: str) -> None:
    """A model's name is no path.

    Raises:
        ServingError: it is empty, or would lead out of a folder.
    """
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise invalid(f"{name!r} is no name of a model")


def read_batching(path: str | os.PathLike[str]) -> Batching:
    """The parameters of a batching file, ``max_batch_size { value: 32 }`` and so on.

    Raises:
        ServingError: the file cannot be read, or says something that cannot be.
    """
    message = _batching_message()
    _read_text(path, message)
    given: dict[str, Any] = {}
    for name in ("allowed_batch_sizes", "pad_variable_length_inputs"):
        value = getattr(message, name)
        given[name] = value if isinstance(value, bool) else tuple(value)
    for descriptor in message.DESCRIPTOR.fields:
        known = descriptor.name in Batching.__dataclass_fields__ and descriptor.name not in given
        if known and message.HasField(descriptor.name):
            given[descriptor.name] = getattr(message, descriptor.name).value
    for name in ("max_batch_size", "max_enqueued_batches", "num_batch_threads"):
        if given.get(name, 1) < 1:
            raise invalid(f"{os.fspath(path)}: {name} must be at least 1, not {given[name]}")
    return Batching(**given)


def _read_text(path: str | os.PathLike[str], message: Any) -> None:
    from google.protobuf import text_format

    try:
        text_format.Parse(Path(path).read_text(encoding="utf-8"), message)
    except OSError as error:
        told = f"{os.fspath(path)}: {error.strerror}"
        raise ServingError(Code.NOT_FOUND, told) from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise invalid(f"{os.fspath(path)}:{error}") from None


@cache
def _batching_class() -> Any:
    """``BatchingParameters``, which the package with TensorFlow Serving's messages leaves out."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    wrappers = descriptor_pb2.FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(wrappers)
    pool.Add(wrappers)
    file = descriptor_pb2.FileDescriptorProto(
        name="regard/batching.proto",
        package="regard",
        syntax="proto3",
        dependency=[wrappers.name],
    )
    message = file.message_type.add(name="BatchingParameters")
    field_type = descriptor_pb2.FieldDescriptorProto
    # The numbers do not matter in a text.
    wrapped = {
        "max_batch_size": "Int64Value",
        "batch_timeout_micros": "Int64Value",
        "max_enqueued_batches": "Int64Value",
        "num_batch_threads": "Int64Value",
        "thread_pool_name": "StringValue",
        "enable_large_batch_splitting": "BoolValue",
        "max_execution_batch_size": "Int64Value",
    }
    for number, (name, kind) in enumerate(wrapped.items(), 1):
        message.field.add(
            name=name,
            number=number,
            label=field_type.LABEL_OPTIONAL,
            type=field_type.TYPE_MESSAGE,
            type_name=f".google.protobuf.{kind}",
        )
    message.field.add(
        name="allowed_batch_sizes",
        number=20,
        label=field_type.LABEL_REPEATED,
        type=field_type.TYPE_INT64,
    )
    message.field.add(
        name="pad_variable_length_inputs",
        number=21,
        label=field_type.LABEL_OPTIONAL,
        type=field_type.TYPE_BOOL,
    )
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("regard.BatchingParameters"))


def _batching_message() -> Any:
    return _batching_class()()
