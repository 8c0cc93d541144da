"""Regard's components between TFX's, as docs/how-to/tfx-pipeline.md shows, with TFX's runners."""

import json
import random
from types import SimpleNamespace

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401
from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner
from tfx.orchestration.local import local_dag_runner

from tests.e2e.test_kubeflow import Cluster
from tests.test_docs import blocks

pytestmark = pytest.mark.slow


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    """Contain words of up to six letters with their upper-case forms."""
    letters = random.Random(1)
    words = sorted(
        {"".join(letters.choices("abcdefgh", k=letters.randint(2, 6))) for _ in range(1400)}
    )
    (tmp_path / "data").mkdir()
    rows = "".join(f"{word},{word.upper()}\n" for word in words)
    (tmp_path / "data" / "words.csv").write_text(f"source,target\n{rows}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_blocks(*texts):
    """Run the blocks of code of the page with these texts, and return their names."""
    namespace = {"__name__": "__main__"}
    code = blocks("docs/how-to/tfx-pipeline.md", "python")
    for text in texts:
        (block,) = (block for block in code if text in block)
        exec(compile(block, "tfx-pipeline.md", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("runner", [local_dag_runner.LocalDagRunner, BeamDagRunner])
def test_csv_files_become_a_model_of_tfx_pusher(working_directory, monkeypatch, runner):
    monkeypatch.setattr(local_dag_runner, "LocalDagRunner", runner)
    outputs = run_blocks("def create_pipeline", "LocalDagRunner", "import tensorflow_text")[
        "outputs"
    ]
    assert outputs["translation"].numpy().tolist() == [b"HEAD", b"CAFE"]


def test_the_same_pipeline_on_kubeflow(working_directory, monkeypatch):
    compile_pipeline = run_blocks("def create_pipeline", "def compile_pipeline")["compile_pipeline"]
    text = compile_pipeline("regard", "claim", str(working_directory))
    specification, platforms = map(json.loads, text.split("\n---\n"))
    executors = platforms["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert executors.keys() == specification["deploymentSpec"]["executors"].keys()
    cluster = Cluster(working_directory, SimpleNamespace(to_yaml=lambda: text), monkeypatch)
    cluster.run()
    (version,) = (working_directory / "words" / "serving").iterdir()
    model = tf.saved_model.load(str(version))
    outputs = model.signatures["serving_default"](tf.constant(["head", "cafe"]))
    assert outputs["translation"].numpy().tolist() == [b"HEAD", b"CAFE"]
