from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tfx.orchestration import pipeline
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config

from regard.components.data.fingerprints import fingerprint
from regard.components.nodes import CorpusGen
from tests.components.corpora import BEAM, resolved


def test_import_without_tensorflow():
    code = "import sys, regard.components.corpus_gen, regard.components.data.corpus_plan; "
    code += "sys.exit('tensorflow' in sys.modules or 'tfx' in sys.modules)"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_same_content_is_cached(tmp_path):
    (tmp_path / "a.tsv").write_text("one\teins\n")
    files = dict.fromkeys(("train", "eval", "test"), "a.tsv")

    def run():
        corpus = resolved(tmp_path, **files)
        node = CorpusGen(corpus=json.dumps(corpus.to_json()), fingerprint=fingerprint(corpus))
        assert node.id == "CorpusGen"
        LocalDagRunner().run(
            pipeline.Pipeline(
                "tiny",
                str(tmp_path / "root"),
                components=[node],
                enable_cache=True,
                metadata_connection_config=sqlite_metadata_connection_config(
                    str(tmp_path / "metadata.sqlite")
                ),
                beam_pipeline_args=BEAM,
            )
        )
        shards = (tmp_path / "root" / "CorpusGen" / "examples").glob("*/Split-train/*")
        return sorted(path.name for path in shards)

    assert run() == ["data_tfrecord-00000-of-00001.gz"]
    assert len(run()) == 1
    (tmp_path / "a.tsv").write_text("one\tuno\n")
    assert len(run()) == 2


def test_a_missing_argument_is_an_error():
    with pytest.raises(ValueError, match="Missing argument 'fingerprint'"):
        CorpusGen(corpus="{}")
