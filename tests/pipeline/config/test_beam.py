"""The section ``beam``: what Beam is told, and what is refused before it is asked."""

from pathlib import Path

import pytest

from pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ndata: {train: a.tsv}\n"


def arguments(folder: Path, section: str = "") -> list[str]:
    (folder / "x.yaml").write_text(HEAD + section)
    return list(load(folder / "x.yaml").beam.arguments())


def test_by_default_the_jobs_run_in_this_process(tmp_path):
    assert arguments(tmp_path) == [
        "--runner=FnApiRunner",
        "--sdk_container_image=unused",
        "--direct_running_mode=in_memory",
    ]


@pytest.mark.parametrize(
    ("section", "count"),
    [("beam: {runner: processes}", 0), ("beam: {runner: processes, workers: 3}", 3)],
)
def test_processes_are_as_many_as_cores_or_as_are_asked_for(section, count, tmp_path):
    found = arguments(tmp_path, section)
    assert found[-2:] == [
        "--direct_running_mode=multi_processing",
        f"--direct_num_workers={count}",
    ]


def test_beams_own_options_are_passed_on(tmp_path):
    section = """\
beam:
  runner: flink
  workers: 8
  options:
    flink_master: flink:8081
    environment_type: EXTERNAL
    environment_config: localhost:50000
    experiments: [one, two]
    dataflow_service_options: [a=b]
    no_auth: false
    s3_verify: 3
    runtime_type_check: true
"""
    assert arguments(tmp_path, section) == [
        "--runner=FlinkRunner",
        "--parallelism=8",
        "--sdk_container_image=unused",
        "--flink_master=flink:8081",
        "--environment_type=EXTERNAL",
        "--environment_config=localhost:50000",
        "--experiments=one",
        "--experiments=two",
        "--dataflow_service_options=a=b",
        "--s3_verify=3",
        "--runtime_type_check",
    ]


def test_a_mapping_is_json_and_a_given_image_is_the_only_one(tmp_path):
    section = """\
beam:
  runner: spark
  options: {environment_type: PROCESS, environment_config: {command: /opt/apache/beam/boot}}
"""
    assert arguments(tmp_path, section)[-1] == (
        '--environment_config={"command": "/opt/apache/beam/boot"}'
    )
    section = "beam: {options: {experiments: [{x: 1}, y]}}"
    assert arguments(tmp_path, section)[-2:] == ['--experiments={"x": 1}', "--experiments=y"]
    section = "beam: {runner: spark, options: {sdk_container_image: r/i:1}}"
    assert arguments(tmp_path, section) == ["--runner=SparkRunner", "--sdk_container_image=r/i:1"]


@pytest.mark.parametrize(
    "environment",
    [
        "environment_type: LOOPBACK",
        "environment_type: DOCKER, sdk_container_image: r/i:1",
        "environment_type: DOCKER, environment_config: r/i:1",
        "environment_type: EXTERNAL, environment_options: [external_service_address=b:2]",
        "environment_type: 'beam:env:external:v1', environment_config: b:2",
    ],
)
def test_what_beam_takes_for_an_environment_is_taken(environment, tmp_path):
    section = f"beam: {{runner: portable, options: {{job_endpoint: a:1, {environment}}}}}"
    assert "--job_endpoint=a:1" in arguments(tmp_path, section)


OPTIONS = "beam: {runner: portable, options: {job_endpoint: a:1, environment_type: EXTERNAL, "
CASES = {
    "no such option": (
        OPTIONS + "environment_config: b:2, paralellism: 3}}",
        ["3: beam.options.paralellism: 'paralellism' is no option of Beam; did you mean paral"],
    ),
    "an option's beginning": (
        OPTIONS + "environment_config: b:2, parallel: 3}}",
        ["3: beam.options.parallel: 'parallel' is no option of Beam"],
    ),
    "no such value": (
        OPTIONS + "environment_config: b:2, parallelism: many}}",
        ["3: beam.options.parallelism: invalid int value: 'many'; 'many' was given"],
    ),
    "no value": (
        OPTIONS + "environment_config: b:2, parallelism: null}}",
        ["3: beam.options.parallelism: has no value; leave it out instead"],
    ),
    "what is set elsewhere": (
        OPTIONS + "environment_config: b:2, runner: FlinkRunner}}",
        ["3: beam.options.runner: is set by beam.runner; leave it out"],
    ),
    "the workers twice": (
        "beam: {runner: flink, workers: 2, options: {parallelism: 3, sdk_container_image: x}}",
        ["3: beam.options.parallelism: is what beam.workers sets; leave one of them out"],
    ),
    "workers that nobody counts": (
        "beam: {workers: 2}",
        ["3: beam.workers: in_process has no such setting; it goes with runner: processes, flink"],
    ),
    "nowhere to send a job": (
        "beam: {runner: portable, options: {sdk_container_image: x}}",
        ["3: beam.options: portable needs job_endpoint; add it here"],
    ),
    "a cloud without a project": (
        "beam: {runner: dataflow, options: {project: p, sdk_container_image: x}}",
        ["3: beam.options: dataflow needs region, temp_location; add it here"],
    ),
    "workers without our code": (
        "beam: {runner: flink}",
        ["3: beam.options: the workers would run Beam's own image, which has no Regard: add"],
    ),
    "a pool without an address": (
        OPTIONS + "}}",
        ["3: beam.options.environment_type: EXTERNAL needs environment_config: HOST:PORT"],
    ),
    "an environment that is misspelt": (
        OPTIONS.replace("EXTERNAL", "external") + "environment_config: b:2}}",
        [
            "3: beam.options.environment_type: 'external' is not a choice; choices: DOCKER, "
            "PROCESS, EXTERNAL, LOOPBACK, beam:env:…"
        ],
    ),
    "an environment that is none": (
        OPTIONS.replace("EXTERNAL", "NONSENSE") + "}}",
        ["3: beam.options.environment_type: 'NONSENSE' is not a choice; choices: DOCKER"],
    ),
    "an environment that is a list": (
        OPTIONS.replace("EXTERNAL", "[EXTERNAL]") + "}}",
        ["3: beam.options.environment_type: ['EXTERNAL'] is not a choice; choices: DOCKER"],
    ),
    "a container without an image": (
        OPTIONS.replace("EXTERNAL", "DOCKER") + "}}",
        ["3: beam.options.environment_type: DOCKER needs sdk_container_image: an image with"],
    ),
    "a process without a command": (
        OPTIONS.replace("EXTERNAL", "PROCESS") + "}}",
        ["3: beam.options.environment_type: PROCESS needs environment_config: a mapping with"],
    ),
    "an item without a value": (
        "beam: {options: {experiments: [a, null]}}",
        ["3: beam.options.experiments: item 2 has no value; leave it out instead"],
    ),
    "a job that does not end": (
        "beam: {options: {streaming: true}}",
        ["3: beam.options.streaming: the nodes' jobs are none of a stream"],
    ),
    "no workers": (
        OPTIONS + "environment_config: b:2, parallelism: 0, sdk_worker_parallelism: -3}}",
        [
            "3: beam.options.parallelism: must be at least 1; 0 was given",
            "3: beam.options.sdk_worker_parallelism: must be at least 0; -3 was given",
        ],
    ),
    "a cluster's options without a cluster": (
        "beam: {options: {job_endpoint: a:1, environment_type: EXTERNAL, flink_master: a:2, "
        "spark_version: '3', project: p}}",
        [
            "3: beam.options.job_endpoint: in_process has no use for it; it goes with runner: por",
            "3: beam.options.environment_type: in_process has no use for it; it goes with runner: ",
            "3: beam.options.flink_master: in_process has no use for it; it goes with runner: fli",
            "3: beam.options.spark_version: in_process has no use for it; it goes with runner: spa",
            "3: beam.options.project: in_process has no use for it; it goes with runner: dataflow",
        ],
    ),
    "no such runner": (
        "beam: {runner: direct}",
        ["3: beam.runner: 'direct' is not a choice"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be(case, tmp_path):
    text, expected = CASES[case]
    compare(problems_of(tmp_path, HEAD + text), expected)
