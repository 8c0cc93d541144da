"""Runs whose train split published models filter, translate and extend."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from regard.components.common.artifact_files import split_shards
from regard.components.data.example_rows import read_rows
from regard.core.features import Feature
from regard.core.kinds import TEXT

pytestmark = pytest.mark.slow
TEXTS = [Feature("source", TEXT), Feature("target", TEXT)]
AUGMENTATION = """
augmentation:
  filter: {forward: tiny@1, reverse: reverse@1, keep: 0.7}
  distillation: {teacher: tiny@1}
  back_translation: {model: reverse@1, ratio: 0.1, search: sampling}
"""


@pytest.fixture(scope="module")
def runs(shell):
    """A model, which is also published as the reverse one, and a student that is killed once."""
    path = shell.folder / shell.configure(epochs=2)
    text = path.read_text().replace("tokenize: none", "tokenize: none, production: null")
    train = "  train: train.tsv\n"
    path.write_text(text)
    student = text.replace(train, f"{train}  monolingual: [mono.txt]\n") + AUGMENTATION
    (shell.folder / "student.yaml").write_text(student.replace("name: tiny", "name: student"))
    (shell.folder / "data/mono.txt").write_text("".join(f"AB{x}\n" for x in "CDEFGH" * 20))
    result = shell.run("run", "tiny.yaml")
    assert result.returncode == 0, result.stderr
    shutil.copytree(shell.home / "registry/tiny", shell.home / "registry/reverse")
    killed = shell.start("run", "student.yaml", start_new_session=True)
    while not (parts := stored_parts(shell)):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    times = {part: part.stat().st_mtime_ns for part in parts}
    return times, shell.run("run", "student.yaml", "--to", "Augmenter")


def stored_parts(shell):
    return list(shell.home.glob("augmentation/*/*.parquet"))


def examples(shell, output="Augmenter/augmented_examples"):
    """The folders of a node's examples, oldest first."""
    folder = shell.home / f"pipelines/student/artifacts/{output}"
    return sorted(folder.iterdir(), key=lambda path: int(path.name))


def pairs(folder: Path, split="train"):
    shards = split_shards(f"{folder}/Split-{split}")
    rows = [row for path in shards for row in read_rows(path, TEXTS)]
    return [tuple(texts[0] for texts in row.values) for row in rows]


def contents(folder: Path):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_killed_run_resumes(shell, runs):
    times, result = runs
    assert result.returncode == 0, result.stderr
    assert {part: part.stat().st_mtime_ns for part in times} == times
    assert len(stored_parts(shell)) == 4 > len(times)


def test_resumed_rows_are_those_of_an_uninterrupted_run(shell, runs):
    shutil.rmtree(shell.home / "augmentation")
    repeated = shell.run("run", "student.yaml", "--from", "Augmenter", "--to", "Augmenter")
    assert repeated.returncode == 0, repeated.stderr
    before, after = examples(shell)
    assert contents(before) == contents(after)


def test_targets_are_the_outputs_of_predict(shell, runs):
    rows = [row for row in pairs(examples(shell)[0]) if not row[0].startswith("<bt> ")]
    text = "".join(f"{source}\n" for source, _ in rows)
    outputs = shell.run("predict", "tiny@1", text=text).stdout.splitlines()
    assert len(outputs) == len(rows) == 630
    same = [output == target for output, (_, target) in zip(outputs, rows, strict=True)]
    blank = [not output.strip() for output in outputs]
    assert all(a or b for a, b in zip(same, blank, strict=True))
    assert sum(same) > 500


def test_other_splits_do_not_change(shell, runs):
    (original,), (augmented, *_) = examples(shell, "CorpusGen/examples"), examples(shell)
    for split in ("eval", "test"):
        before, after = (contents(folder / f"Split-{split}") for folder in (original, augmented))
        assert before == after


def test_the_student_is_trained_and_reported(shell, runs):
    result = shell.run("run", "student.yaml", "--json")
    assert result.returncode in (0, 3), result.stderr
    summary = json.loads(result.stdout)
    first, second, third = summary["augmentation"]
    assert first.startswith("630 of 900 pairs (70.0%) kept by tiny@1 and reverse@1, with scores")
    assert second.endswith("of 630 targets translated by tiny@1")
    assert third.endswith("translated by reverse@1 (sampling) and added to 630 pairs")
    assert summary["augmentation"][0] in Path(summary["report"]).read_text(encoding="utf-8")
    assert summary["nodes"]["Augmenter"]["state"] == "cached"


def test_the_tag_is_one_token(shell, runs):
    vocabularies = shell.home.glob("pipelines/student/artifacts/TokenizerTrainer/tokenizer/*")
    (folder,) = vocabularies
    assert "<bt>\t" in (folder / "source.vocab").read_text(encoding="utf-8")
