"""Conflicts within the section ``training``."""

import importlib.util

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

TEXT = "name: x\ntask: translation\ndata: {train: a.tsv}\ntraining: {backend: %s, devices: %s}\n"


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
@pytest.mark.parametrize("devices", ["one", "all", "workers"])
def test_each_backend_trains_on_all_devices(tmp_path, backend, devices):
    assert load_text(tmp_path, TEXT % (backend, devices)).training.backend == backend


def test_workers_on_jax_are_not_deterministic(tmp_path):
    text = TEXT % ("jax", "workers, deterministic: true")
    expected = "4: training.deterministic: is not possible on JAX with devices: workers"
    compare(problems_of(tmp_path, text), expected)
    assert load_text(tmp_path, text.replace("jax", "tensorflow")).training.deterministic


def test_jax_always_compiles(tmp_path):
    problems = problems_of(tmp_path, TEXT % ("jax", "one, jit_compile: true"))
    compare(problems[-1:], "4: training.jit_compile: has no effect on JAX")


def test_jax_must_be_installed(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec

    def find(name, *arguments):
        return None if name == "jax" else find_spec(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    (problem,) = problems_of(tmp_path, TEXT % ("jax", "all"))
    compare([problem], "4: training.backend: JAX is not installed")
    assert 'pip install "regard[jax]"' in problem
    assert load_text(tmp_path, TEXT % ("tensorflow", "all"))
