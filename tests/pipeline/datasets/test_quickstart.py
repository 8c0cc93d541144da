import datetime as dt
import gzip
import json
import re
from decimal import Decimal

import pytest

from components.errors import UserError
from pipeline.datasets.locales import STYLES
from pipeline.datasets.quickstart import SHARES, generate, key

DATE = r"\d{4}-\d\d-\d\d"
TIME = r"\d\d:\d\d(:\d\d)?"
NUMBER = r"-?(0|[1-9]\d*)(\.\d{1,2})?"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("quickstart")
    return directory, generate(directory)


def pairs(directory, split):
    text = gzip.decompress((directory / f"{split}.tsv.gz").read_bytes()).decode()
    assert text.endswith("\n")
    rows = [line.split("\t") for line in text[:-1].split("\n")]
    assert {len(row) for row in rows} == {5}
    return [row[:2] for row in rows]


def alignments(directory):
    with gzip.open(directory / "test.alignments.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_splits_and_sizes(made):
    directory, summary = made
    assert summary.rows == {"train": 18_000, "eval": 1_000, "test": 1_000}
    assert all(path.is_file() for path in summary.files)
    assert {p.name for p in directory.iterdir()} == {p.name for p in summary.files}
    for split, count in summary.rows.items():
        rows = pairs(directory, split)
        assert len(rows) == count
        assert all(len(row) == 2 and all(row) for row in rows)
        assert all(len(text.splitlines()) == 1 for row in rows for text in row)


def test_one_right_answer_and_no_overlap(made):
    directory, _ = made
    targets, where = {}, {}
    for split in ("train", "eval", "test"):
        for source, target in pairs(directory, split):
            # By what remains after normalisation, so that a tokenizer cannot make two of one.
            name = key(source)
            assert targets.setdefault(name, target) == target
            assert where.setdefault(name, split) == split
    assert len(targets) == 20_000  # and none is there twice


def test_targets_are_plain_and_round_trip(made):
    directory, _ = made
    for row in alignments(directory):
        target = row["target"]
        if row["kind"] == "date":
            assert re.fullmatch(DATE, target)
            assert dt.date.fromisoformat(target).isoformat() == target
        elif row["kind"] == "time":
            assert re.fullmatch(TIME, target)
            dt.time.fromisoformat(target)
        elif row["kind"] == "datetime":
            assert re.fullmatch(f"{DATE}T{TIME}", target)
            dt.datetime.fromisoformat(target)
        elif row["kind"] == "amount":
            assert re.fullmatch(NUMBER + " [A-Z]{3}", target)
        else:
            assert re.fullmatch(NUMBER, target)
            assert str(Decimal(target)) == target


def test_train_targets_are_of_the_same_forms(made):
    directory, _ = made
    form = re.compile(f"{DATE}|{TIME}|{DATE}T{TIME}|{NUMBER}( [A-Z]{{3}})?")
    assert all(form.fullmatch(target) for _, target in pairs(directory, "train"))


def test_all_locales_and_kinds(made):
    directory, _ = made
    record = json.loads((directory / "quickstart.json").read_text())
    for kind, share in SHARES.items():
        assert record["kinds"][kind] / 20_000 == pytest.approx(share, abs=0.02)
    assert set(record["locales"]) >= {"en", "en_GB", "zh", "de", "fr", "es", "ja", "ar", "hi"}
    for style in STYLES:
        wanted = set(SHARES) if style.words else set(SHARES) - {"spelled"}
        assert set(record["locales"][style.tag]) == wanted
    assert {row["locale"] for row in alignments(directory)} == set(record["locales"])
    assert {row["kind"] for row in alignments(directory)} == set(SHARES)
    assert record["seed"] == 17
    assert record["versions"].keys() == {"babel", "num2words"}


def test_native_digits_are_there(made):
    directory, _ = made
    text = "".join(source for source, _ in pairs(directory, "train"))
    assert set("٠١٢٣٤٥٦٧٨٩०१२३४५६७८९") <= set(text)


def test_alignments_belong_to_the_test_rows(made):
    directory, _ = made
    rows = alignments(directory)
    assert [[row["source"], row["target"]] for row in rows] == pairs(directory, "test")
    assert [row["row"] for row in rows] == list(range(1_000))
    for row in rows:
        assert row["parts"]
        for part in row["parts"]:
            for side in ("source", "target"):
                start, end = part[side]
                assert 0 <= start < end <= len(row[side])
            if part["part"] in ("digit", "day", "year", "minute", "second"):
                source = row["source"][slice(*part["source"])]
                target = row["target"][slice(*part["target"])]
                assert int(source) == int(target)
            elif part["part"] == "currency":
                assert row["target"][slice(*part["target"])].isupper()
                assert not re.search(r"\d", row["source"][slice(*part["source"])])


def test_every_target_digit_has_its_part(made):
    directory, _ = made
    for row in alignments(directory):
        covered = {i for part in row["parts"] for i in range(*part["target"])}
        # The minutes of "2 PM" are written nowhere.
        missing = [i for i, c in enumerate(row["target"]) if c.isdigit() and i not in covered]
        assert not missing or row["target"].endswith(":00")


def test_seed_decides_every_byte(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        generate(tmp_path / name, rows=400, seed=seed)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert path.read_bytes() != (tmp_path / "c" / path.name).read_bytes()


def test_progress_is_told(tmp_path):
    told = []
    generate(tmp_path, rows=2_000, progress=lambda text, share: told.append(share))
    assert told == [0.5, 1.0]


def test_impossible_requests(tmp_path):
    with pytest.raises(UserError, match="too few"):
        generate(tmp_path, rows=3)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="--out"):
        generate(tmp_path / "file" / "data", rows=20)


def test_no_space_left(tmp_path, monkeypatch):
    import errno

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipeline.datasets.summary.atomic_write", full)
    with pytest.raises(UserError, match="no space left"):
        generate(tmp_path, rows=20)
