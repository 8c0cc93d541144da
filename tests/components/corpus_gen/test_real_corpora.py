"""Real corpora, read whole."""

import os
from pathlib import Path

import pytest

from components.corpus_gen.formats import Options, read
from components.corpus_gen.problems import Problems
from components.corpus_gen.sources import resolve
from components.corpus_gen.splits import hashed
from components.corpus_gen.survey import survey

DEFAULTS = {"encoding_errors": "fail", "bad_rows": "fail", "header": False, "columns": None}


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
