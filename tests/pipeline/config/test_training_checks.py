"""Conflicts within the section ``training``."""

import importlib.util

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

TEXT = "name: x\ntask: translation\ndata: {train: a.tsv}\ntraining: {backend: %s, devices: %s}\n"


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
@pytest.mark.parametrize("devices", ["one", "all", "workers"])
def test_one_process_trains_on_jax(tmp_path, backend, devices):
    text = TEXT % (backend, devices)
    if (backend, devices) == ("jax", "workers"):
        compare(problems_of(tmp_path, text), "4: training.devices: on JAX, one process")
    else:
        assert load_text(tmp_path, text).training.backend == backend


def test_jax_must_be_installed(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec

    def find(name, *arguments):
        return None if name == "jax" else find_spec(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    (problem,) = problems_of(tmp_path, TEXT % ("jax", "all"))
    compare([problem], "4: training.backend: JAX is not installed")
    assert 'pip install "regard[jax]"' in problem
    assert load_text(tmp_path, TEXT % ("tensorflow", "all"))
