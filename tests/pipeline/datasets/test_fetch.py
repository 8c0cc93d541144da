import errno
import gzip
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from components.errors import UserError
from pipeline.datasets import fetch as module
from pipeline.datasets.fetch import fetch, fetch_multi30k, text_digest

# Texts that do not compress away, so that a connection can be cut in the middle of one.
TEXTS = {
    f"{split}.{language}.gz": "".join(
        hashlib.sha256(f"{split}{language}{i}".encode()).hexdigest() + "\n" for i in range(500)
    ).encode()
    for split in ("train", "val")
    for language in ("de", "en")
}


@pytest.fixture
def toy(server, monkeypatch, tmp_path):
    """A small data set on the server; gives a function that fetches it, with quick retries."""
    entries = []
    for name, text in TEXTS.items():
        split, language, _ = name.split(".")
        digest = hashlib.sha256(text).hexdigest()
        entries.append(
            {"name": name, "split": split, "language": language, "lines": 500, "sha256": digest}
        )
        server.files[name] = gzip.compress(text, 1)
    manifest = {"name": "toy", "version": "abc", "url": server.url, "files": entries}
    monkeypatch.setattr(module, "_manifest", lambda name: manifest)

    def get(directory=tmp_path / "data", **options):
        return fetch("toy", directory, cache=tmp_path / "cache", backoff=0.001, **options)

    return get


def texts(directory):
    return {path.name: gzip.decompress(path.read_bytes()) for path in directory.iterdir()}


def leftovers(directory):
    return [path.name for path in directory.rglob("*") if path.suffix in (".part", ".tmp")]


def test_whole_download(toy, server, tmp_path):
    told = []
    summary = toy(progress=lambda text, share: told.append((text, share)))
    assert texts(tmp_path / "data") == TEXTS
    assert summary.rows == {"train": 500, "val": 500}
    assert summary.made == 4
    assert [path.name for path in summary.files] == list(TEXTS)
    assert told[0] == ("train.de.gz", 0.0)
    assert told[-1] == ("4 of 4 files fetched", 1.0)
    assert leftovers(tmp_path) == []


def test_what_is_there_and_right_is_not_asked_for(toy, server, tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    # Compressed in another way: other bytes, the same text.
    for name, text in TEXTS.items():
        (directory / name).write_bytes(gzip.compress(text, 9))
        assert (directory / name).read_bytes() != server.files[name]
    assert toy().made == 0
    assert server.requests == []


def test_the_cache_serves_another_directory(toy, server, tmp_path):
    toy()
    asked = len(server.requests)
    assert toy(tmp_path / "other").made == 4
    assert texts(tmp_path / "other") == TEXTS
    assert len(server.requests) == asked


def test_only_the_languages_asked_for(toy, tmp_path):
    summary = toy(languages=("en",))
    assert set(texts(tmp_path / "data")) == {"train.en.gz", "val.en.gz"}
    assert len(summary.files) == 2
    with pytest.raises(UserError, match="Choose among: de, en"):
        toy(languages=("xx",))


def test_a_cut_connection_is_resumed(toy, server, tmp_path):
    server.faults["train.de.gz"] = [("cut", 9_000), ("cut", 5_000)]
    toy()
    assert texts(tmp_path / "data") == TEXTS
    asked = [wanted for name, wanted in server.requests if name == "train.de.gz"]
    assert asked == [None, "bytes=9000-", "bytes=14000-"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(toy, server, tmp_path):
    server.faults["train.de.gz"] = [("cut", 9_000), 503, 503]
    with pytest.raises(UserError, match="it goes on where it stopped"):
        toy(retries=1)
    assert not (tmp_path / "data" / "train.de.gz").exists()
    server.requests.clear()
    server.faults.clear()
    toy()
    assert server.requests[0] == ("train.de.gz", "bytes=9000-")
    assert texts(tmp_path / "data") == TEXTS


def test_a_server_that_ignores_ranges(toy, server, tmp_path):
    server.ranges = False
    server.faults["train.de.gz"] = [("cut", 9_000)]
    toy()
    assert texts(tmp_path / "data") == TEXTS
    assert server.requests[1] == ("train.de.gz", "bytes=9000-")


def test_a_part_that_is_whole_already(toy, server, tmp_path):
    part = tmp_path / "cache" / "toy" / "abc" / "train.de.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(server.files["train.de.gz"])
    toy()
    assert server.requests[0] == ("train.de.gz", f"bytes={part_size(server)}-")
    assert texts(tmp_path / "data") == TEXTS


def part_size(server):
    return len(server.files["train.de.gz"])


@pytest.mark.parametrize("size", [5_000, 500_000])
def test_a_part_of_another_file_is_thrown_away(toy, server, tmp_path, size):
    part = tmp_path / "cache" / "toy" / "abc" / "train.de.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * size)
    toy()
    assert texts(tmp_path / "data") == TEXTS
    assert leftovers(tmp_path) == []


def test_corrupted_content_does_not_stay(toy, server, tmp_path):
    server.files["train.en.gz"] = gzip.compress(b"something else\n")
    expected = hashlib.sha256(TEXTS["train.en.gz"]).hexdigest()
    got = hashlib.sha256(b"something else\n").hexdigest()
    with pytest.raises(UserError) as caught:
        toy()
    for said in ("train.en.gz", expected, got, "by hand"):
        assert said in str(caught.value)
    assert set(texts(tmp_path / "data")) == {"train.de.gz"}
    assert [path.name for path in (tmp_path / "cache").rglob("*.gz*")] == ["train.de.gz"]


def test_an_answer_that_is_no_gzip(toy, server):
    server.files["train.de.gz"] = b"<html>log in first</html>"
    with pytest.raises(UserError, match="no whole gzip file"):
        toy()


def test_a_wrong_file_in_the_directory_is_replaced(toy, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.de.gz").write_bytes(gzip.compress(TEXTS["train.de.gz"])[:900])
    toy()
    assert texts(tmp_path / "data") == TEXTS


def test_a_missing_file(toy, server):
    del server.files["train.de.gz"]
    with pytest.raises(UserError, match=re.escape("no such file (status 404)")) as caught:
        toy()
    assert caught.value.where == f"{server.url}/train.de.gz"
    assert len(server.requests) == 1


def test_one_bad_attempt_then_a_good_one(toy, server, tmp_path):
    server.faults["train.de.gz"] = [500]
    toy()
    assert texts(tmp_path / "data") == TEXTS
    assert [name for name, _ in server.requests].count("train.de.gz") == 2


def test_no_network(toy, tmp_path):
    # Nothing listens on port 9 of this machine.
    with pytest.raises(UserError, match="the download failed 2 times") as caught:
        toy(base_url="http://127.0.0.1:9", retries=1, timeout=1)
    assert "Connection refused" in caught.value.message
    assert str(tmp_path / "data") in caught.value.remedy


def test_no_space_left(toy, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(UserError, match="no space left") as caught:
        toy()
    assert caught.value.where == str(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_file_in_the_way(toy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--out"):
        toy(tmp_path / "file" / "data")


def test_the_cache_is_under_regard_home(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    fetch("toy", tmp_path / "data")
    assert (tmp_path / "home" / "cache" / "toy" / "abc" / "train.de.gz").exists()


def test_manifest_of_multi30k():
    path = Path(module.__file__).with_name("multi30k.json")
    manifest = json.loads(path.read_text())
    assert manifest["version"] in manifest["url"]
    assert re.fullmatch("[0-9a-f]{40}", manifest["version"])
    assert len(manifest["files"]) == 22
    for file in manifest["files"]:
        assert file["name"] == f"{file['split']}.{file['language']}.gz"
        assert re.fullmatch("[0-9a-f]{64}", file["sha256"])


def test_multi30k_agrees_with_the_copy_at_hand(tmp_path, monkeypatch):
    root = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    if not (root / "val.en.gz").exists():
        pytest.skip("no Multi30k in $REGARD_DATA")
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    # Every file is there and right: nothing is asked of this address.
    summary = fetch_multi30k(root, base_url="http://127.0.0.1:9", retries=0)
    assert summary.made == 0
    assert summary.rows["train"] == 29_000


def test_text_digest(tmp_path):
    path = tmp_path / "a.gz"
    assert text_digest(path) is None
    path.write_bytes(b"plain text")
    assert text_digest(path) is None
    path.write_bytes(gzip.compress(b"text" * 100)[:-3])
    assert text_digest(path) is None
    path.write_bytes(gzip.compress(b"text"))
    assert text_digest(path) == hashlib.sha256(b"text").hexdigest()
