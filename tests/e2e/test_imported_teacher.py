"""An imported model with tags as the teacher of a small model, in both directions."""

import json
from pathlib import Path

import pytest

from regard.components.common.artifact_files import split_shards
from regard.components.data.example_rows import read_rows
from regard.core.features import Feature
from regard.core.kinds import TEXT
from tests.components.importing.huggingface_fixtures import FOLDER
from tests.e2e.conftest import Shell, write_data

pytestmark = pytest.mark.slow
TEXTS = [Feature("source", TEXT), Feature("target", TEXT)]
SECTION = """
augmentation:
  filter: {{forward: m2m@1, forward_tag: en-de, reverse: m2m@1, reverse_tag: de-en, keep: 0.5}}
  distillation: {{teacher: m2m@1, teacher_tag: {tag}}}
  back_translation: {{model: m2m@1, model_tag: de-en, ratio: 0.5, search: sampling}}
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A workspace with the imported model, and data of which a few rows are trained on."""
    shell = Shell(tmp_path_factory.mktemp("teacher"))
    write_data(data := shell.folder / "data")
    rows = (data / "train.tsv").read_text().splitlines(keepends=True)
    (data / "train.tsv").write_text("".join(rows[:60]))
    (data / "mono.txt").write_text("".join(f"{row.split()[1]}\n" for row in rows[60:70]))
    pairs = ["--pair", "en-de", "--pair", "de-en"]
    result = shell.run("import", "m2m", str(FOLDER / "m2m"), "--name", "m2m", *pairs)
    assert result.returncode == 0, result.stderr
    shell.configure(epochs=1)
    return shell


def configure(shell, tag):
    text = (shell.folder / "tiny.yaml").read_text()
    text = text.replace("  train: train.tsv\n", "  train: train.tsv\n  monolingual: [mono.txt]\n")
    text = text.replace("name: tiny", "name: student") + SECTION.format(tag=tag)
    (shell.folder / "student.yaml").write_text(text)
    return "student.yaml"


def pairs(shell):
    """The rows of the newest augmented examples."""
    folder = shell.home / "pipelines/student/artifacts/Augmenter/augmented_examples"
    newest = max(folder.iterdir(), key=lambda path: int(path.name))
    rows = [row for path in split_shards(f"{newest}/Split-train") for row in read_rows(path, TEXTS)]
    return [tuple(texts[0] for texts in row.values) for row in rows]


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("null", ["augmentation.distillation.teacher", "en-de, de-en", "teacher_tag"]),
        ("en-fr", ["augmentation.distillation.teacher_tag", "'en-fr'", "en-de, de-en"]),
    ],
)
def test_a_missing_or_unknown_tag_is_an_error_of_validate_and_run(shell, tag, words):
    for command in ("validate", "run"):
        result = shell.run(command, configure(shell, tag))
        assert result.returncode == 2
        output = " ".join((result.stdout + result.stderr).split())
        assert [word for word in words if word not in output] == []


def test_targets_are_outputs_with_the_tag_and_the_student_is_trained(shell):
    outputs, rows = {}, {}
    for tag in ("de-en", "en-de"):
        result = shell.run("run", configure(shell, tag), "--to", "Augmenter")
        assert result.returncode == 0, result.stderr
        rows[tag] = [row for row in pairs(shell) if not row[0].startswith("<bt> ")]
        assert len(rows[tag]) == 30
        text = "".join(f"{source}\n" for source, _ in rows[tag])
        outputs[tag] = shell.run("predict", "m2m@1", "--tag", tag, text=text).stdout.splitlines()
        targets = [target for _, target in rows[tag]]
        same = [a == b or not a.strip() for a, b in zip(outputs[tag], targets, strict=True)]
        assert all(same)
    assert [source for source, _ in rows["en-de"]] == [source for source, _ in rows["de-en"]]
    assert outputs["en-de"] != outputs["de-en"]
    added = [row for row in pairs(shell) if row[0].startswith("<bt> ")]
    assert 0 < len(added) <= 10
    assert {target for _, target in added} <= set(
        Path(shell.folder, "data/mono.txt").read_text().split()
    )

    result = shell.run("run", "student.yaml", "--json")
    assert result.returncode in (0, 3), result.stderr
    summary = json.loads(result.stdout)
    assert summary["nodes"]["Augmenter"]["state"] == "cached"
    first, second, third = summary["augmentation"]
    assert "m2m@1 with the tag en-de and m2m@1 with the tag de-en" in first
    assert second.endswith("targets translated by m2m@1 with the tag en-de")
    assert "translated by m2m@1 with the tag de-en (sampling)" in third
