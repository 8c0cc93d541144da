"""CorpusGen with images, numbers, points and several references."""

from __future__ import annotations

import errno
import os
from collections import namedtuple

import pytest

from components.corpus_gen.records import ShardWriter
from components.errors import UserError
from tests.components.corpus_gen.corpora import (
    CAPTIONED,
    POINTED,
    SCORED,
    SUMMARISED,
    lines,
    picture,
)


@pytest.fixture
def captions(tmp_path):
    """Forty images with three captions each, far apart in the table."""
    (tmp_path / "photos").mkdir()
    for i in range(40):
        (tmp_path / "photos" / f"{i}.png").write_bytes(picture(shade=i))
    rows = [(f"{i}.png", f"caption {j} of {i}") for j in range(3) for i in range(40)]
    (tmp_path / "captions.tsv").write_text(lines(*rows))
    return {"features": CAPTIONED, "train": "captions.tsv", "images": "photos"}


def test_an_image_has_all_its_captions_in_one_split(generate, captions):
    out = generate(**captions, split={"eval": 0.2, "test": 0.2})
    found = {}
    for split in ("train", "eval", "test"):
        for feature in out.records(split):
            name = feature["image_file"].bytes_list.value[0].decode()
            assert name not in found
            found[name] = [text.decode() for text in feature["caption"].bytes_list.value]
            shade = int(name.removesuffix(".png"))
            assert feature["image"].bytes_list.value[0] == picture(shade=shade)
            assert feature["line"].int64_list.value[0] == shade + 1
    assert found == {f"{i}.png": [f"caption {j} of {i}" for j in range(3)] for i in range(40)}
    assert sum(out.findings["rows"].values()) == 40
    assert min(out.findings["rows"].values()) > 2


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.unlink(), "photos/7.png: no such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "photos/7.png is cut off"),
        (lambda path: path.write_text("x"), "photos/7.png is no image (JPEG, PNG, GIF or BMP)"),
    ],
)
def test_images_that_cannot_be_used(tmp_path, generate, captions, spoil, told):
    spoil(tmp_path / "photos" / "7.png")
    with pytest.raises(UserError) as caught:
        generate(**captions)
    assert caught.value.where == f"{tmp_path}/captions.tsv:8"
    assert caught.value.message == f"{told} (3 such lines in all)"
    out = generate(**captions, bad_rows="skip", split={"eval": 0.2, "test": 0.2})
    assert sum(out.findings["rows"].values()) == 39
    assert out.findings["skipped"] == 3
    assert out.findings["problems"]["row/skip"]["examples"][0]["text"] == told


def test_more_bad_rows_than_the_limit_are_refused(tmp_path, generate):
    rows = [(i % 5, f"one {i}", f"other {i}") for i in range(90)]
    (tmp_path / "a.tsv").write_text(lines(*rows, *(("x", "one", "other") for _ in range(10))))
    (tmp_path / "b.tsv").write_text(lines(*rows[:50]))
    section = {"features": SCORED, "train": "a.tsv", "bad_rows": "skip"}
    rule = {"eval": 0.2, "test": 0.2}
    out = generate("at the limit", **section, split=rule)
    assert sum(out.findings["rows"].values()) == 90
    with pytest.raises(UserError) as caught:
        generate("above", **section, split=rule, bad_rows_limit=0.09)
    assert caught.value.where == f"{tmp_path}/a.tsv:91"
    assert caught.value.message == (
        "10 of 100 rows (10.00%) would be left out; the limit is 9.00%; "
        "the first: score 'x' is not a number"
    )
    assert list((tmp_path / "above" / "examples").iterdir()) == []
    # The limit is of all splits together.
    generate("below", **section, eval="b.tsv", test="b.tsv", bad_rows_limit=0.05)


def test_points_decide_about_the_split_by_their_values(tmp_path, generate):
    rows = [(f"[[0, 0], [0, {i % 60}], [{i % 60}, 1]]", "2 1 0") for i in range(120)]
    (tmp_path / "a.tsv").write_text(lines(*rows))
    out = generate(features=POINTED, train="a.tsv", split={"eval": 0.2, "test": 0.2})
    kept = {
        split: {tuple(feature["points"].float_list.value) for feature in out.records(split)}
        for split in ("train", "eval", "test")
    }
    assert sum(map(len, kept.values())) == len(set.union(*kept.values())) == 60
    (first, *_) = out.records("train")
    assert first["answer"].int64_list.value == [2, 1, 0]


def test_what_is_missing_and_may_be_is_an_empty_list(tmp_path, generate):
    (tmp_path / "a.tsv").write_text(lines(("a", "b", "c"), ("d", "e", ""), ("d", "f", "g")))
    out = generate(features=SUMMARISED, **dict.fromkeys(("train", "eval", "test"), "a.tsv"))
    titles = [feature["title"].bytes_list.value for feature in out.records("test")]
    summaries = [feature["summary"].bytes_list.value for feature in out.records("test")]
    assert titles == [[b"c"], []]
    assert summaries == [[b"b"], [b"e", b"f"]]


def test_the_images_are_part_of_what_does_not_fit_on_a_disk(
    tmp_path, generate, captions, monkeypatch
):
    def write(self, record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ShardWriter, "write", write)
    usage = namedtuple("usage", "total used free")(10, 10, 4321)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    files = [tmp_path / "captions.tsv", *(tmp_path / "photos").iterdir()]
    size = sum(path.stat().st_size for path in files)
    with pytest.raises(UserError, match=f"its files have {size:,} bytes, 4,321 are free"):
        generate(**captions)
