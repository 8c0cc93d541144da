"""Real corpora, read as a whole."""

import os
from pathlib import Path

import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from tests.components.corpora import CAPTIONED, resolved


@pytest.fixture
def corpora() -> Path:
    folder = os.environ.get("REGARD_DATA")
    if not folder or not (Path(folder) / "multi30k").is_dir():
        pytest.skip("REGARD_DATA does not name a folder with multi30k")
    return Path(folder)


def row_counts(corpus):
    return survey_corpus(CorpusPlan(corpus)).rows


def test_multi30k(corpora):
    corpus = resolved(
        corpora / "multi30k",
        train={"source": "train.en.gz", "target": "train.de.gz"},
        eval={"source": "val.en.gz", "target": "val.de.gz"},
        test={"source": "test_2016_flickr.en.gz", "target": "test_2016_flickr.de.gz"},
    )
    assert row_counts(corpus) == {"train": 29000, "eval": 1014, "test": 1000}


@pytest.mark.parametrize(
    ("name", "rows", "sentences"), [("en-fr", 166630, 116330), ("en-zh", 28555, 27161)]
)
def test_tatoeba_splits_keep_english_sentences_together(corpora, name, rows, sentences):
    plan = CorpusPlan(
        resolved(
            corpora / f"tatoeba-{name}",
            train=f"pairs.{name}.tsv.gz",
            split={"eval": 0.02, "test": 0.02, "by": "source"},
        )
    )
    (job,) = plan.jobs
    texts = {split: [] for split in job.splits}
    for _, values in read_rows(job.group, plan.corpus, ReadProblems()):
        texts[job.assign(values)].append(values[0])
    distinct = [set(of_split) for of_split in texts.values()]
    assert sum(map(len, texts.values())) == rows
    assert sum(map(len, distinct)) == len(set.union(*distinct)) == sentences
    for split in ("eval", "test"):
        assert len(texts[split]) == pytest.approx(0.02 * rows, rel=0.15)
        assert len(texts[split]) > len(set(texts[split]))  # some have several translations


def test_coco_images_have_five_captions(corpora):
    corpus = resolved(
        corpora / "coco-captions-mini",
        CAPTIONED,
        train="captions.tsv.gz",
        images="images",
        split={"eval": 0.2, "test": 0.2},
    )
    plan, problems = CorpusPlan(corpus), ReadProblems()
    assert sum(survey_corpus(plan).rows.values()) == 50
    images = Images.of(corpus.config, decode=True)
    rows = list(read_rows(plan.jobs[0].group, corpus, problems, images))
    assert problems == ReadProblems(rows=250)
    assert {len(captions) for _, (_, captions) in rows} == {5}
