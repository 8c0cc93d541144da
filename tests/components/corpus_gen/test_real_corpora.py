"""Real corpora, read whole."""

import os
from pathlib import Path

import pytest

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


def test_tatoeba_is_split_in_the_shares_asked_for(corpora):
    split = {"eval": 0.05, "test": 0.05, "seed": 0}
    root = str(corpora / "tatoeba-en-zh")
    rows = survey({**DEFAULTS, "root": root, "train": "pairs.en-zh.tsv.gz", "split": split}).rows
    assert sum(rows.values()) == 28555
    for name in ("eval", "test"):
        assert rows[name] == pytest.approx(0.05 * 28555, rel=0.1)
