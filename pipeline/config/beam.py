"""The section ``beam``: where the Beam jobs of the nodes run, and Beam's pipeline options."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NoReturn

from pydantic import Field

from regard.models.settings.base import Positive, Problem, Section
from regard.models.suggestions import closest_matches
from regard.pipeline.config.errors import show, suggest

# The image is not used, but without this option TFX packages its own source for every node.
_NO_IMAGE = "sdk_container_image=unused"
# Beam's default runner would try to download another runner.
_LOCAL = ("runner=FnApiRunner", _NO_IMAGE)
_RUNNERS: dict[str, tuple[str, ...]] = {
    "in_process": (*_LOCAL, "direct_running_mode=in_memory"),
    "processes": (*_LOCAL, "direct_running_mode=multi_processing"),
    "portable": ("runner=PortableRunner",),
    "flink": ("runner=FlinkRunner",),
    "spark": ("runner=SparkRunner",),
    "dataflow": ("runner=DataflowRunner",),
}
# The option for the number of workers; the other runners leave it to the cluster.
_WORKER_OPTIONS = {
    "processes": "direct_num_workers",
    "flink": "parallelism",
    "dataflow": "max_num_workers",
}
_ALL_CORES = 0  # for Beam, one worker per core
# Options without which Beam would not start, or would never end.
_REQUIRED = {
    "portable": ("job_endpoint",),
    "dataflow": ("project", "region", "temp_location", "sdk_container_image"),
}
_RESERVED = {
    "runner": "beam.runner",
    "direct_running_mode": "beam.runner",
    "direct_num_workers": "beam.workers",
}
# Options, or prefixes of options, that local runners would silently ignore.
_CLUSTER_OPTIONS = {
    "job_endpoint": "portable",
    "environment_": "portable, flink, spark",
    "flink_": "flink",
    "spark_": "spark",
    "project": "dataflow",
}
# For each environment type, one of these options is required: otherwise Beam uses its own image, or
# the job never ends.
_ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "DOCKER": ("sdk_container_image", "environment_config", "environment_options"),
    "PROCESS": ("environment_config", "environment_options"),
    "EXTERNAL": ("environment_config", "environment_options"),
    "LOOPBACK": (),
}
_VALUES = {
    "DOCKER": "an image with Regard",
    "PROCESS": "a mapping with the command that starts a worker",
    "EXTERNAL": "HOST:PORT of a worker pool",
}
_URN = "beam:env:"
_SUGGESTIONS = 5
_MIN_VALUES = {
    "parallelism": 1,
    "max_parallelism": 1,
    "num_workers": 1,
    "max_num_workers": 1,
    "sdk_worker_parallelism": 0,  # the runner decides
}


class BeamConfig(Section):
    """Where the Beam jobs run: ingestion, statistics, checks, preprocessing and decoding.

    The runner does not affect the results.
    """

    runner: Literal["in_process", "processes", "portable", "flink", "spark", "dataflow"] = Field(
        default="in_process",
        description="in_process: in the process of the node, fastest up to about 100,000 rows; "
        "processes: in several processes on this machine; portable, flink, spark, dataflow: "
        "on a cluster whose workers share the files (docs/scale.md).",
    )
    workers: Positive | None = Field(
        default=None,
        description="Number of workers: processes (null: one per core), parallelism of flink, or "
        "maximum of dataflow. Not supported by other runners.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="Beam's pipeline options by name, without dashes: a string, a number, true, a "
        "list for repeated options, or a mapping for JSON.",
        examples=[{"job_endpoint": "flink-job-server:8099", "environment_type": "EXTERNAL"}],
    )

    @property
    def local(self) -> bool:
        """Whether the jobs run on the machine of the node."""
        return self.runner in ("in_process", "processes")

    def arguments(self) -> tuple[str, ...]:
        """The command-line arguments for Beam."""
        arguments = list(_RUNNERS[self.runner])
        if self.runner in _WORKER_OPTIONS:
            workers = _ALL_CORES if self.runner == "processes" else None
            workers = workers if self.workers is None else self.workers
            arguments += [] if workers is None else [f"{_WORKER_OPTIONS[self.runner]}={workers}"]
        if not self.local and "sdk_container_image" not in self.options:
            arguments.append(_NO_IMAGE)
        for name, value in self.options.items():
            arguments += format_option(name, value)
        return tuple(f"--{argument}" for argument in arguments)


def format_option(name: str, value: Any) -> list[str]:
    """Format an option for Beam's parser, without dashes; lists repeat it, false omits it."""
    if isinstance(value, bool):
        return [name] if value else []
    items = value if isinstance(value, list) else [value]
    texts = (json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for v in items)
    return [f"{name}={text}" for text in texts]


def validate_beam(beam: BeamConfig) -> Iterator[Problem]:
    """Yield unsupported options, invalid values and missing options."""
    options = beam.options
    worker_option = _WORKER_OPTIONS.get(beam.runner)
    if beam.workers is not None and worker_option is None:
        message = f"not supported by {beam.runner}, only by runner: {', '.join(_WORKER_OPTIONS)}"
        yield Problem(("beam", "workers"), message)
    for name, value in options.items():
        path = ("beam", "options", name)
        if name in _RESERVED:
            yield Problem(path, f"is set by {_RESERVED[name]}; remove it")
        elif name == worker_option and beam.workers is not None:
            yield Problem(path, "is also set by beam.workers; remove one of them")
        elif beam.local and (runners := _cluster_runners(name)):
            yield Problem(path, f"not supported by {beam.runner}, only by runner: {runners}")
        elif (problem := _problem(name, value)) is not None:
            yield Problem(path, problem)
    missing = [name for name in _REQUIRED.get(beam.runner, ()) if not options.get(name)]
    if missing:
        message = f"{beam.runner} requires {', '.join(missing)}"
        yield Problem(("beam", "options"), message)
    elif not beam.local:
        yield from _environment(beam)


def _environment(beam: BeamConfig) -> Iterator[Problem]:
    """Require an environment with Regard's code, which Beam's default image does not have."""
    kind, path = beam.options.get("environment_type"), ("beam", "options", "environment_type")
    if kind is None and not beam.options.get("sdk_container_image"):
        message = "the workers would use Beam's own image, which does not contain Regard; add "
        message += "environment_type: EXTERNAL and environment_config: HOST:PORT of a worker "
        message += "pool, or sdk_container_image: an image with Regard"
        yield Problem(path[:2], message)
    elif kind is None or str(kind).startswith(_URN):
        return
    elif str(kind) not in _ENVIRONMENTS:
        choices = suggest(kind, (*_ENVIRONMENTS, f"{_URN}…"))
        yield Problem(path, f"{show(kind)} is not a choice{choices}")
    elif (names := _ENVIRONMENTS[kind]) and not any(beam.options.get(name) for name in names):
        yield Problem(path, f"{kind} requires {names[0]}: {_VALUES[kind]}")


def _cluster_runners(name: str) -> str | None:
    """The runners that support a cluster option; None for other options."""
    matches = (
        runners
        for start, runners in _CLUSTER_OPTIONS.items()
        if name == start or (start.endswith("_") and name.startswith(start))
    )
    return next(matches, None)


def _problem(name: str, value: Any) -> str | None:
    """The problem with an option; None if Beam accepts it."""
    if value is None:
        return "has no value; remove it"
    if isinstance(value, list) and None in value:
        return f"item {value.index(None) + 1} has no value; remove it"
    if name == "streaming" and value:
        return "streaming jobs never end, and the nodes are batch jobs; remove it"
    if name in _MIN_VALUES and isinstance(value, int) and value < _MIN_VALUES[name]:
        return f"must be at least {_MIN_VALUES[name]}; {show(value)} was given"
    try:
        parse_option(name, [f"--{text}" for text in format_option(name, value)])
    except UnknownOptionError as error:
        return f"{show(name)} is not an option of Beam{suggest(name, error.similar)}"
    except InvalidValueError as error:
        return f"{error}; {show(value)} was given"
    return None


class UnknownOptionError(Exception):
    """Beam has no such option; ``similar`` has the most similar names."""

    def __init__(self, similar: list[str]):
        super().__init__(similar)
        self.similar = similar


class InvalidValueError(Exception):
    """Beam does not accept this value of the option."""


class _Parser(argparse.ArgumentParser):
    """Raises an error instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise InvalidValueError(message.partition(": ")[2] or message)


def parse_option(name: str, arguments: Sequence[str]) -> None:
    """Parse an option with Beam's parsers, which silently ignore unknown options.

    Args:
        name: The name of the option.
        arguments: The option with its values, as command-line arguments.

    Raises:
        UnknownOptionError: Beam has no such option.
        InvalidValueError: Beam does not accept the value.
    """
    parser, names = _beam_parser()
    if name not in names:
        raise UnknownOptionError(closest_matches(name, names, _SUGGESTIONS))
    parser.parse_known_args(arguments)


@functools.cache
def _beam_parser() -> tuple[argparse.ArgumentParser, frozenset[str]]:
    """A parser of all of Beam's options, and their names. Imports Beam, which takes seconds."""
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = _Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    names: set[str] = set()
    add_argument = parser.add_argument

    def record_name(*flags: str, **options: Any) -> argparse.Action:
        names.update(flag.removeprefix("--") for flag in flags)
        return add_argument(*flags, **options)

    parser.add_argument = record_name  # type: ignore[method-assign]
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    return parser, frozenset(names)
