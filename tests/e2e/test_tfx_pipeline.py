"""Regard's components between TFX's, as docs/how-to/tfx-pipeline.md shows, with TFX's runners."""

import random
from pathlib import Path

import pytest
from tfx.orchestration.beam.beam_dag_runner import BeamDagRunner
from tfx.orchestration.local import local_dag_runner

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


@pytest.mark.parametrize("runner", [local_dag_runner.LocalDagRunner, BeamDagRunner])
def test_csv_files_become_a_model_of_tfx_pusher(working_directory, monkeypatch, runner):
    monkeypatch.setattr(local_dag_runner, "LocalDagRunner", runner)
    namespace = {"__name__": "__main__"}
    for code in blocks("docs/how-to/tfx-pipeline.md", "python"):
        exec(compile(code, "tfx-pipeline.md", "exec"), namespace)
    translations = namespace["outputs"]["translation"].numpy().tolist()
    assert translations == [b"HEAD", b"CAFE"]
    assert {path.name for path in Path("pipeline/artifacts").iterdir()} >= {"Trainer", "Pusher"}
