import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from regard.components.common.artifact_types import Findings
from regard.components.corpus_gen.executor import CorpusGenExecutor
from regard.components.data.sources import Corpus
from tests.components.corpora import BEAM, TRANSLATION, corpus_of


def records_in(folder: Path) -> list[Any]:
    """The features of every tf.Example of a split's folder."""
    return [
        tf.train.Example.FromString(record.numpy()).features.feature
        for path in sorted(folder.iterdir())
        for record in tf.data.TFRecordDataset(str(path), "GZIP")
    ]


def row_of(feature: Any) -> tuple[str, str, str, int]:
    """The source, target, file and line of a tf.Example."""
    texts = [feature[k].bytes_list.value[0].decode() for k in ("source", "target", "file")]
    return (*texts, feature["line"].int64_list.value[0])


@pytest.fixture
def run_corpus(tmp_path):
    """Runs the executor on a corpus, as TFX does, and returns its outputs in ``tmp_path/name``."""

    def run(corpus: Corpus, name="out", fingerprint="", parameters=None) -> SimpleNamespace:
        out = tmp_path / name
        examples, findings = standard_artifacts.Examples(), Findings()
        examples.uri, findings.uri = str(out / "examples"), str(out / "findings")
        context = CorpusGenExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
        properties = {"corpus": json.dumps(corpus.to_json()), "fingerprint": fingerprint}
        outputs = {"examples": [examples], "findings": [findings]}
        CorpusGenExecutor(context).Do({}, outputs, properties | (parameters or {}))

        def records(split):
            return records_in(out / "examples" / f"Split-{split}")

        return SimpleNamespace(
            artifact=examples,
            folder=out / "examples",
            records=records,
            rows=lambda split: list(map(row_of, records(split))),
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
