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
from pathlib import Path

import pytest

from regard.components.common.errors import UserError
from regard.components.corpus_gen.example_writer import ShardWriter
from regard.components.corpus_gen.executor import _publish
from tests.components.corpora import corpus_of


def pairs(tmp_path, count, name="train", start=0):
    rows = range(start, start + count)
    (tmp_path / f"{name}.en").write_text("".join(f"sentence {i}\n" for i in rows))
    (tmp_path / f"{name}.de.gz").write_bytes(
        gzip.compress("".join(f"Satz {i}\n" for i in rows).encode())
    )
    return {"source": f"{name}.en", "target": f"{name}.de.gz"}


def paths_in(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_separate_splits_with_file_and_line(tmp_path, generate):
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
    assert paths_in(out.folder / "Split-train") == [
        "data_tfrecord-00000-of-00002.gz",
        "data_tfrecord-00001-of-00002.gz",
    ]


def tsvs(tmp_path, *contents):
    for i, content in enumerate(contents):
        path = tmp_path / f"{i}.tsv"
        path.write_text(content)
        yield path


def test_artifact_properties_for_tfx(tmp_path, generate):
    from tfx.components.util import examples_utils

    files = pairs(tmp_path, 2)
    artifact = generate(train=files, eval=files, test=files).artifact
    assert json.loads(artifact.split_names) == ["train", "eval", "test"]
    assert examples_utils.get_payload_format_string(artifact) == "FORMAT_TF_EXAMPLE"


def test_same_input_gives_same_bytes(tmp_path, generate):
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


def test_skipped_rows_are_counted_and_reported(tmp_path, generate, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(log))
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nc\nd\te\n\xff\tf\n")
    out = generate(
        train="a.tsv",
        eval=pairs(tmp_path, 1, "eval"),
        test=pairs(tmp_path, 1, "test"),
        bad_rows="skip",
        bad_rows_limit=0.4,
    )
    assert out.findings["skipped"] == 2
    assert out.findings["problems"]["row/skip"]["examples"][0]["line"] == 2
    assert [row[3] for row in out.rows("train")] == [1, 3]
    texts = [json.loads(line)["text"] for line in log.read_text().splitlines()]
    assert any(f"2 invalid rows skipped; the first is {tmp_path}/a.tsv:2" in text for text in texts)


def error_of(generate, **section) -> UserError:
    with pytest.raises(UserError) as caught:
        generate(**section)
    return caught.value


def test_full_disk_is_a_user_error(tmp_path, generate, monkeypatch):
    def write(self, record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ShardWriter, "write", write)
    error = error_of(generate, train=pairs(tmp_path, 50))
    assert error.where == str(tmp_path / "out" / "examples")
    assert error.message == "no space left on the disk"
    assert paths_in(tmp_path / "out" / "examples") == []


def test_disk_too_full_for_a_result(tmp_path, generate, monkeypatch):
    def write(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("regard.components.corpus_gen.group_conversion.write_uri", write)
    error = error_of(generate, train=pairs(tmp_path, 50))
    assert "no space left" in error.message
    assert paths_in(tmp_path / "out" / "examples") == []


def test_output_path_is_a_file(tmp_path, generate):
    (tmp_path / "out").write_text("a file where the folder should be")
    error = error_of(generate, train=pairs(tmp_path, 50))
    assert "the output cannot be written" in error.message
    assert error.where == str(tmp_path / "out" / "examples")


def test_killed_run_leaves_no_split(tmp_path, generate):
    big = "".join(f"sentence {i} of a corpus that takes a while\tSatz {i}\n" for i in range(10**6))
    (tmp_path / "big.tsv").write_text(big)
    corpus = json.dumps(corpus_of(tmp_path, train="big.tsv").to_json())
    out = tmp_path / "out" / "examples"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, corpus, str(tmp_path / "out")],
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
    assert generate(train="big.tsv").findings["rows"]["train"] > 1000
    assert sorted(path.name for path in out.iterdir()) == [
        "Split-eval",
        "Split-test",
        "Split-train",
    ]


def test_files_of_killed_attempts_are_no_shards(tmp_path):
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
from regard.components.common.component import Findings
from regard.components.corpus_gen.executor import CorpusGenExecutor
examples, findings = standard_artifacts.Examples(), Findings()
corpus, out = sys.argv[1], sys.argv[2]
sys.argv[1:] = []
examples.uri, findings.uri = out + "/examples", out + "/findings"
args = ["--runner=FnApiRunner", "--direct_running_mode=in_memory", "--sdk_container_image=unused"]
context = BaseBeamExecutor.Context(beam_pipeline_args=args, tmp_dir=out + "/tmp")
outputs = {"examples": [examples], "findings": [findings]}
CorpusGenExecutor(context).Do({}, outputs, {"corpus": corpus, "fingerprint": ""})
"""


def test_fingerprint_is_given_or_computed_by_the_node(tmp_path, generate):
    for split, rows in (("train", "a\tb\n"), ("eval", "c\td\n"), ("test", "e\tf\n")):
        (tmp_path / f"{split}.tsv").write_text(rows)
    files = {"train": "train.tsv", "eval": "eval.tsv", "test": "test.tsv"}
    assert generate("given", "f00", **files).findings["fingerprint"] == "f00"
    first = generate("first", **files).findings["fingerprint"]
    assert len(first) == 64
    (tmp_path / "train.tsv").write_text("a\tB\n")
    assert generate("second", **files).findings["fingerprint"] not in (first, "f00")
