"""The section ``beam``: where the Beam jobs of the nodes run, and Beam's pipeline options."""

import argparse
import functools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from regard.core.bounds import Positive
from regard.core.suggestions import closest_matches, suggest
from regard.models.settings.base import Problem, Section
from regard.models.settings.validation_errors import show, unknown

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
# Defaults for Flink: DataSet jobs may wait forever in other modes (FLINK-10672), and the job server
# that Beam starts would be for Flink 2.
_FLINK_DEFAULTS = {"execution_mode_for_batch": "BATCH_FORCED", "flink_version": "1.20"}
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
_ENVIRONMENTS = {**dict.fromkeys(("DOCKER", "PROCESS", "EXTERNAL"), _CONFIG), "LOOPBACK": ()}
_URN = "beam:env:"
_MINIMA = {
    **dict.fromkeys(("parallelism", "max_parallelism", "num_workers", "max_num_workers"), 1),
    "sdk_worker_parallelism": 0,
}
JOB_SERVER_SECTIONS = {
    "flink": ("all", "flink", "flink_streams"),
    "spark": ("all", "spark"),
    "portable": ("all", "flink", "flink_streams", "spark"),
}


class BeamConfig(Section):
    """Where the Beam jobs run: ingestion, statistics, checks, preprocessing and decoding.

    The runner does not affect the results.

    Attributes:
        runner: in_process: in the process of the node, fastest up to about 100,000 rows; processes:
            in several processes on this machine; portable, flink, spark, dataflow: on a cluster
            whose workers share the files (docs/how-to/flink.md).
        workers: Number of Python processes: of processes (null: one per core), of flink (a multiple
            of options.sdk_worker_parallelism), or the maximum of dataflow. Not supported by other
            runners.
        options: Beam's pipeline options by name, without dashes: a string, a number, true, a list
            for repeated options, or a mapping for JSON.
    """

    runner: Literal["in_process", "processes", "portable", "flink", "spark", "dataflow"] = (
        "in_process"
    )
    workers: Positive | None = None
    options: Annotated[
        dict[str, JsonValue],
        Field(examples=[{"job_endpoint": "flink-job-server:8099", "environment_type": "EXTERNAL"}]),
    ] = {}

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
        types = job_server_options(*JOB_SERVER_SECTIONS.get(self.runner, ()))
        defaults: dict[str, JsonValue] = {**_FLINK_DEFAULTS} if self.runner == "flink" else {}
        if "job_endpoint" in self.options:  # another job server
            defaults.pop("flink_version", None)
        for name, value in {**defaults, **self.options}.items():
            arguments += format_option(name, not value if types.get(name) == "true" else value)
        return tuple(f"--{argument}" for argument in arguments)


def format_option(name: str, value: JsonValue) -> list[str]:
    """Format an option for Beam's parser, without dashes; lists repeat it, false omits it."""
    if isinstance(value, bool):
        return [name] if value else []
    items = value if isinstance(value, list) else [value]
    texts = (json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for v in items)
    return [f"{name}={text}" for text in texts]


@functools.cache
def job_server_options(*sections: str) -> dict[str, str]:
    """Return the types of the options that a job server adds to those of Beam's SDK, by name.

    Beam's SDK knows them only after the job server has listed them (DescribePipelineOptions, Beam
    2.62 to 2.70). Those for endless streams and detached jobs are left out. ``true`` is the type of
    a flag that is set by default and makes it false, ``A|B`` that of a choice. Flink's legacy
    DataSet API, the default for batch jobs, does not read ``flink_streams``.
    """
    file = Path(__file__).with_name("job_server_options.json")
    listed = json.loads(file.read_text(encoding="utf-8"))
    options: dict[str, str] = {}
    for section in sections:
        options |= listed[section]
    return options


def validate_beam(beam: BeamConfig) -> Iterator[Problem]:
    """Yield unsupported options, invalid values and missing options."""
    options = beam.options
    path = ("beam", "options")
    if beam.workers is not None and (problem := _workers_problem(beam, beam.workers)):
        yield Problem(("beam", "workers"), problem)
    for name, value in options.items():
        if problem := _problem(beam, name, value):
            yield Problem((*path, name), problem)
    missing = [name for name in _REQUIRED.get(beam.runner, ()) if not options.get(name)]
    if missing:
        yield Problem(path, f"{beam.runner} requires {', '.join(missing)}")
    elif not beam.local:
        yield from _validate_environment(beam)


def _workers_problem(beam: BeamConfig, workers: int) -> str | None:
    """Return why the cluster would not run as many processes as there are workers."""
    processes = beam.options.get("sdk_worker_parallelism")
    if beam.runner not in _WORKER_OPTIONS:
        message = f"not supported by {beam.runner}, only by runner: {', '.join(_WORKER_OPTIONS)}"
        if beam.runner in JOB_SERVER_SECTIONS:
            message += "; set options.sdk_worker_parallelism, the processes of each executor"
        return message
    if beam.runner != "flink":
        return None
    if isinstance(processes, int) and processes > 0 and workers % processes == 0:
        return None
    message = "flink starts options.sdk_worker_parallelism Python processes in each TaskManager, "
    return message + f"by default 1; set it to a TaskManager's slots, a divisor of {workers}"


def _validate_environment(beam: BeamConfig) -> Iterator[Problem]:
    """Require an environment with Regard's code, which Beam's default image does not have."""
    kind = beam.options.get("environment_type")
    path = ("beam", "options", "environment_type")
    if kind is None and beam.runner != "dataflow":
        message = "Beam's own image does not contain Regard; set environment_type: EXTERNAL and "
        message += "environment_config: HOST:PORT of a worker pool, or environment_type: DOCKER "
        message += "and environment_config: IMAGE"
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
    if name == "sdk_container_image" and beam.runner in JOB_SERVER_SECTIONS:
        return f"is not read by {beam.runner}; set environment_type: DOCKER and environment_config"
    if name == "flink_version" and str(value).startswith("2"):
        return "must be 1.19 or 1.20: jobs fail on Flink 2 (apache/beam#37583)"
    is_data_set = beam.runner == "flink" and not beam.options.get("use_data_stream_for_batch")
    if is_data_set and name in job_server_options("flink_streams"):
        message = "is ignored by Flink's DataSet jobs; set use_data_stream_for_batch: true, or for "
        return message + "retries restart-strategy in the cluster's configuration (docs/flink.yaml)"
    minimum = _MINIMA.get(name)
    if minimum is not None and isinstance(value, int) and value < minimum:
        return f"must be at least {minimum}; {show(value)} was given"
    parser = _beam_parser(beam.runner)
    names = {flag.removeprefix("--") for flag in parser._option_string_actions}
    if name not in names:
        similar = closest_matches(name, names, n=5)
        hint = f". {suggest(name, similar)}" if similar else ""
        return f"{show(name)} is not an option of Beam{hint}"
    try:  # false, too, is for flags only
        texts = [name] if isinstance(value, bool) else format_option(name, value)
        parser.parse_known_args([f"--{text}" for text in texts])
    except argparse.ArgumentError as error:
        return f"{error.message}; {show(value)} was given"
    return None


@functools.cache
def _beam_parser(runner: str) -> argparse.ArgumentParser:
    """Return a parser of all options of a runner. Imports Beam, which takes seconds."""
    # Beam warns at its import that a library for MongoDB is missing.
    logging.getLogger("apache_beam.io.mongodbio").disabled = True
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, conflict_handler="resolve", exit_on_error=False
    )
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for name, kind in job_server_options(*JOB_SERVER_SECTIONS.get(runner, ())).items():
        if kind in ("bool", "true"):
            parser.add_argument(f"--{name}", action="store_true")
        else:
            choices = kind.split("|") if "|" in kind else None
            parser.add_argument(f"--{name}", type=int if kind == "int" else str, choices=choices)
    return parser
