from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest

from components.corpus_gen.executor import _publish
from components.corpus_gen.records import ShardWriter
from components.errors import UserError
from tests.components.corpus_gen.corpora import TRANSLATION


def pairs(tmp_path, count, name="train", start=0):
    rows = range(start, start + count)
    (tmp_path / f"{name}.en").write_text("".join(f"sentence {i}\n" for i in rows))
    (tmp_path / f"{name}.de.gz").write_bytes(
        gzip.compress("".join(f"Satz {i}\n" for i in rows).encode())
    )
    return {"source": f"{name}.en", "target": f"{name}.de.gz"}


def left_in(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_given_splits_are_kept_with_file_and_line(tmp_path, generate):
    out = generate(
        train=[str(p) for p in tsvs(tmp_path, "one\teins\n", "two\tzwei\nthree\tdrei\n")],
        eval=pairs(tmp_path, 2, "eval"),
        test=pairs(tmp_path, 3, "test"),
    )
    assert out.rows("train") == [
        ("one", "eins", "0.tsv", 1),
        ("two", "zwei", "1.tsv", 1),
        ("three", "drei", "1.tsv", 2),
    ]
    assert out.rows("eval") == [(f"sentence {i}", f"Satz {i}", "eval.en", i + 1) for i in (0, 1)]
    assert out.findings["rows"] == {"train": 3, "eval": 2, "test": 3}
    assert left_in(out.folder / "Split-train") == [
        "data_tfrecord-00000-of-00002.gz",
        "data_tfrecord-00001-of-00002.gz",
    ]


def tsvs(tmp_path, *contents):
    for i, content in enumerate(contents):
        path = tmp_path / f"{i}.tsv"
        path.write_text(content)
        yield path


def test_the_artifact_says_what_tfx_asks(tmp_path, generate):
    from tfx.components.util import examples_utils

    files = pairs(tmp_path, 2)
    artifact = generate(train=files, eval=files, test=files).artifact
    assert json.loads(artifact.split_names) == ["train", "eval", "test"]
    assert examples_utils.get_payload_format_string(artifact) == "FORMAT_TF_EXAMPLE"


def test_a_hashed_split_never_divides_a_source(tmp_path, generate):
    rows = "".join(f"source {i % 150}\ttarget {i}\n" for i in range(600))
    (tmp_path / "a.tsv").write_text(rows)
    out = generate(train="a.tsv", split={"eval": 0.2, "test": 0.2, "seed": 1})
    sources = [{row[0] for row in out.rows(split)} for split in ("train", "eval", "test")]
    assert all(sources)
    assert sum(len(s) for s in sources) == len(set.union(*sources)) == 150
    assert sum(out.findings["rows"].values()) == 600


def test_the_same_input_gives_the_same_bytes(tmp_path, generate):
    def digests(folder):
        return {
            str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.rglob("*.gz")
        }

    files = pairs(tmp_path, 300)
    section = {"train": files, "split": {"eval": 0.3, "test": 0.3}}
    first = digests(generate("one", **section).folder)
    assert len(first) == 3
    assert digests(generate("two", **section).folder) == first


def test_what_was_left_out_is_counted_and_told(tmp_path, generate, monkeypatch):
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nc\nd\te\n\xff\tf\n")
    out = generate(
        train="a.tsv",
        eval=pairs(tmp_path, 1, "eval"),
        test=pairs(tmp_path, 1, "test"),
        bad_rows="skip",
        bad_rows_limit=0.2,
        encoding_errors="replace",
    )
    assert (out.findings["skipped"], out.findings["repaired"]) == (1, 1)
    assert out.findings["problems"]["row/skip"]["examples"][0]["line"] == 2
    assert [row[3] for row in out.rows("train")] == [1, 3, 4]
    texts = [json.loads(line)["text"] for line in told.read_text().splitlines()]
    assert any(f"1 bad row (skipped); {tmp_path}/a.tsv:2" in text for text in texts)


def refused(generate, **section) -> UserError:
    with pytest.raises(UserError) as caught:
        generate(**section)
    return caught.value


def test_uneven_files_are_refused_and_nothing_is_left(tmp_path, generate):
    files = pairs(tmp_path, 9)
    (tmp_path / "train.en").write_text("one\n" * 8)
    error = refused(generate, train=files)
    assert "train.en has 8 lines" in error.message
    assert "train.de.gz has 9 lines" in error.message
    assert left_in(tmp_path / "out" / "examples") == []


def test_one_bad_file_refuses_the_whole_corpus(tmp_path, generate):
    (tmp_path / "bad.tsv").write_bytes(b"a\tb\n\xff\tc\n")
    error = refused(generate, train=pairs(tmp_path, 9), test="bad.tsv", split={"eval": 0.3})
    assert error.where == f"{tmp_path}/bad.tsv:2"
    assert left_in(tmp_path / "out" / "examples") == []


def test_three_lines_cannot_be_split(tmp_path, generate):
    error = refused(generate, train=pairs(tmp_path, 3))
    assert error.where == "data.split"
    assert "3 rows are too few to split" in error.message
    assert "`eval` and `test`" in error.remedy


def test_a_split_of_which_nothing_is_left_is_refused(tmp_path, generate):
    files = pairs(tmp_path, 5)
    (tmp_path / "bad.tsv").write_text("\xff\tb\n", "latin-1")
    error = refused(generate, train=files, eval=files, test="bad.tsv", encoding_errors="skip")
    assert error.where == "data.test"
    assert "no row is left for test (1 rows were skipped)" in error.message


def test_a_full_disk_is_the_users_to_mend(tmp_path, generate, monkeypatch):
    def write(self, record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    usage = namedtuple("usage", "total used free")(10, 10, 4321)
    monkeypatch.setattr(ShardWriter, "write", write)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    error = refused(generate, train=pairs(tmp_path, 50))
    assert error.where == str(tmp_path / "out" / "examples")
    assert "4,321 are free" in error.message
    assert left_in(tmp_path / "out" / "examples") == []


def test_a_disk_too_full_even_for_a_report(tmp_path, generate, monkeypatch):
    def write(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("components.corpus_gen.passes.write_uri", write)
    error = refused(generate, train=pairs(tmp_path, 50))
    assert "no space left" in error.message
    assert left_in(tmp_path / "out" / "examples") == []


def test_a_place_that_cannot_be_written_to_is_named(tmp_path, generate):
    (tmp_path / "out").write_text("a file where the folder should be")
    error = refused(generate, train=pairs(tmp_path, 50))
    assert "the output cannot be written" in error.message
    assert error.where == str(tmp_path / "out" / "examples")


def test_a_read_only_disk_is_named(tmp_path, generate, monkeypatch):
    def make(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("components.corpus_gen.executor._make_folders", make)
    error = refused(generate, train=pairs(tmp_path, 5))
    assert "the output cannot be written: Read-only file system" in error.message
    assert error.where == str(tmp_path / "out" / "examples")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_folder_is_named(tmp_path, generate):
    files = pairs(tmp_path, 50)
    (tmp_path / "out").mkdir(mode=0o500)
    error = refused(generate, train=files)
    assert "the output cannot be written" in error.message
    assert "rights" in error.remedy


def test_a_kill_leaves_nothing_that_looks_whole(tmp_path, generate):
    big = "".join(f"sentence {i} of a corpus that takes a while\tSatz {i}\n" for i in range(10**6))
    (tmp_path / "big.tsv").write_text(big)
    section = {"root": str(tmp_path), "features": TRANSLATION, "train": "big.tsv"}
    out = tmp_path / "out" / "examples"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(section), str(tmp_path / "out")],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size for path in out.rglob("*.tmp")):
            assert child.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not list(out.glob("Split-*"))
    assert list(out.glob(".writing-*"))

    (tmp_path / "big.tsv").write_text(big[: 10**5].rpartition("\n")[0])
    assert generate(**section).findings["rows"]["train"] > 1000
    assert sorted(path.name for path in out.iterdir()) == [
        "Split-eval",
        "Split-test",
        "Split-train",
    ]


def test_what_an_attempt_left_that_was_killed_is_no_shard(tmp_path):
    work = tmp_path / ".writing-1" / "Split-train"
    work.mkdir(parents=True)
    for name in ("part-00000-00000.gz", "part-00000-00000.gz.0123abcd.tmp"):
        (work / name).touch()
    _publish(str(work.parent), str(tmp_path), ["train"])
    (shard,) = (tmp_path / "Split-train").iterdir()
    assert shard.name == "data_tfrecord-00000-of-00001.gz"


CHILD = """
import json, sys
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts
from components.artifacts import Findings
from components.corpus_gen.executor import Executor
examples, findings = standard_artifacts.Examples(), Findings()
data, out = sys.argv[1], sys.argv[2]
sys.argv[1:] = []
examples.uri, findings.uri = out + "/examples", out + "/findings"
args = ["--runner=FnApiRunner", "--direct_running_mode=in_memory", "--sdk_container_image=unused"]
context = BaseBeamExecutor.Context(beam_pipeline_args=args, tmp_dir=out + "/tmp")
outputs = {"examples": [examples], "findings": [findings]}
Executor(context).Do({}, outputs, {"data": data, "fingerprint": ""})
"""


def test_the_fingerprint_is_the_given_one_or_taken_when_the_node_runs(tmp_path, generate):
    for split, rows in (("train", "a\tb\n"), ("eval", "c\td\n"), ("test", "e\tf\n")):
        (tmp_path / f"{split}.tsv").write_text(rows)
    files = {"train": "train.tsv", "eval": "eval.tsv", "test": "test.tsv"}
    assert generate("given", "f00", **files).findings["fingerprint"] == "f00"
    first = generate("first", **files).findings["fingerprint"]
    assert len(first) == 64
    (tmp_path / "train.tsv").write_text("a\tB\n")
    assert generate("second", **files).findings["fingerprint"] not in (first, "f00")
