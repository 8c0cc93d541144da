"""The section ``beam``: where the Beam jobs of the nodes run, and Beam's pipeline options."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, JsonValue

from regard.models.settings.base import Positive, Problem, Section, option
from regard.models.suggestions import closest_matches
from regard.pipeline.config.errors import show, suggest, unknown

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
# Options without which Beam would not start, or would never end.
_REQUIRED = {
    "portable": ("job_endpoint",),
    "dataflow": ("project", "region", "temp_location", "sdk_container_image"),
}
_RESERVED = ("runner", "direct_running_mode", "direct_num_workers")
# Prefixes of options that local runners would silently ignore.
_CLUSTER_OPTIONS = ("job_endpoint", "environment_", "flink_", "spark_", "project")
# For each environment type, one of these options is required: otherwise Beam uses its own image, or
# the job never ends.
_CONFIG = ("environment_config", "environment_options")
_ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "DOCKER": ("sdk_container_image", *_CONFIG),
    "PROCESS": _CONFIG,
    "EXTERNAL": _CONFIG,
    "LOOPBACK": (),
}
_URN = "beam:env:"
_POSITIVE = ("parallelism", "max_parallelism", "num_workers", "max_num_workers")


class BeamConfig(Section):
    """Where the Beam jobs run: ingestion, statistics, checks, preprocessing and decoding.

    The runner does not affect the results.
    """

    runner: Literal["in_process", "processes", "portable", "flink", "spark", "dataflow"] = option(
        "in_process",
        "in_process: in the process of the node, fastest up to about 100,000 rows; processes: in "
        "several processes on this machine; portable, flink, spark, dataflow: on a cluster whose "
        "workers share the files (docs/scale.md).",
    )
    workers: Positive | None = option(
        None,
        "Number of workers: processes (null: one per core), parallelism of flink, or maximum of "
        "dataflow. Not supported by other runners.",
    )
    options: dict[str, JsonValue] = Field(
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
        workers = self.workers or (0 if self.runner == "processes" else None)  # 0: one per core
        if workers is not None:
            arguments.append(f"{_WORKER_OPTIONS[self.runner]}={workers}")
        if not self.local and "sdk_container_image" not in self.options:
            arguments.append(_NO_IMAGE)
        for name, value in self.options.items():
            arguments += format_option(name, value)
        return tuple(f"--{argument}" for argument in arguments)


def format_option(name: str, value: JsonValue) -> list[str]:
    """Format an option for Beam's parser, without dashes; lists repeat it, false omits it."""
    if isinstance(value, bool):
        return [name] if value else []
    items = value if isinstance(value, list) else [value]
    texts = (json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for v in items)
    return [f"{name}={text}" for text in texts]


def validate_beam(beam: BeamConfig) -> Iterator[Problem]:
    """Yield unsupported options, invalid values and missing options."""
    options, path = beam.options, ("beam", "options")
    if beam.workers is not None and beam.runner not in _WORKER_OPTIONS:
        message = f"not supported by {beam.runner}, only by runner: {', '.join(_WORKER_OPTIONS)}"
        yield Problem(("beam", "workers"), message)
    for name, value in options.items():
        if problem := _problem(beam, name, value):
            yield Problem((*path, name), problem)
    missing = [name for name in _REQUIRED.get(beam.runner, ()) if not options.get(name)]
    if missing:
        yield Problem(path, f"{beam.runner} requires {', '.join(missing)}")
    elif not beam.local:
        yield from _validate_environment(beam)


def _validate_environment(beam: BeamConfig) -> Iterator[Problem]:
    """Require an environment with Regard's code, which Beam's default image does not have."""
    kind, path = beam.options.get("environment_type"), ("beam", "options", "environment_type")
    if kind is None and not beam.options.get("sdk_container_image"):
        message = "Beam's own image does not contain Regard; set sdk_container_image, or "
        message += "environment_type: EXTERNAL and environment_config: HOST:PORT of a worker pool"
        yield Problem(path[:2], message)
    elif kind is None or str(kind).startswith(_URN):
        return
    elif str(kind) not in _ENVIRONMENTS:
        yield Problem(path, unknown(kind, (*_ENVIRONMENTS, f"{_URN}…")))
    elif (names := _ENVIRONMENTS[str(kind)]) and not any(map(beam.options.get, names)):
        yield Problem(path, f"{kind} requires {names[0]}")


def _problem(beam: BeamConfig, name: str, value: JsonValue) -> str | None:
    """Return the problem with an option; None if Beam accepts it.

    Beam silently ignores unknown options, and local runners those of a cluster.
    """
    if name in _RESERVED:
        return "is set by beam.runner and beam.workers; remove it"
    if name == _WORKER_OPTIONS.get(beam.runner) and beam.workers is not None:
        return "is also set by beam.workers; remove one of them"
    if beam.local and name.startswith(_CLUSTER_OPTIONS):
        return f"is for a cluster, not for runner: {beam.runner}; remove it"
    if value is None or (isinstance(value, list) and None in value):
        return "has no value; remove it"
    if name == "streaming" and value:
        return "streaming jobs never end, and the nodes are batch jobs; remove it"
    if name in _POSITIVE and isinstance(value, int) and value < 1:
        return f"must be at least 1; {show(value)} was given"
    parser = _beam_parser()
    names = {flag.removeprefix("--") for flag in parser._option_string_actions}
    if name not in names:
        similar = closest_matches(name, names, n=5)
        hint = f". {suggest(name, similar)}" if similar else ""
        return f"{show(name)} is not an option of Beam{hint}"
    try:
        parser.parse_known_args([f"--{text}" for text in format_option(name, value)])
    except argparse.ArgumentError as error:
        return f"{error.message}; {show(value)} was given"
    return None


@functools.cache
def _beam_parser() -> argparse.ArgumentParser:
    """Return a parser of all of Beam's options. Imports Beam, which takes seconds."""
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, conflict_handler="resolve", exit_on_error=False
    )
    for kind in PipelineOptions.__subclasses__():
        kind._add_argparse_args(parser)
    return parser
