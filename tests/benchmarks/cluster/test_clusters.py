"""The whole pipeline on real Flink and Spark clusters, also while hosts and workers die."""

import os
import shutil
from pathlib import Path

import pytest

from benchmarks import corpora
from benchmarks.cluster import distributions
from benchmarks.cluster.__main__ import ENGINES, FILES, Bench
from benchmarks.cluster.pipeline_run import configuration

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="REGARD_DATA is not set"),
    pytest.mark.skipif(not shutil.which("java"), reason="java is not installed"),
]


@pytest.fixture(scope="module", params=ENGINES)
def bench(request, tmp_path_factory) -> Bench:
    try:
        distributions.fetch(request.param)
    except distributions.Unavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp(request.param)
    corpora.write(Path(os.environ["REGARD_DATA"], "multi30k"), folder / "corpus", 4000, FILES)
    return Bench(request.param, configuration(folder / "corpus", steps=3), folder)


def test_the_files_are_those_of_in_process_though_hosts_and_workers_are_killed(bench):
    assert bench.faults()["files"]


def test_no_restarts(bench):
    output = bench.control()["output"]
    assert "CorpusGen failed" in output
    assert "The cluster lost a host and did not restart the job" in output
