"""Real corpora, read whole."""

import os
from pathlib import Path

import pytest

from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Problems
from components.corpus_gen.sources import resolve
from components.corpus_gen.splits import hashed
from components.corpus_gen.survey import survey
from models.tasks.features import Feature
from tests.components.corpus_gen.corpora import CAPTIONED, TRANSLATION, section

DEFAULTS = {
    "features": TRANSLATION,
    "encoding_errors": "fail",
    "bad_rows": "fail",
    "header": False,
    "columns": None,
}


@pytest.fixture
def corpora() -> Path:
    folder = os.environ.get("REGARD_DATA")
    if not folder or not (Path(folder) / "multi30k").is_dir():
        pytest.skip("REGARD_DATA does not name a folder with multi30k")
    return Path(folder)


def test_multi30k_has_the_rows_its_readme_says(corpora):
    data = {
        **DEFAULTS,
        "root": str(corpora / "multi30k"),
        "train": {"source": "train.en.gz", "target": "train.de.gz"},
        "eval": {"source": "val.en.gz", "target": "val.de.gz"},
        "test": {"source": "test_2016_flickr.en.gz", "target": "test_2016_flickr.de.gz"},
    }
    assert survey(data).rows == {"train": 29000, "eval": 1014, "test": 1000}


@pytest.mark.parametrize(
    ("corpus", "rows", "sentences"), [("en-fr", 166630, 116330), ("en-zh", 28555, 27161)]
)
def test_no_english_sentence_of_tatoeba_is_in_two_splits(corpora, corpus, rows, sentences):
    root = str(corpora / f"tatoeba-{corpus}")
    data = {**DEFAULTS, "root": root, "train": f"pairs.{corpus}.tsv.gz"}
    data["split"] = {"eval": 0.02, "test": 0.02, "seed": 0, "by": "source"}
    (group,) = resolve(data)["train"]
    split = hashed(data, {"train"})
    found = {name: [] for name in split.names}
    for _, values in read(group, Options.of(data), Problems()):
        found[split(values)].append(values[0])
    sets = [set(texts) for texts in found.values()]
    assert sum(map(len, found.values())) == rows
    assert sum(map(len, sets)) == len(set.union(*sets))
    assert sum(map(len, sets)) == sentences
    for name in ("eval", "test"):
        assert len(found[name]) == pytest.approx(0.02 * rows, rel=0.15)
        assert len(found[name]) > len(set(found[name]))  # some English has several translations


def test_tatoeba_is_split_in_the_shares_asked_for(corpora):
    split = {"eval": 0.05, "test": 0.05, "seed": 0}
    root = str(corpora / "tatoeba-en-zh")
    rows = survey({**DEFAULTS, "root": root, "train": "pairs.en-zh.tsv.gz", "split": split}).rows
    assert sum(rows.values()) == 28555
    for name in ("eval", "test"):
        assert rows[name] == pytest.approx(0.05 * 28555, rel=0.1)


@pytest.mark.parametrize(
    ("corpus", "name", "low", "rows"),
    [("sts-b", "sts", 0, (5749, 1500, 1379)), ("sick", "sick", 1, (4500, 500, 4927))],
)
def test_scored_pairs_have_the_rows_their_readme_says(corpora, corpus, name, low, rows):
    dev = {"sts-b": "dev", "sick": "trial"}[corpus]
    data = {
        **DEFAULTS,
        "root": str(corpora / corpus),
        "features": section(
            Feature("score", "number", role="reference", low=low, high=5),
            Feature("one", "text"),
            Feature("other", "text"),
        ),
        "train": f"{name}-train.tsv.gz",
        "eval": f"{name}-{dev}.tsv.gz",
        "test": f"{name}-test.tsv.gz",
    }
    assert tuple(survey(data).rows.values()) == rows


def test_abstracts_have_one_summary_to_train_on_and_several_to_test(corpora):
    data = {
        **DEFAULTS,
        "root": str(corpora / "scitldr"),
        "features": section(
            Feature("source", "text"),
            Feature("target", "text", role="reference", several=True),
            Feature("title", "text", role="extra"),
        ),
        "train": "scitldr-a.train.jsonl.gz",
        "eval": "scitldr-a.dev.jsonl.gz",
        "test": "scitldr-a.test.jsonl.gz",
    }
    assert survey(data).rows == {"train": 1992, "eval": 619, "test": 618}
    summaries = {}
    for split, (group,) in resolve(data).items():
        for _, (_, targets, _) in read(group, Options.of(data), Problems()):
            summaries[split] = summaries.get(split, 0) + len(targets)
    assert summaries == {"train": 1992, "eval": 1453, "test": 1967}


def test_every_image_of_coco_has_its_five_captions(corpora):
    data = {
        **DEFAULTS,
        "root": str(corpora / "coco-captions-mini"),
        "features": CAPTIONED,
        "train": "captions.tsv.gz",
        "images": "images",
        "split": {"eval": 0.2, "test": 0.2},
    }
    assert sum(survey(data).rows.values()) == 50
    (group,) = resolve(data)["train"]
    problems = Problems()
    images = Images(data, decode=True)
    rows = list(read(group, Options.of(data), problems, images))
    assert problems == Problems(rows=250)
    assert {len(captions) for _, (_, captions) in rows} == {5}
