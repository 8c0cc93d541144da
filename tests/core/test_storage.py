"""Local copies of objects: checked, current, and errors that name the URI."""

import os
import sys
import uuid

import pytest

from regard.core import storage
from regard.core.errors import UserError
from regard.core.storage import ObjectStore

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    """Returns a writer of objects of a new bucket, which has the bucket's URI."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    files = fsspec.filesystem("memory")

    def write(name, content=b"x"):
        files.pipe_file(f"/{write.uri.removeprefix('memory://')}/{name}", content)

    write.uri = f"memory://{uuid.uuid4().hex}"
    return write


def download(uri, folder):
    store = ObjectStore(uri, "data.train")
    store.download(store.find(), folder)


def test_a_copy_is_made_once_and_again_after_a_change(bucket, tmp_path):
    for name in ("a.tsv", "deep/ä ö.tsv"):
        bucket(name, name.encode())
    download(bucket.uri, tmp_path)
    assert (tmp_path / "deep" / "ä ö.tsv").read_text() == "deep/ä ö.tsv"
    before = (tmp_path / "a.tsv").stat()
    bucket("deep/ä ö.tsv", b"other")
    download(bucket.uri, tmp_path)
    assert (tmp_path / "deep" / "ä ö.tsv").read_bytes() == b"other"
    assert (tmp_path / "a.tsv").stat().st_ino == before.st_ino
    # A copy that was modified or truncated is not taken for the object.
    (tmp_path / "a.tsv").write_bytes(b"A.TSV")
    download(bucket.uri, tmp_path)
    assert (tmp_path / "a.tsv").read_bytes() == b"a.tsv"


def test_more_objects_than_one_page(bucket, tmp_path):
    for number in range(1100):
        bucket(f"{number}")
    assert len(ObjectStore(bucket.uri, "key").find()) == 1100


def test_an_object_that_changes_while_it_is_read(bucket, tmp_path, monkeypatch):
    bucket("a", b"first")
    store = ObjectStore(bucket.uri, "key")
    read, contents = store._fs.get_file, [b"later"]

    def get_file(path, target):
        read(path, target)
        if contents:
            bucket("a", contents.pop())

    monkeypatch.setattr(store._fs, "get_file", get_file)
    store.download(store.find(), tmp_path)
    assert (tmp_path / "a").read_bytes() == b"later"
    contents += [b"%d" % number for number in range(9)]
    bucket("a", b"new")
    with pytest.raises(UserError, match="changes while it is read"):
        store.download(store.find(), tmp_path)
    assert (tmp_path / "a").read_bytes() == b"later"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a"]


def test_an_incomplete_download_leaves_nothing(bucket, tmp_path, monkeypatch):
    bucket("a", b"content")
    store = ObjectStore(bucket.uri, "key")

    def get_file(path, target):
        with open(target, "wb") as file:
            file.write(b"con")
        raise OSError("connection lost")

    monkeypatch.setattr(store._fs, "get_file", get_file)
    with pytest.raises(UserError, match="connection lost") as caught:
        store.download(store.find(), tmp_path / "out")
    assert caught.value.where == f"key: {bucket.uri}/a"
    assert [*(tmp_path / "out").iterdir()] == []


@pytest.mark.parametrize("name", ["../outside", "a//b", "./a", "x" * 300])
def test_a_name_that_is_no_file_name(bucket, name, monkeypatch, tmp_path):
    bucket("ok")
    store = ObjectStore(bucket.uri, "key")
    path = f"{store._root}/{name}"
    info = {"type": "file", "size": 1, "name": path, "created": 1.0}
    monkeypatch.setattr(store._fs, "find", lambda *args, **kwargs: {path: info})
    objects = store.find()
    with pytest.raises(UserError, match="cannot be that of a file"):
        store.download(objects, tmp_path / "copies")
    assert not (tmp_path / "copies").exists()


def test_a_uri_with_dots_stays_in_the_cache(bucket):
    with pytest.raises(UserError) as caught:
        storage.local_copy("s3://bucket/../../etc")
    assert caught.value.where == "s3://bucket/../../etc"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError("The provided token has expired."), "token has expired"),
        (RuntimeError("Unable to locate credentials"), "Unable to locate credentials"),
        (FileNotFoundError("The specified bucket does not exist"), "bucket does not exist"),
    ],
)
def test_errors_of_the_store_name_uri_and_key(bucket, monkeypatch, error, message):
    store = ObjectStore(bucket.uri, "data.train")

    def find(*args, **kwargs):
        raise error

    monkeypatch.setattr(store._fs, "find", find)
    with pytest.raises(UserError, match=message) as caught:
        store.find()
    assert caught.value.where == f"data.train: {bucket.uri}"
    assert "AWS_PROFILE" in caught.value.remedy


@pytest.mark.parametrize("package", ["fsspec", "s3fs"])
def test_a_missing_package(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(UserError, match=package) as caught:
        ObjectStore("s3://bucket/x", "data.train")
    assert 'pip install "regard[s3]"' in caught.value.remedy


def test_unknown_scheme():
    with pytest.raises(UserError, match="Protocol not known: nowhere"):
        ObjectStore("nowhere://bucket/x", "key")


def test_an_object_is_created_once(bucket):
    store = ObjectStore(bucket.uri, "key")
    assert [store.create("a", b"1"), store.create("a", b"2")] == [True, False]
    assert store._fs.cat_file(f"{store._root}/a") == b"1"


@pytest.mark.parametrize("path", ["gs://bucket/x", "s3:/bucket", os.path.join("memory:", "", "x")])
def test_a_uri_is_no_local_path(path):
    with pytest.raises(UserError, match="is a URI"):
        storage.refuse_uri(path, "REGARD_HOME")
    storage.refuse_uri("folder:1/x", "key")
