from __future__ import annotations

import json
import os

from components.corpus_gen import fingerprints
from components.corpus_gen.fingerprints import fingerprint


def corpus(folder, **sides):
    folder.mkdir(exist_ok=True)
    for side, text in sides.items():
        (folder / f"a.{side}").write_text(text)
    return {"root": str(folder), "train": {"source": "a.source", "target": "a.target"}}


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
