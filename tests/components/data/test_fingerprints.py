import json
import os
import shutil
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from regard.components.data import fingerprints
from regard.components.data.fingerprints import file_digests, fingerprint
from regard.core import files
from tests.components.corpora import CAPTIONED, SUMMARISED, resolved, write_files

LATER_NS = 10**10
FILES = {"source": "a.source", "target": "a.target"}


def pair(folder, target="b\n", **section):
    write_files(folder, {"a.source": "a\n", "a.target": target})
    return resolved(folder, **{"train": FILES, **section})


@pytest.fixture
def read_files(monkeypatch):
    """Returns the names of the files whose content was read."""
    spy = Mock(wraps=fingerprints.sha256_file)
    monkeypatch.setattr(fingerprints, "sha256_file", spy)
    return lambda: [os.path.basename(call.args[0]) for call in spy.call_args_list]


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock of the machine is ahead: what a test has written is not new any more."""
    monkeypatch.setattr(files, "time", SimpleNamespace(time_ns=lambda: time.time_ns() + LATER_NS))


def test_content_counts_but_not_the_folder(tmp_path):
    one = fingerprint(pair(tmp_path / "one"))
    two = fingerprint(pair(tmp_path / "two"))
    three = fingerprint(pair(tmp_path / "three", target="c\n"))
    assert one == two != three


def test_file_digests_share_the_cache(tmp_path):
    cache, path = tmp_path / "cache.json", str(tmp_path / "corpus" / "a.source")
    fingerprint(pair(tmp_path / "corpus"), cache)
    known = json.loads(cache.read_text())
    assert file_digests([path]) == file_digests([path], cache) == {path: known[path][-1]}
    known[path][-1] = "cached"
    cache.write_text(json.dumps(known))
    assert file_digests([path], cache) == {path: "cached"}
    with pytest.raises(FileNotFoundError):
        file_digests([f"{path}s"], cache)


def test_sides_and_splits_count(tmp_path):
    swapped = {"source": "a.target", "target": "a.source"}
    corpora = pair(tmp_path), pair(tmp_path, train=swapped), pair(tmp_path, eval=FILES, test=FILES)
    assert len(set(map(fingerprint, corpora))) == 3
    sides = {"text": "a.source", "summary": "a.target"}
    titled = {**sides, "title": "a.target"}
    corpora = (resolved(tmp_path, SUMMARISED, train=files) for files in (sides, titled))
    assert len(set(map(fingerprint, corpora))) == 2


def test_unchanged_files_are_not_read_again(tmp_path, read_files):
    corpus, cache = pair(tmp_path), tmp_path / "cache.json"
    first = fingerprint(corpus, cache)
    assert fingerprint(corpus, cache) == first
    assert len(read_files()) == 2
    (tmp_path / "a.target").write_text("longer\n")
    assert fingerprint(corpus, cache) != first
    assert read_files()[2:] == ["a.target"]


def same_times(path, other):
    status = os.stat(other)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def overwrite(path):
    path.write_text("c\n")


def replace(path):
    other = path.with_name("other")
    other.write_text("c\n")
    same_times(other, path)
    os.replace(other, path)


def link(path):
    other = path.with_name("other")
    other.write_text("c\n")
    same_times(other, path)
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("change", [overwrite, replace, link])
def test_other_content_of_the_same_size_and_time_is_read(tmp_path, change):
    corpus, cache = pair(tmp_path), tmp_path / "cache.json"
    first, path = fingerprint(corpus, cache), tmp_path / "a.target"
    (reference := tmp_path / "reference").touch()
    same_times(reference, path)
    change(path)
    same_times(path, reference)
    assert fingerprint(corpus, cache) == fingerprint(corpus) != first


def test_a_link_to_another_file_is_followed(tmp_path, read_files):
    """The case of a link ``current`` that is changed from one release of the data to another."""
    corpus, cache = pair(tmp_path), tmp_path / "cache.json"
    path = tmp_path / "a.target"
    for name, text in (("one", "b\n"), ("two", "c\n")):
        (tmp_path / name).write_text(text)
        same_times(tmp_path / name, path)
    path.unlink()
    path.symlink_to("one")
    first = fingerprint(corpus, cache)
    path.unlink()
    path.symlink_to("two")
    assert fingerprint(corpus, cache) == fingerprint(corpus) != first
    count = len(read_files())
    path.unlink()
    path.symlink_to("one")
    assert fingerprint(corpus, cache) == first
    assert len(read_files()) == count


def test_a_copied_tree_is_read_again_with_the_same_result(tmp_path, read_files):
    corpus = pair(tmp_path / "corpus")
    first = fingerprint(corpus, tmp_path / "cache.json")
    shutil.copytree(tmp_path / "corpus", tmp_path / "copy")  # with the times, like cp -a
    replaced = tmp_path / "corpus" / "a.source"
    replaced.unlink()
    shutil.copy2(tmp_path / "copy" / "a.source", replaced)
    assert fingerprint(corpus, tmp_path / "cache.json") == first
    assert read_files() == ["a.source", "a.target", "a.source"]


def test_a_file_that_has_just_been_written_is_read_again(tmp_path, read_files, monkeypatch):
    """It may be written again within the same tick of the file system's clock."""
    monkeypatch.setattr(files, "time", SimpleNamespace(time_ns=lambda: 0))
    corpus, cache = pair(tmp_path), tmp_path / "cache.json"
    fingerprint(corpus, cache)
    assert not cache.exists()
    fingerprint(corpus, cache)
    assert len(read_files()) == 4


def test_invalid_cache_is_replaced(tmp_path):
    corpus, cache = pair(tmp_path), tmp_path / "cache.json"
    earlier = {str(tmp_path / name): [2, 1, "of an earlier version"] for name in ("a.source", "b")}
    objects = {path: {"a": 1} for path in earlier}
    for content in ("{not json", json.dumps(earlier), json.dumps(objects)):
        cache.write_text(content)
        assert fingerprint(corpus, cache) == fingerprint(corpus)
        assert len(json.loads(cache.read_text())[str(tmp_path / "a.source")]) == 5


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    corpus = pair(tmp_path)
    assert fingerprint(corpus, tmp_path / "a.source" / "cache.json") == fingerprint(corpus)


@pytest.fixture
def captions(tmp_path):
    write_files(tmp_path, {f"photos/{name}.jpg": name for name in ("a", "b", "unnamed")})
    (tmp_path / "a.tsv").write_text("a.jpg\tone\na.jpg\ttwo\nb.jpg\tthree\n")
    return resolved(tmp_path, CAPTIONED, images="photos", train="a.tsv")


def test_images_that_rows_name_count(tmp_path, captions):
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
    photos.rename(tmp_path / "images")
    renamed = resolved(tmp_path, CAPTIONED, images="images", train="a.tsv")
    assert fingerprint(renamed) == first


def test_unreadable_rows_are_ignored(tmp_path, captions):
    (tmp_path / "a.tsv").write_text("a.jpg\tone\nno more\n")
    (tmp_path / "b.tsv").write_bytes(b"")
    section = {"images": "photos", "train": "*.tsv"}
    assert fingerprint(resolved(tmp_path, CAPTIONED, **section)) != fingerprint(captions)


def test_special_files_are_not_opened(tmp_path, captions):
    (tmp_path / "photos" / "b.jpg").unlink()
    missing = fingerprint(captions)
    os.mkfifo(tmp_path / "photos" / "b.jpg")
    assert fingerprint(captions) == missing
