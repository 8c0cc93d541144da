"""What `regard run` and `regard worker` say where TF_CONFIG is another's, before anything runs."""

import json

import pytest

from components.errors import UserError
from pipeline.commands.run import Request, run_pipeline
from pipeline.commands.worker import worker

CONFIG = """
name: tiny
data: {root: /nowhere, train: train.tsv}
training: {devices: workers}
"""


def task(index):
    return json.dumps(
        {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": index}}
    )


def test_a_run_is_the_chief_s(monkeypatch, tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text(CONFIG)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="no other worker"):
        run_pipeline(Request(config))
    monkeypatch.setenv("TF_CONFIG", task(1))
    with pytest.raises(UserError, match="this is worker 1"):
        run_pipeline(Request(config))


def test_a_worker_is_not_the_chief(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", task(0))
    with pytest.raises(UserError, match="regard run"):
        worker()
