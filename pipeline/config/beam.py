"""The section ``beam``: where the Beam jobs of the nodes run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from models.settings.base import Positive, Problem, Section
from pipeline.config.errors import show, suggest

# The image is never used, but without a name for it TFX packs its own source for every node.
_NO_IMAGE = "sdk_container_image=unused"
# In this process and without a server: Beam's default runner first tries to download another.
_LOCAL = ("runner=FnApiRunner", _NO_IMAGE)
_RUNNERS: dict[str, tuple[str, ...]] = {
    "in_process": (*_LOCAL, "direct_running_mode=in_memory"),
    "processes": (*_LOCAL, "direct_running_mode=multi_processing"),
    "portable": ("runner=PortableRunner",),
    "flink": ("runner=FlinkRunner",),
    "spark": ("runner=SparkRunner",),
    "dataflow": ("runner=DataflowRunner",),
}
# What Beam calls the number of workers; elsewhere it is the cluster's affair.
_WORKERS = {
    "processes": "direct_num_workers",
    "flink": "parallelism",
    "dataflow": "max_num_workers",
}
_ALL_CORES = 0  # what Beam takes for as many as there are
# What Beam would not begin without, or begin and never end.
_NEEDED = {
    "portable": ("job_endpoint",),
    "dataflow": ("project", "region", "temp_location", "sdk_container_image"),
}
_OURS = {
    "runner": "beam.runner",
    "direct_running_mode": "beam.runner",
    "direct_num_workers": "beam.workers",
}
# Options of clusters by how their names begin, which the local runners would pass over.
_ELSEWHERE = {
    "job_endpoint": "portable",
    "environment_": "portable, flink, spark",
    "flink_": "flink",
    "spark_": "spark",
    "project": "dataflow",
}
# Who runs the workers' Python, and what each of them needs one of: else it is Beam's own image, or
# the job waits for ever.
_ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "DOCKER": ("sdk_container_image", "environment_config", "environment_options"),
    "PROCESS": ("environment_config", "environment_options"),
    "EXTERNAL": ("environment_config", "environment_options"),
    "LOOPBACK": (),
}
_MEANT = {
    "DOCKER": "an image with Regard",
    "PROCESS": "a mapping with the command that starts a worker",
    "EXTERNAL": "HOST:PORT of a pool of workers",
}
_URN = "beam:env:"
_LEAST = {
    "parallelism": 1,
    "max_parallelism": 1,
    "num_workers": 1,
    "max_num_workers": 1,
    "sdk_worker_parallelism": 0,  # as the runner has it
}


class Beam(Section):
    """Where the Beam jobs of the nodes run: reading, statistics, checks, preprocessing, decoding.

    The result is the same everywhere.
    """

    runner: Literal["in_process", "processes", "portable", "flink", "spark", "dataflow"] = Field(
        default="in_process",
        description="in_process: in the node's own process, the quickest up to some 100,000 rows; "
        "processes: in several processes of this machine; portable, flink, spark, dataflow: "
        "elsewhere, by workers that see the same files (docs/scale.md).",
    )
    workers: Positive | None = Field(
        default=None,
        description="How many there are: processes (null: one a core), flink's parallelism, "
        "dataflow's most workers. The others know that by themselves.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="Beam's own pipeline options, by their names without the dashes: a text, a "
        "number, true, a list for an option that may stand several times, a mapping for JSON.",
        examples=[{"job_endpoint": "flink-job-server:8099", "environment_type": "EXTERNAL"}],
    )

    @property
    def local(self) -> bool:
        """Whether the jobs run on the machine that the node runs on."""
        return self.runner in ("in_process", "processes")

    def arguments(self) -> tuple[str, ...]:
        """Beam's arguments."""
        set_here = list(_RUNNERS[self.runner])
        if self.runner in _WORKERS:
            workers = _ALL_CORES if self.runner == "processes" else None
            workers = workers if self.workers is None else self.workers
            set_here += [] if workers is None else [f"{_WORKERS[self.runner]}={workers}"]
        if not self.local and "sdk_container_image" not in self.options:
            set_here.append(_NO_IMAGE)
        given = [text for name, value in self.options.items() for text in option(name, value)]
        return tuple(f"--{text}" for text in (*set_here, *given))


def option(name: str, value: Any) -> list[str]:
    """An option as Beam's parser takes it, without the dashes: as often as the value says."""
    if isinstance(value, bool):
        return [name] if value else []
    items = value if isinstance(value, list) else [value]
    texts = (json.dumps(one, sort_keys=True) if isinstance(one, dict) else one for one in items)
    return [f"{name}={text}" for text in texts]


def impossible_beam(beam: Beam) -> Iterator[Problem]:
    """Yields what cannot work: options that Beam has not, values, and what is missing."""
    options = beam.options
    named = _WORKERS.get(beam.runner)
    if beam.workers is not None and named is None:
        message = f"{beam.runner} has no such setting; it goes with runner: " + ", ".join(_WORKERS)
        yield Problem(("beam", "workers"), message)
    for name, value in options.items():
        path = ("beam", "options", name)
        if name in _OURS:
            yield Problem(path, f"is set by {_OURS[name]}; leave it out")
        elif name == named and beam.workers is not None:
            yield Problem(path, "is what beam.workers sets; leave one of them out")
        elif beam.local and (runners := _elsewhere(name)):
            yield Problem(path, f"{beam.runner} has no use for it; it goes with runner: {runners}")
        elif (wrong := _wrong(name, value)) is not None:
            yield Problem(path, wrong)
    missing = [name for name in _NEEDED.get(beam.runner, ()) if not options.get(name)]
    if missing:
        message = f"{beam.runner} needs {', '.join(missing)}; add it here"
        yield Problem(("beam", "options"), message)
    elif not beam.local:
        yield from _environment(beam)


def _environment(beam: Beam) -> Iterator[Problem]:
    """The workers must have Regard's code: Beam's own image, its default, has not."""
    kind, path = beam.options.get("environment_type"), ("beam", "options", "environment_type")
    if kind is None and not beam.options.get("sdk_container_image"):
        message = "the workers would run Beam's own image, which has no Regard: add "
        message += "environment_type: EXTERNAL and environment_config: HOST:PORT of a pool of "
        message += "workers, or sdk_container_image: an image with Regard"
        yield Problem(path[:2], message)
    elif kind is None or str(kind).startswith(_URN):
        return
    elif str(kind) not in _ENVIRONMENTS:
        choices = suggest(kind, (*_ENVIRONMENTS, f"{_URN}…"))
        yield Problem(path, f"{show(kind)} is not a choice{choices}")
    elif (needed := _ENVIRONMENTS[kind]) and not any(beam.options.get(name) for name in needed):
        yield Problem(path, f"{kind} needs {needed[0]}: {_MEANT[kind]}")


def _elsewhere(name: str) -> str | None:
    """The runners that an option of a cluster goes with; None for any other."""
    found = (
        runners
        for start, runners in _ELSEWHERE.items()
        if name == start or (start.endswith("_") and name.startswith(start))
    )
    return next(found, None)


def _wrong(name: str, value: Any) -> str | None:
    """What is wrong with an option; None where Beam takes it."""
    if value is None:
        return "has no value; leave it out instead"
    if isinstance(value, list) and None in value:
        return f"item {value.index(None) + 1} has no value; leave it out instead"
    if name == "streaming" and value:
        return "the nodes' jobs are none of a stream, which would not end; leave it out"
    if name in _LEAST and isinstance(value, int) and value < _LEAST[name]:
        return f"must be at least {_LEAST[name]}; {show(value)} was given"
    # Beam is imported only where somebody gives options: it takes a second or two.
    from pipeline.config.beam_options import Refused, Unknown, check

    try:
        check(name, [f"--{text}" for text in option(name, value)])
    except Unknown as unknown:
        return f"{show(name)} is no option of Beam{suggest(name, unknown.near)}"
    except Refused as refused:
        return f"{refused}; {show(value)} was given"
    return None
