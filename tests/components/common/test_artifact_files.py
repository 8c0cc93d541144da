"""Shards of examples, and atomic writes behind a URI."""

import pytest

from regard.components.common import artifact_files
from regard.core.errors import UserError
from tests import fake_models


def test_a_split_of_tf_examples(tmp_path):
    examples = fake_models.examples(tmp_path, [[{"source": "s", "target": "t"}]])
    assert artifact_files.examples_split(examples, "test") == str(tmp_path / "Split-test")
    with pytest.raises(UserError, match=r"no split 'dev'.*train, eval, test"):
        artifact_files.examples_split(examples, "dev")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("payload_format", "FORMAT_TF_SEQUENCE_EXAMPLE"),
        ("payload_format", "FORMAT_PROTO"),
        ("payload_format", "FORMAT_UNSPECIFIED"),
        ("file_format", "parquet"),
    ],
)
def test_other_formats_are_refused_by_name(key, value, tmp_path):
    examples = fake_models.examples(tmp_path, [[{"source": "s", "target": "t"}]])
    examples.set_string_custom_property(key, value)
    with pytest.raises(UserError, match=value) as caught:
        artifact_files.examples_split(examples, "test")
    assert "FORMAT_TF_EXAMPLE in tfrecords_gzip" in caught.value.remedy


def test_two_attempts_at_one_uri(tmp_path, monkeypatch):
    from tfx.dsl.io import fileio

    rename, uri = fileio.rename, str(tmp_path / "report.json")

    def rename_after_another_attempt(*args, **kwargs):
        monkeypatch.setattr(fileio, "rename", rename)
        artifact_files.write_uri(uri, "the same")
        rename(*args, **kwargs)

    monkeypatch.setattr(fileio, "rename", rename_after_another_attempt)
    artifact_files.write_uri(uri, "the same")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [
        ("report.json", "the same")
    ]


def test_failed_write_leaves_no_temporary_file(tmp_path):
    (tmp_path / "report.json").mkdir()
    (tmp_path / "report.json" / "file").touch()
    with pytest.raises(Exception, match="directory"):
        artifact_files.write_uri(str(tmp_path / "report.json"), "content")
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def shard(i: int, count: int = 3) -> str:
    return f"data_tfrecord-{i:05d}-of-{count:05d}.gz"


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ([], "There are no shards"),
        ([".hidden.gz", "part-0.gz"], "There are no shards"),
        ([shard(0), shard(2)], f"{shard(1)} is missing"),
        ([shard(0), shard(1)], f"{shard(2)} is missing"),
        ([*map(shard, range(3)), shard(0, 2)], "is missing"),
        ([*map(shard, range(3)), "zz.tmp"], "zz.tmp is not one of 3 shards"),
    ],
)
def test_incomplete_split(names, error, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(UserError, match=error) as caught:
        artifact_files.split_shards(str(tmp_path))
    assert caught.value.where == str(tmp_path)
    assert "--from CorpusGen" in caught.value.remedy


def test_a_lost_folder_of_shards(tmp_path):
    with pytest.raises(UserError, match="There are no shards of examples"):
        artifact_files.split_shards(str(tmp_path / "Split-train"))


def test_shards_that_a_stale_listing_lacks(tmp_path, monkeypatch):
    from tfx.dsl.io import fileio

    for i in range(3):
        (tmp_path / shard(i)).touch()
    (tmp_path / f".{shard(1)}.0123.tmp").touch()
    paths = [str(tmp_path / shard(i)) for i in range(3)]
    assert artifact_files.shards_of([str(tmp_path / "*")]) == paths
    monkeypatch.setattr(fileio, "listdir", lambda folder: [shard(2)])
    assert artifact_files.split_shards(str(tmp_path)) == paths
