"""The section ``beam``: arguments for Beam, and problems."""

from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata: {train: a.tsv}\n"


def arguments(folder: Path, section: str = "") -> list[str]:
    return list(load_text(folder, HEAD + section).beam.arguments())


def test_default_runner_is_in_process(tmp_path):
    assert arguments(tmp_path) == [
        "--runner=FnApiRunner",
        "--sdk_container_image=unused",
        "--direct_running_mode=in_memory",
    ]


@pytest.mark.parametrize(
    ("section", "count"),
    [("beam: {runner: processes}", 0), ("beam: {runner: processes, workers: 3}", 3)],
)
def test_number_of_processes(section, count, tmp_path):
    assert arguments(tmp_path, section)[-2:] == [
        "--direct_running_mode=multi_processing",
        f"--direct_num_workers={count}",
    ]


def test_options_become_arguments(tmp_path):
    section = """\
beam:
  runner: flink
  workers: 8
  options:
    flink_master: flink:8081
    environment_type: EXTERNAL
    environment_config: localhost:50000
    sdk_worker_parallelism: 4
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
        "--execution_mode_for_batch=BATCH_FORCED",
        "--flink_version=1.20",
        "--flink_master=flink:8081",
        "--environment_type=EXTERNAL",
        "--environment_config=localhost:50000",
        "--sdk_worker_parallelism=4",
        "--experiments=one",
        "--experiments=two",
        "--dataflow_service_options=a=b",
        "--s3_verify=3",
        "--runtime_type_check",
    ]


def test_mapping_becomes_json_and_image_is_replaced(tmp_path):
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


POOL = "job_endpoint: a:1, environment_type: EXTERNAL, environment_config: b:2"
FLINK = f"beam: {{runner: flink, options: {{{POOL}, "
SPARK = f"beam: {{runner: spark, options: {{{POOL}, "


def test_options_of_job_servers(tmp_path):
    """They reach Beam, which drops those that its job server does not list."""
    section = FLINK + (
        "execution_mode_for_batch: PIPELINED, use_data_stream_for_batch: true, object_reuse: true, "
        "number_of_execution_retries: 3, checkpointing_interval: -1, max_bundle_size: 100}}"
    )
    assert arguments(tmp_path, section) == [
        "--runner=FlinkRunner",
        "--sdk_container_image=unused",
        "--execution_mode_for_batch=PIPELINED",
        "--job_endpoint=a:1",
        "--environment_type=EXTERNAL",
        "--environment_config=b:2",
        "--use_data_stream_for_batch",
        "--object_reuse",
        "--number_of_execution_retries=3",
        "--checkpointing_interval=-1",
        "--max_bundle_size=100",
    ]
    section = SPARK + "spark_master: 'spark://m:7077', bundle_size: 10, cache_disabled: true}}"
    assert arguments(tmp_path, section)[-3:] == [
        "--spark_master=spark://m:7077",
        "--bundle_size=10",
        "--cache_disabled",
    ]


@pytest.mark.parametrize(("value", "flags"), [("true", []), ("false", ["--operator_chaining"])])
def test_flag_of_true_option_makes_it_false(value, flags, tmp_path):
    section = FLINK + f"use_data_stream_for_batch: true, operator_chaining: {value}}}}}"
    assert arguments(tmp_path, section)[-len(flags) - 1 :] == [
        "--use_data_stream_for_batch",
        *flags,
    ]


@pytest.mark.parametrize(
    "environment",
    [
        "environment_type: LOOPBACK",
        "environment_type: DOCKER, environment_config: r/i:1",
        "environment_type: EXTERNAL, environment_options: [external_service_address=b:2]",
        "environment_type: 'beam:env:external:v1', environment_config: b:2",
    ],
)
def test_valid_environments(environment, tmp_path):
    section = f"beam: {{runner: portable, options: {{job_endpoint: a:1, {environment}}}}}"
    assert "--job_endpoint=a:1" in arguments(tmp_path, section)


OPTIONS = "beam: {runner: portable, options: {job_endpoint: a:1, environment_type: EXTERNAL, "
CASES = {
    OPTIONS + "environment_config: b:2, paralellism: 3}}": (
        "3: beam.options.paralellism: 'paralellism' is not an option of Beam. Did you mean paral"
    ),
    OPTIONS + "environment_config: b:2, parallelism: many}}": (
        "3: beam.options.parallelism: invalid int value: 'many'; 'many' was given"
    ),
    OPTIONS + "environment_config: b:2, runner: FlinkRunner}}": (
        "3: beam.options.runner: is set by beam.runner and"
    ),
    FLINK.replace("options: {", "workers: 2, options: {parallelism: 3, ")
    + "sdk_worker_parallelism: 1}}": (
        "3: beam.options.parallelism: is also set by beam.workers; remove one of them"
    ),
    FLINK.replace("options", "workers: 8, options") + "}}": (
        "3: beam.workers: flink starts options.sdk_worker_parallelism Python processes in each"
    ),
    FLINK.replace("options", "workers: 8, options") + "sdk_worker_parallelism: 3}}": (
        "3: beam.workers: flink starts"
    ),
    FLINK.replace("options", "workers: 8, options") + "sdk_worker_parallelism: 0}}": (
        "3: beam.workers: flink starts"
    ),
    SPARK.replace("options", "workers: 8, options") + "}}": (
        "3: beam.workers: not supported by spark, only by runner: processes, flink, dataflow; set"
    ),
    FLINK + "sdk_container_image: r/i:1}}": (
        "3: beam.options.sdk_container_image: is not read by flink; set environment_type: DOCKER"
    ),
    FLINK + "number_of_execution_retries: 3}}": (
        "3: beam.options.number_of_execution_retries: is ignored by Flink's DataSet jobs; set use_"
    ),
    FLINK + "flink_version: '2.1'}}": "3: beam.options.flink_version: must be 1.19 or 1.20",
    FLINK + "executionModeForBatch: BATCH}}": (
        "3: beam.options.executionModeForBatch: 'executionModeForBatch' is not an option of Beam. "
        "Did you mean execution_mode_for_batch"
    ),
    FLINK + "execution_mode_for_batch: batch}}": (
        "3: beam.options.execution_mode_for_batch: invalid choice: 'batch' (choose from 'PIPELINE"
    ),
    FLINK + "object_reuse: maybe}}": (
        "3: beam.options.object_reuse: ignored explicit argument 'maybe'; 'maybe' was given"
    ),
    FLINK + "use_data_stream_for_batch: true, max_bundle_size: false}}": (
        "3: beam.options.max_bundle_size: expected one argument; false was given"
    ),
    FLINK + "sdk_worker_parallelism: -1}}": (
        "3: beam.options.sdk_worker_parallelism: must be at least 0; -1 was given"
    ),
    FLINK + "sdk_worker_parallelism: many}}": (
        "3: beam.options.sdk_worker_parallelism: invalid int value: 'many'; 'many' was given"
    ),
    SPARK + "object_reuse: true}}": (
        "3: beam.options.object_reuse: 'object_reuse' is not an option of Beam"
    ),
    "beam: {options: {max_bundle_size: 3}}": "3: beam.options.max_bundle_size: 'max_bundle_size'",
    "beam: {workers: 2}": (
        "3: beam.workers: not supported by in_process, only by runner: processes, flink"
    ),
    "beam: {runner: portable, options: {environment_type: LOOPBACK}}": (
        "3: beam.options: portable requires job_endpoint"
    ),
    "beam: {runner: dataflow, options: {project: p, sdk_container_image: x}}": (
        "3: beam.options: dataflow requires region, temp_location"
    ),
    "beam: {runner: flink}": "3: beam.options: Beam's own image does not contain Regard",
    OPTIONS + "}}": "3: beam.options.environment_type: EXTERNAL requires environment_config",
    OPTIONS.replace("EXTERNAL", "external") + "environment_config: b:2}}": (
        "3: beam.options.environment_type: 'external' is not a choice. Did you mean EXTERNAL? "
    ),
    OPTIONS.replace("EXTERNAL", "[EXTERNAL]") + "}}": (
        "3: beam.options.environment_type: ['EXTERNAL'] is not a choice. Did you mean"
    ),
    OPTIONS.replace("EXTERNAL", "DOCKER") + "}}": (
        "3: beam.options.environment_type: DOCKER requires environment_config"
    ),
    "beam: {options: {experiments: [a, null]}}": (
        "3: beam.options.experiments: has no value; remove it"
    ),
    "beam: {options: {streaming: true}}": "3: beam.options.streaming: streaming jobs never end",
    OPTIONS + "environment_config: b:2, parallelism: 0}}": (
        "3: beam.options.parallelism: must be at least 1; 0 was given"
    ),
    (
        "beam: {options: {job_endpoint: a:1, environment_type: EXTERNAL, flink_master: a:2, "
        "spark_version: '3', project: p}}"
    ): [
        "3: beam.options.job_endpoint: is for a cluster",
        "3: beam.options.environment_type: is for a cluster",
        "3: beam.options.flink_master: is for a cluster",
        "3: beam.options.spark_version: is for a cluster",
        "3: beam.options.project: is for a cluster",
    ],
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_problems(text, expected, tmp_path):
    compare(problems_of(tmp_path, HEAD + text), expected)
