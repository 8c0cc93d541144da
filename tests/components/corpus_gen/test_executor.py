import errno
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from tfx.components.util import examples_utils

from regard.components.corpus_gen.example_writer import ShardWriter
from regard.components.corpus_gen.executor import _publish
from regard.components.data.corpus_plan import GroupResult
from regard.core.errors import UserError
from tests.components.corpora import write_files

SPLITS = ("train", "eval", "test")


def pairs(tmp_path, count, name="train"):
    (tmp_path / f"{name}.en").write_text("".join(f"sentence {i}\n" for i in range(count)))
    target = "".join(f"Satz {i}\n" for i in range(count))
    (tmp_path / f"{name}.de.gz").write_bytes(gzip.compress(target.encode()))
    return {"source": f"{name}.en", "target": f"{name}.de.gz"}


def paths_in(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_separate_splits_with_file_and_line(tmp_path, generate):
    write_files(tmp_path, {"0.tsv": "one\teins\n", "1.tsv": "two\tzwei\nthree\tdrei\n"})
    out = generate(
        train=["0.tsv", "1.tsv"], eval=pairs(tmp_path, 2, "eval"), test=pairs(tmp_path, 3, "test")
    )
    assert out.rows("train") == [
        ("one", "eins", "0.tsv", 1),
        ("two", "zwei", "1.tsv", 1),
        ("three", "drei", "1.tsv", 2),
    ]
    assert out.rows("eval") == [(f"sentence {i}", f"Satz {i}", "eval.en", i + 1) for i in (0, 1)]
    assert out.findings["rows"] == {"train": 3, "eval": 2, "test": 3}
    shards = [f"data_tfrecord-0000{i}-of-00002.gz" for i in (0, 1)]
    assert paths_in(out.folder / "Split-train") == shards


def test_artifact_properties_for_tfx(tmp_path, generate):
    artifact = generate(**dict.fromkeys(SPLITS, pairs(tmp_path, 2))).artifact
    assert json.loads(artifact.split_names) == [*SPLITS]
    assert examples_utils.get_payload_format_string(artifact) == "FORMAT_TF_EXAMPLE"


def test_same_input_gives_same_bytes(tmp_path, generate):
    def shards(name):
        section = {"train": pairs(tmp_path, 300), "split": {"eval": 0.3, "test": 0.3}}
        folder = generate(name, **section).folder
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.gz")}

    one = shards("one")
    assert len(one) == 3
    assert shards("two") == one


def test_skipped_rows_are_counted_and_reported(tmp_path, generate, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(log))
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nc\nd\te\n\xff\tf\n")
    files = {"train": "a.tsv", **dict.fromkeys(SPLITS[1:], pairs(tmp_path, 1))}
    out = generate(**files, bad_rows="skip", bad_rows_limit=0.4)
    assert out.findings["skipped"] == 2
    assert out.findings["problems"]["row/skipped"]["examples"][0]["line"] == 2
    assert [row[3] for row in out.rows("train")] == [1, 3]
    texts = [json.loads(line)["text"] for line in log.read_text().splitlines()]
    assert any(f"2 invalid rows skipped; the first is {tmp_path}/a.tsv:2" in text for text in texts)


def error_of(generate, **section) -> UserError:
    with pytest.raises(UserError) as caught:
        generate(**section)
    return caught.value


@pytest.mark.parametrize(
    "target",
    ["example_writer.ShardWriter.write", "example_writer.write_uri"],
    ids=["rows", "result"],
)
def test_full_disk_is_a_user_error(tmp_path, generate, monkeypatch, target):
    def write(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"regard.components.corpus_gen.{target}", write)
    error = error_of(generate, train=pairs(tmp_path, 50))
    assert error.where == str(tmp_path / "out" / "examples")
    assert error.message == "No space left on the disk"
    assert paths_in(tmp_path / "out" / "examples") == [".regard-scratch"]


def test_output_path_is_a_file(tmp_path, generate):
    (tmp_path / "out").write_text("a file where the folder should be")
    error = error_of(generate, train=pairs(tmp_path, 50))
    assert "The output cannot be written" in error.message
    assert error.where == str(tmp_path / "out" / "examples")
    assert "permissions" in error.remedy


def test_killed_run_leaves_no_split(tmp_path, generate, monkeypatch):
    out, killed = tmp_path / "out" / "examples", tmp_path / "killed"
    write = ShardWriter.write

    def write_and_copy(self, record):
        write(self, record)
        if not killed.exists():
            shutil.copytree(out, killed)  # what a SIGKILL would leave

    monkeypatch.setattr(ShardWriter, "write", write_and_copy)
    section = dict.fromkeys(SPLITS, pairs(tmp_path, 50))
    generate(**section)
    (work,) = (path for path in killed.iterdir() if path.is_dir())
    assert work.name.startswith(".writing-")
    assert list(work.rglob("*.tmp"))

    shutil.rmtree(out)
    killed.rename(out)
    (out / ".writing-mine").mkdir()  # without the mark
    generate(**section)
    generate(**section)  # its own splits are replaced
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert folders == {".writing-mine", *(f"Split-{name}" for name in SPLITS)}


def test_rows_of_another_program_are_not_replaced(tmp_path, generate):
    mine = tmp_path / "out" / "examples" / "Split-train" / "mine"
    mine.parent.mkdir(parents=True)
    mine.touch()
    error = error_of(generate, **dict.fromkeys(SPLITS, pairs(tmp_path, 50)))
    assert error.where == str(mine.parent)
    assert [path.name for path in mine.parent.iterdir()] == ["mine"]


def test_published_shards_are_those_of_the_results(tmp_path):
    """Files of killed attempts are left out, and one that the worker wrote must be there."""
    work = tmp_path / ".writing-1" / "Split-train"
    work.mkdir(parents=True)
    for name in ("part-00000-00000.gz", "part-00000-00000.gz.0123abcd.tmp", "part-00007-00000.gz"):
        (work / name).touch()
    results = [GroupResult(0, (), shards={"train": 1}), GroupResult(1, (), shards={"test": 1})]
    _publish(str(work.parent), str(tmp_path), ["train"], results)
    (shard,) = (tmp_path / "Split-train").iterdir()
    assert shard.name == "data_tfrecord-00000-of-00001.gz"
    with pytest.raises(OSError, match=r"part-00001-00000\.gz is missing from .*/Split-test"):
        _publish(str(work.parent), str(tmp_path), ["test"], results)
    assert not (tmp_path / "Split-test").exists()


def test_fingerprint_is_given_or_computed_by_the_node(tmp_path, generate):
    (tmp_path / "train.tsv").write_text("a\tb\n")
    files = dict.fromkeys(SPLITS, "train.tsv")
    assert generate("given", "f00", **files).findings["fingerprint"] == "f00"
    first = generate("first", **files).findings["fingerprint"]
    assert len(first) == 64
    (tmp_path / "train.tsv").write_text("a\tB\n")
    assert generate("second", **files).findings["fingerprint"] not in (first, "f00")
