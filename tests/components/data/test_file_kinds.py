"""Files that are not text: their first bytes, their names, and how to convert them."""

import bz2
import io
import lzma
import tarfile
import zipfile

import pytest

from regard.components.data.config_rules import validate_data
from regard.components.data.file_kinds import conversion, kind_of_content, kind_of_name
from regard.components.settings.data import DataConfig
from tests.components.corpora import TRANSLATION, unreadable

ROWS = b"one\tun\n" * 20


def tar(mode="w"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        member = tarfile.TarInfo("train.tsv")
        member.size = len(ROWS)
        archive.addfile(member, io.BytesIO(ROWS))
    return stream.getvalue()


def zip_archive():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("train.tsv", ROWS)
    return stream.getvalue()


CONTENTS = [
    ("train.tsv.xz", lzma.compress(ROWS), "xz -dc"),
    ("train.tsv.bz2", bz2.compress(ROWS), "bzip2 -dc"),
    ("train.tsv.zst", b"\x28\xb5\x2f\xfd rest", "zstd -dc"),
    ("train.tsv.lz4", b"\x04\x22\x4d\x18 rest", "lz4 -dc"),
    ("train.7z", b"7z\xbc\xaf\x27\x1c rest", "7z x"),
    ("train.rar", b"Rar!\x1a\x07\x00", "unrar x"),
    ("train.zip", zip_archive(), "unzip"),
    ("train.xlsx", zip_archive(), "CSV"),
    ("train.tar", tar(), "tar -xf"),
    ("train.tar.gz", tar("w:gz"), "tar -xf"),
    ("train.tgz", tar("w:gz"), "tar -xf"),
]


@pytest.mark.parametrize(("name", "content", "command"), CONTENTS, ids=[one[0] for one in CONTENTS])
@pytest.mark.parametrize("kind", ["tsv", "tmx", "jsonl"])
def test_other_files_are_refused_by_their_content(tmp_path, single, kind, name, content, command):
    group = single(kind, content)
    error = unreadable(group, columns={"source": "en", "target": "fr"} if kind == "tmx" else None)
    assert error.problem.location == group.files[0]
    renamed = conversion(kind_of_content(content[:512], name), name)
    if not name.endswith("gz"):  # its content could be any gzip
        assert command in renamed


@pytest.mark.parametrize(("name", "content", "command"), CONTENTS, ids=[one[0] for one in CONTENTS])
def test_other_files_are_refused_by_their_name(tmp_path, name, content, command):
    config = DataConfig.model_validate({"root": str(tmp_path), "train": [f"a b/{name}"]})
    (problem,) = validate_data(config, TRANSLATION)
    assert problem.path == ("data", "train")
    assert command in problem.message


def test_a_converted_file_has_a_name_that_is_read():
    kind = kind_of_name("my data/train.tsv.XZ")
    command = "xz -dc 'my data/train.tsv.XZ' | gzip > 'my data/train.tsv'.gz"
    assert command in conversion(kind, "my data/train.tsv.XZ")


@pytest.mark.parametrize("name", ["a.tsv", "corpus.br", "a.tsv.gz", "bz2", "xz", "a.txt"])
def test_names_of_possible_text(name):
    assert kind_of_name(name) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS"),
        (b"\n <!DOCTYPE html>\n<html><body>404</body></html>\n", "a web page"),
        (b"<HTML>\n", "a web page"),
    ],
)
def test_files_of_a_failed_download(single, content, message):
    assert message in str(unreadable(single("tsv", content)))


def test_archives_in_gzip(tmp_path):
    from regard.components.data.sources import FileGroup

    path = tmp_path / "a.tsv.gz"
    path.write_bytes(tar("w:gz"))
    error = unreadable(FileGroup("train", "tsv", (str(path),)))
    assert "a tar archive" in str(error)
