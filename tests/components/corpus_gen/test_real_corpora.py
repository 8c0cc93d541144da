"""Real corpora, read as a whole."""

import os
from pathlib import Path

import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from tests.components.corpora import CAPTIONED, SCORED, SUMMARISED, TRANSLATION, resolved


@pytest.fixture
def corpora() -> Path:
    folder = os.environ.get("REGARD_DATA")
    if not folder or not (Path(folder) / "multi30k").is_dir():
        pytest.skip("REGARD_DATA does not name a folder with multi30k")
    return Path(folder)


def pair(name):
    return {"source": f"{name}.en.gz", "target": f"{name}.de.gz"}


SPLIT = {"eval": 0.2, "test": 0.2, "by": "source"}
MULTI30K = {"train": pair("train"), "eval": pair("val"), "test": pair("test_2016_flickr")}
STS = {"train": "sts-train.tsv.gz", "eval": "sts-dev.tsv.gz", "test": "sts-test.tsv.gz"}
SICK = {"train": "sick-train.tsv.gz", "eval": "sick-trial.tsv.gz", "test": "sick-test.tsv.gz"}
SCITLDR = {
    "train": "scitldr-a.train.jsonl.gz",
    "eval": "scitldr-a.dev.jsonl.gz",
    "test": "scitldr-a.test.jsonl.gz",
    "columns": {"text": "source", "summary": "target", "title": "title"},
}
TATOEBA = {name: {"train": f"pairs.{name}.tsv.gz", "split": SPLIT} for name in ("en-fr", "en-zh")}


@pytest.mark.parametrize(
    ("folder", "features", "section", "rows"),
    [
        ("multi30k", TRANSLATION, MULTI30K, 29000 + 1014 + 1000),
        ("tatoeba-en-fr", TRANSLATION, TATOEBA["en-fr"], 166630),
        ("tatoeba-en-zh", TRANSLATION, TATOEBA["en-zh"], 28555),
        ("sts-b", SCORED, STS, 5749 + 1500 + 1379),
        ("sick", SCORED, SICK, 4500 + 500 + 4927),
        ("scitldr", SUMMARISED, SCITLDR, 1992 + 619 + 618),
    ],
)
def test_every_row_is_read(corpora, folder, features, section, rows):
    summary = survey_corpus(CorpusPlan(resolved(corpora / folder, features, **section)))
    assert sum(summary.rows.values()) == rows
    assert summary.problems.skipped_rows == 0


def test_coco_images_have_five_captions(corpora):
    folder = corpora / "coco-captions-mini"
    corpus = resolved(folder, CAPTIONED, train="captions.tsv.gz", images="images")
    plan, problems = CorpusPlan(corpus), ReadProblems()
    images = Images.of(corpus.config, decode=True)
    rows = list(read_rows(plan.jobs[0].group, corpus, problems, images))
    assert (problems.rows, problems.skipped_rows, list(problems.examples)) == (250, 0, [])
    assert [len(captions) for _, (_, captions) in rows] == [5] * 50
