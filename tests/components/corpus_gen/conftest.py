from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.components.data.sources import Corpus
from tests.components.corpora import BEAM, TRANSLATION, corpus_of


def records_in(folder: Path) -> list[Any]:
    """The features of every tf.Example of a split's folder."""
    import tensorflow as tf

    return [
        tf.train.Example.FromString(record.numpy()).features.feature
        for path in sorted(folder.iterdir())
        for record in tf.data.TFRecordDataset(str(path), compression_type="GZIP")
    ]


def rows_in(folder: Path) -> list[tuple[str, str, str, int]]:
    """The rows of a split's folder: source, target, file and line."""
    rows = []
    for feature in records_in(folder):
        texts = [feature[k].bytes_list.value[0].decode() for k in ("source", "target", "file")]
        rows.append((*texts, feature["line"].int64_list.value[0]))
    return rows


@pytest.fixture
def run_corpus(tmp_path):
    """Runs the executor on a corpus, as TFX does, and returns its outputs in ``tmp_path/name``."""

    def run(
        corpus: Corpus, name: str = "out", fingerprint: str = "", parameters: dict | None = None
    ) -> SimpleNamespace:
        from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
        from tfx.types import standard_artifacts

        from regard.components.common.component import Findings
        from regard.components.corpus_gen.executor import CorpusGenExecutor

        out = tmp_path / name
        examples, findings = standard_artifacts.Examples(), Findings()
        examples.uri, findings.uri = str(out / "examples"), str(out / "findings")
        context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
        properties = {"corpus": json.dumps(corpus.to_json()), "fingerprint": fingerprint}
        properties |= parameters or {}
        CorpusGenExecutor(context).Do(
            {}, {"examples": [examples], "findings": [findings]}, properties
        )
        return SimpleNamespace(
            artifact=examples,
            folder=out / "examples",
            records=lambda split: records_in(out / "examples" / f"Split-{split}"),
            rows=lambda split: rows_in(out / "examples" / f"Split-{split}"),
            findings=json.loads((out / "findings" / "corpus.json").read_text()),
        )

    return run


@pytest.fixture
def generate(tmp_path, run_corpus):
    """Runs the executor on a section ``data``."""

    def run(name="out", fingerprint="", parameters=None, features=TRANSLATION, **section):
        corpus = corpus_of(tmp_path, features, **section)
        return run_corpus(corpus, name, fingerprint, parameters)

    return run
