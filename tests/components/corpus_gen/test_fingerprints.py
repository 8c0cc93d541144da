from __future__ import annotations

import json
import os

import pytest

from components.corpus_gen import fingerprints
from components.corpus_gen.fingerprints import digests, fingerprint
from tests.components.corpus_gen.corpora import CAPTIONED, SUMMARISED, TRANSLATION


def corpus(folder, **sides):
    folder.mkdir(exist_ok=True)
    for side, text in sides.items():
        (folder / f"a.{side}").write_text(text)
    files = {"source": "a.source", "target": "a.target"}
    return {"root": str(folder), "features": TRANSLATION, "train": files}


def test_content_counts_and_the_folder_does_not(tmp_path):
    one = fingerprint(corpus(tmp_path / "one", source="a\n", target="b\n"))
    two = fingerprint(corpus(tmp_path / "two", source="a\n", target="b\n"))
    three = fingerprint(corpus(tmp_path / "three", source="a\n", target="c\n"))
    assert one == two != three


def test_a_touched_file_is_the_same_corpus(tmp_path):
    data = corpus(tmp_path, source="a\n", target="b\n")
    before = fingerprint(data)
    os.utime(tmp_path / "a.source", (1, 1))
    assert fingerprint(data) == before


def test_the_digests_of_files_are_kept_beside_those_of_the_corpus(tmp_path):
    data = corpus(tmp_path / "corpus", source="a\n", target="b\n")
    cache, path = tmp_path / "kept.json", str(tmp_path / "corpus" / "a.source")
    fingerprint(data, cache)
    known = json.loads(cache.read_text())
    assert digests([path]) == digests([path], cache) == {path: known[path][-1]}
    known[path][-1] = "kept"
    cache.write_text(json.dumps(known))
    assert digests([path], cache) == {path: "kept"}
    with pytest.raises(FileNotFoundError):
        digests([f"{path}s"], cache)


def test_sides_and_splits_count(tmp_path):
    data = corpus(tmp_path, source="a\n", target="b\n")
    swapped = {**data, "train": {"source": "a.target", "target": "a.source"}}
    more = {**data, "test": data["train"]}
    assert len({fingerprint(data), fingerprint(swapped), fingerprint(more)}) == 3


def test_the_cache_saves_reading_until_a_file_changes(tmp_path, monkeypatch):
    data = corpus(tmp_path, source="a\n", target="b\n")
    cache = tmp_path / "cache.json"
    read = []
    real = fingerprints.sha256_file
    monkeypatch.setattr(fingerprints, "sha256_file", lambda path: read.append(path) or real(path))
    first = fingerprint(data, cache)
    assert len(read) == 2
    assert fingerprint(data, cache) == first
    assert len(read) == 2
    (tmp_path / "a.target").write_text("longer\n")
    assert fingerprint(data, cache) != first
    assert [os.path.basename(path) for path in read[2:]] == ["a.target"]


def test_a_damaged_cache_is_made_anew(tmp_path):
    data = corpus(tmp_path, source="a\n", target="b\n")
    cache = tmp_path / "cache.json"
    cache.write_text("{not json")
    assert fingerprint(data, cache) == fingerprint(data)
    assert len(json.loads(cache.read_text())) == 2


@pytest.fixture
def captions(tmp_path):
    (tmp_path / "photos").mkdir()
    for name in ("a", "b", "unnamed"):
        (tmp_path / "photos" / f"{name}.jpg").write_text(name)
    (tmp_path / "a.tsv").write_text("a.jpg\tone\na.jpg\ttwo\nb.jpg\tthree\n")
    root = {"root": str(tmp_path), "images": "photos"}
    return {**root, "features": CAPTIONED, "train": "a.tsv"}


def test_the_images_that_rows_name_count_and_no_others(tmp_path, captions):
    photos = tmp_path / "photos"
    first = fingerprint(captions)
    (photos / "unnamed.jpg").write_text("other")
    assert fingerprint(captions) == first
    (photos / "b.jpg").write_text("other")
    changed = fingerprint(captions)
    (photos / "b.jpg").unlink()
    missing = fingerprint(captions)
    assert len({first, changed, missing}) == 3
    (photos / "b.jpg").write_text("b")
    assert fingerprint(captions) == first


def test_an_image_is_read_once_until_it_changes(tmp_path, captions, monkeypatch):
    read = []
    real = fingerprints.sha256_file
    monkeypatch.setattr(fingerprints, "sha256_file", lambda path: read.append(path) or real(path))
    cache = tmp_path / "cache.json"
    first = fingerprint(captions, cache)
    assert [os.path.basename(path) for path in read] == ["a.tsv", "a.jpg", "b.jpg"]
    assert fingerprint(captions, cache) == first
    assert len(read) == 3
    (tmp_path / "photos" / "a.jpg").write_text("longer")
    assert fingerprint(captions, cache) != first
    assert len(read) == 4


def test_the_folder_of_images_does_not_count(tmp_path, captions):
    first = fingerprint(captions)
    (tmp_path / "photos").rename(tmp_path / "images")
    assert fingerprint({**captions, "images": "images"}) == first


def test_rows_that_cannot_be_read_are_left_to_the_reader(tmp_path, captions):
    (tmp_path / "a.tsv").write_text("a.jpg\tone\nno more\n")
    (tmp_path / "b.tsv").write_bytes(b"")
    assert fingerprint({**captions, "train": "*.tsv"}) == fingerprint(
        {**captions, "train": ["a.tsv", "b.tsv"]}
    )


def test_the_same_files_for_other_sides_are_another_corpus(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
    sides = [{"text": "a", "summary": "b"}, {"text": "a", "summary": "b", "title": "b"}]
    given = {"root": str(tmp_path), "features": SUMMARISED}
    one, two = (fingerprint({**given, "train": files}) for files in sides)
    assert one != two
