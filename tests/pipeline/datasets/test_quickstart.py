"""The data of the quickstart."""

import datetime as dt
import gzip
import json
import random
import re
from collections import Counter

import pytest

from regard.pipeline.datasets.locale_formats import LOCALES
from regard.pipeline.datasets.quickstart import FRACTIONS, generate, normalize, sample_rows

DATE = r"\d{4}-\d\d-\d\d"
TIME = r"\d\d:\d\d(:\d\d)?"
NUMBER = r"-?(0|[1-9]\d*)(\.\d{1,2})?"
FORMS = {"date": DATE, "time": TIME, "datetime": f"{DATE}T{TIME}", "amount": f"{NUMBER} [A-Z]{{3}}"}
PARSERS = {"date": dt.date, "time": dt.time, "datetime": dt.datetime}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    directory = tmp_path_factory.mktemp("quickstart")
    return directory, generate(directory)


def pairs(directory, split):
    text = gzip.decompress((directory / f"{split}.tsv.gz").read_bytes()).decode()
    assert text.endswith("\n")
    rows = [line.split("\t") for line in text[:-1].split("\n")]
    assert {len(row) for row in rows} == {5}
    return [row[:2] for row in rows]


@pytest.fixture(scope="module")
def rows():
    return sample_rows(20_000, random.Random(17))


def test_splits_and_sizes(generated):
    directory, counts = generated
    assert counts == {"train": 18_000, "eval": 1_000, "test": 1_000}
    files = {"quickstart.json", *(f"{split}.tsv.gz" for split in counts)}
    assert {p.name for p in directory.iterdir()} == files
    for split, count in counts.items():
        rows = pairs(directory, split)
        assert len(rows) == count
        assert all(len(text.splitlines()) == 1 for row in rows for text in row)


def test_sources_are_unique(generated):
    directory, _ = generated
    targets, where = {}, {}
    for split in ("train", "eval", "test"):
        for source, target in pairs(directory, split):
            # After normalisation, so that a tokenizer cannot merge two sources.
            name = normalize(source)
            assert targets.setdefault(name, target) == target
            assert where.setdefault(name, split) == split
    assert len(targets) == 20_000


def test_targets_have_the_normal_form(rows):
    for row in rows:
        target = row.text.target
        assert re.fullmatch(FORMS.get(row.kind, NUMBER), target)
        if row.kind in PARSERS:
            PARSERS[row.kind].fromisoformat(target)


def test_all_locales_and_kinds(rows):
    kinds = Counter(row.kind for row in rows)
    for kind, fraction in FRACTIONS.items():
        assert kinds[kind] / 20_000 == pytest.approx(fraction, abs=0.02)
    assert {formats.tag for formats in LOCALES} >= {"en", "en_GB", "zh", "de", "fr", "es", "ja"}
    for formats in LOCALES:
        expected = set(FRACTIONS) if formats.words else set(FRACTIONS) - {"spelled"}
        assert {row.kind for row in rows if row.locale == formats.tag} == expected


def test_description(generated):
    directory, _ = generated
    record = json.loads((directory / "quickstart.json").read_text())
    assert record["seed"] == 17
    assert record["versions"].keys() == {"babel", "num2words"}


def test_native_digits(generated):
    directory, _ = generated
    text = "".join(source for source, _ in pairs(directory, "train"))
    assert set("٠١٢٣٤٥٦٧٨٩०१२३४५६७८९") <= set(text)


def test_alignments(rows):
    for row in rows:
        text = row.text
        assert text.parts
        for source, target in text.parts:
            for (start, end), side in ((source, text.source), (target, text.target)):
                assert 0 <= start < end <= len(side)
            if text.source[slice(*source)].isdecimal() and row.kind == "number":
                assert int(text.source[slice(*source)]) == int(text.target[slice(*target)])


def test_alignment_column(generated, rows):
    directory, _ = generated
    text = gzip.decompress((directory / "test.tsv.gz").read_bytes()).decode()
    lines = [line.split("\t") for line in text.splitlines()]
    for (source, target, kind, locale, links), row in zip(lines, rows[1_000:2_000], strict=True):
        assert (source, target) == (row.text.source, row.text.target)
        assert (kind, locale) == (row.kind, row.locale)
        pairs = {tuple(map(int, re.split("[-p]", link))) for link in links.split()}
        assert pairs == {
            (s, t)
            for from_, to in row.text.parts
            for s in range(*from_)
            for t in range(*to)
            if source[slice(*from_)] != target[slice(*to)] or s - from_[0] == t - to[0]
        }


def test_target_digits_are_aligned(rows):
    for row in rows:
        target = row.text.target
        aligned = {i for _, span in row.text.parts for i in range(*span)}
        # "2 PM" has no minutes.
        missing = [i for i, c in enumerate(target) if c.isdigit() and i not in aligned]
        assert not missing or target.endswith(":00")
