"""Downloads of a model from a local web server."""

import hashlib

import pytest

from regard.core.errors import UserError
from regard.pipeline.datasets import fetch
from regard.pipeline.deployment.importing import import_model, read_marian
from regard.pipeline.deployment.model_download import CHECKSUMS, download_model
from tests.components.importing.huggingface_fixtures import FOLDER
from tests.download_server import server

__all__ = ["server"]
MODEL = FOLDER / "marian-opus"
NAMES = sorted(path.name for path in MODEL.iterdir() if not path.name.startswith("expected"))


@pytest.fixture(autouse=True)
def published(server, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(fetch, "_RETRIES", 1)
    for name in NAMES:
        server.files[name] = (MODEL / name).read_bytes()


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != CHECKSUMS}


def test_a_model_is_downloaded_once_and_can_be_imported(server, tmp_path):
    folder = tmp_path / "opus"
    assert sorted(download_model(server.url, folder)) == NAMES
    assert content(folder) == {name: (MODEL / name).read_bytes() for name in NAMES}
    lines = (folder / CHECKSUMS).read_text().splitlines()
    assert lines == [f"{hashlib.sha256(server.files[name]).hexdigest()}  {name}" for name in NAMES]

    server.requests.clear()
    assert download_model(f"{server.url}/", folder) == []
    assert server.requests == []
    result = import_model(lambda: read_marian(folder), tmp_path / "registry", "opus")
    assert result.version == 1


def test_a_damaged_or_missing_file_is_downloaded_again(server, tmp_path):
    folder = tmp_path / "opus"
    download_model(server.url, folder)
    (folder / "vocab.json").write_bytes(b"{}")
    (folder / "source.spm").unlink()
    assert sorted(download_model(server.url, folder)) == ["source.spm", "vocab.json"]
    assert content(folder) == {name: (MODEL / name).read_bytes() for name in NAMES}


def test_another_content_than_the_checksums_say_is_refused(server, tmp_path):
    folder, sums = tmp_path / "opus", tmp_path / "sums"
    download_model(server.url, folder)
    sums.write_text((folder / CHECKSUMS).read_text())
    server.files["vocab.json"] = b'{"other": 1}'
    with pytest.raises(UserError, match="checksum"):
        download_model(server.url, tmp_path / "second", sums)
    assert not (tmp_path / "second/vocab.json").exists()
    assert download_model(server.url, folder) == []  # the files are those of the first download


def test_an_interrupted_download_leaves_no_file(server, tmp_path):
    server.failures["model.safetensors"] = [None, ("cut", 100), ("cut", 100)]
    with pytest.raises(UserError, match="download failed"):
        download_model(server.url, tmp_path / "opus")
    assert not (tmp_path / "opus/model.safetensors").exists()
    assert not (tmp_path / "opus" / CHECKSUMS).exists()
    assert "model.safetensors" in download_model(server.url, tmp_path / "opus")


@pytest.mark.parametrize("status", [404, 403, 500])
def test_an_address_without_a_model_is_named(server, tmp_path, status):
    for name in ("model.safetensors", "pytorch_model.bin"):
        server.failures[name] = [status]
    with pytest.raises(UserError) as error:
        download_model(server.url, tmp_path / "opus")
    assert server.url in str(error.value)
    assert error.value.remedy
    assert not (tmp_path / "opus").exists()


@pytest.mark.parametrize("url", ["", "opus-mt-en-de", "file:///etc", "ftp://host/x"])
def test_what_is_no_address_is_refused(tmp_path, url):
    with pytest.raises(UserError, match="no address"):
        download_model(url, tmp_path / "opus")


@pytest.mark.parametrize(
    "line", ["", "abc  vocab.json", f"{'a' * 64}  ../vocab.json", f"{'a' * 64} vocab.json", "\0"]
)
def test_a_wrong_list_of_checksums_is_refused_with_its_line(server, tmp_path, line):
    sums = tmp_path / "sums"
    sums.write_text(f"{'a' * 64}  config.json\n{line}\n")
    with pytest.raises(UserError, match="sums:2"):
        download_model(server.url, tmp_path / "opus", sums)
    assert server.requests == []


def test_a_file_that_is_too_large_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.pipeline.deployment.model_download._MAX_BYTES", 100)
    with pytest.raises(UserError, match="larger than 100"):
        download_model(server.url, tmp_path / "opus")
