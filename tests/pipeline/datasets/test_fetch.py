"""Downloads from a local web server."""

import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.datasets import fetch as module
from regard.pipeline.datasets.fetch import fetch, fetch_multi30k


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# Texts that cannot be compressed, so that a connection can be cut in the middle of a file.
TEXTS = {
    name: "".join(f"{sha256(f'{name}{i}'.encode())}\n" for i in range(500)).encode()
    for name in ("train.de.gz", "train.en.gz", "val.de.gz", "val.en.gz")
}


@pytest.fixture
def download(server, monkeypatch, tmp_path):
    """Publishes a small data set, and returns a function that downloads it without waiting."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(module, "_RETRIES", 1)
    entries = []
    for name, text in TEXTS.items():
        split, language, _ = name.split(".")
        server.files[name] = gzip.compress(text, 1)
        entry = {"name": name, "split": split, "language": language, "lines": 500}
        entries.append({**entry, "sha256": sha256(server.files[name]), "text_sha256": sha256(text)})
    manifest = {"name": "toy", "version": "abc", "url": server.url, "files": entries}

    def call(directory=tmp_path / "data", url=server.url, progress=None):
        return fetch({**manifest, "url": url}, directory, progress)

    return call


def texts(directory):
    return {path.name: gzip.decompress(path.read_bytes()) for path in directory.iterdir()}


def test_download(download, server, tmp_path):
    reports = []
    rows = download(progress=lambda text, fraction: reports.append((text, fraction)))
    assert texts(tmp_path / "data") == TEXTS
    assert rows == {"train": 500, "val": 500}
    assert server.requests == list(TEXTS)
    assert reports[0] == ("train.de.gz", 0.0)
    assert reports[-1] == ("4 of 4 files downloaded", 1.0)


def test_existing_files_are_not_downloaded(download, server, tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    for name, text in TEXTS.items():  # the same text, compressed differently
        (directory / name).write_bytes(gzip.compress(text, 9))
        assert (directory / name).read_bytes() != server.files[name]
    download()
    assert server.requests == []


@pytest.mark.parametrize("failure", [500, ("cut", 9_000)])
def test_failed_download_is_repeated(download, server, tmp_path, failure):
    server.failures["train.de.gz"] = [failure]
    download()
    assert texts(tmp_path / "data") == TEXTS
    assert server.requests.count("train.de.gz") == 2


def test_interrupted_download_leaves_no_file(download, server, tmp_path):
    server.failures["train.de.gz"] = [("cut", 9_000)] * 2
    with pytest.raises(UserError, match="The download failed"):
        download()
    assert list((tmp_path / "data").iterdir()) == []
    download()
    assert texts(tmp_path / "data") == TEXTS


def test_wrong_checksum(download, server, tmp_path):
    expected = sha256(server.files["train.en.gz"])
    server.files["train.en.gz"] = gzip.compress(b"something else\n")
    with pytest.raises(UserError) as info:
        download()
    assert expected in info.value.message
    assert info.value.where == f"{server.url}/train.en.gz"
    assert str(tmp_path / "data") in info.value.remedy
    assert set(texts(tmp_path / "data")) == {"train.de.gz"}


def test_damaged_file_is_replaced(download, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.de.gz").write_bytes(gzip.compress(TEXTS["train.de.gz"])[:900])
    download()
    assert "train.de.gz" in server.requests
    assert texts(tmp_path / "data") == TEXTS


def test_a_file_of_the_user_is_not_replaced(download, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.de.gz").write_bytes(gzip.compress(b"mine\n"))
    with pytest.raises(UserError) as info:
        download()
    assert info.value.where == str(tmp_path / "data" / "train.de.gz")
    assert texts(tmp_path / "data") == {"train.de.gz": b"mine\n"}
    assert not server.requests


def test_missing_file(download, server):
    del server.files["train.de.gz"]
    with pytest.raises(UserError, match="404") as info:
        download()
    assert info.value.where == f"{server.url}/train.de.gz"


def test_no_network(download):
    with pytest.raises(UserError, match="Connection refused"):  # nothing listens on port 9
        download(url="http://127.0.0.1:9")


def test_manifest_of_multi30k():
    manifest = json.loads(Path(module.__file__).with_name("multi30k.json").read_text())
    assert manifest["version"] in manifest["url"]
    assert re.fullmatch("[0-9a-f]{40}", manifest["version"])
    assert len(manifest["files"]) == 22
    for file in manifest["files"]:
        assert file["name"] == f"{file['split']}.{file['language']}.gz"
        assert re.fullmatch("[0-9a-f]{64}", file["sha256"])
        assert re.fullmatch("[0-9a-f]{64}", file["text_sha256"])


def test_local_copy_of_multi30k_is_recognised(monkeypatch):
    root = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    if not (root / "val.en.gz").exists():
        pytest.skip("no Multi30k in $REGARD_DATA")
    monkeypatch.setattr(module, "download_file", None)
    assert fetch_multi30k(root)["train"] == 29_000


def test_files_have_a_limit(download, server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 9_000)
    with pytest.raises(UserError, match=r"The file is larger than 8.8 KiB\.") as info:
        download()
    assert info.value.where == f"{server.url}/train.de.gz"
    assert server.requests == ["train.de.gz"]
    assert list((tmp_path / "data").iterdir()) == []
