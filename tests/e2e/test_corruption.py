"""Damaged files of a pipeline are made again, or named with a remedy; nothing trains on them."""

import json
import shutil
from pathlib import Path

import pytest

from regard.core.files import folder_digest

pytestmark = pytest.mark.slow

ARTIFACTS = "pipelines/tiny/artifacts"
TRAIN = f"{ARTIFACTS}/CorpusGen/examples/*/Split-train/*"
TRANSFORMED = f"{ARTIFACTS}/Preprocess/transformed_examples/*/Split-train/*"
MODEL = f"{ARTIFACTS}/Trainer/model/*/Format-Serving"
CHECKPOINT = "pipelines/tiny/checkpoints/*"
METADATA = "pipelines/tiny/metadata.sqlite"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path):
    path.write_bytes(b"damaged")


def swap_with_eval(path):
    shutil.copyfile(next(Path(str(path.parent).replace("-train", "-eval")).iterdir()), path)


def weights(shell):
    """The digest of the newest model's weights."""
    newest = max(shell.home.glob(MODEL), key=lambda path: int(path.parent.name))
    return folder_digest(newest / "variables")


@pytest.fixture(scope="module")
def intact(shell, tmp_path_factory):
    """A copy of the workspace after a run, and the digest of the weights."""
    result = shell.run("run", shell.configure(epochs=2))
    assert result.returncode == 0, result.stdout + result.stderr
    copy = tmp_path_factory.mktemp("intact") / "home"
    shutil.copytree(shell.home, copy, symlinks=True)
    return copy, weights(shell)


@pytest.fixture
def damage(shell, intact):
    """Restore the workspace, and damage files of it."""

    def apply(*damages):
        shutil.rmtree(shell.home)
        shutil.copytree(intact[0], shell.home, symlinks=True)
        for pattern, change in damages:
            for path in shell.home.glob(pattern):
                change(path)

    return apply


def run(shell):
    result = shell.run("run", "tiny.yaml")
    output = result.stdout + result.stderr
    assert "Traceback" not in output
    return result.returncode, output


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        (TRAIN, swap_with_eval),
        (TRAIN, flip),
        (f"{ARTIFACTS}/SchemaGen/schema/*/schema.pbtxt", cut),
        (f"{ARTIFACTS}/StatisticsGen/statistics/*/Split-train/*", flip),
        (f"{ARTIFACTS}/TokenizerTrainer/tokenizer/*/source.vocab", cut),
        (f"{ARTIFACTS}/Preprocess/transform_graph/*/transform_fn/saved_model.pb", flip),
        (TRANSFORMED, swap_with_eval),
        (TRANSFORMED, cut),
        (f"{MODEL}/saved_model.pb", flip),
        (f"{MODEL}/variables/variables.data-00000-of-00001", cut),
        (f"{ARTIFACTS}/Predictor/predictions/*/candidate.parquet", cut),
        (f"{ARTIFACTS}/Evaluator/evaluation/*/metrics.json", overwrite),
        (f"{ARTIFACTS}/Evaluator/blessing/*/BLESSED", Path.unlink),
    ],
)
def test_a_damaged_output_is_made_again(shell, intact, damage, pattern, change):
    damage((pattern, change))
    status, output = run(shell)
    assert status == 0, output
    assert "was changed or damaged" in output
    assert weights(shell) == intact[1]


@pytest.mark.parametrize("change", [cut, flip, overwrite])
@pytest.mark.parametrize("name", ["last.npz", "best.npz"])
def test_a_damaged_checkpoint(shell, intact, damage, name, change):
    damage((f"{ARTIFACTS}/Trainer/model/*", shutil.rmtree), (f"{CHECKPOINT}/{name}", change))
    status, output = run(shell)
    if name == "last.npz":
        assert status == 0, output
        assert "last.npz is damaged" in output
    else:
        assert status == 2, output
        assert "best.npz" in output
        assert "Remove the folder" in output
        for path in shell.home.glob(CHECKPOINT):
            shutil.rmtree(path)
        assert run(shell)[0] == 0
    assert weights(shell) == intact[1]


@pytest.mark.parametrize("change", [cut, overwrite])
def test_damaged_metadata(shell, damage, change):
    damage((METADATA, change))
    status, output = run(shell)
    assert status == 0, output
    assert "metadata.sqlite is damaged and was replaced" in output
    assert set(shell.states().values()) == {"cached"}
    damage((METADATA, change), (f"{METADATA}.copy", change))
    status, output = run(shell)
    assert status == 2
    assert "metadata.sqlite" in output
    assert "Remove the file" in output
    result = shell.run("lineage", "tiny@1")
    assert "metadata.sqlite: The database of the pipeline" in result.stdout
    (shell.home / METADATA).unlink()
    assert run(shell)[0] == 0


@pytest.mark.parametrize(
    "pattern",
    [
        "pipelines/tiny/runs/*/run.json",
        "pipelines/tiny/runs/*/events.jsonl",
        "pipelines/tiny/runs/*/config.yaml",
        "pipelines/tiny/fingerprints.json",
        "pipelines/tiny/code_digests.json",
        "pipelines/tiny/lock",
        "registry/tiny/1/regard.json",
    ],
)
@pytest.mark.parametrize("change", [cut, overwrite])
def test_damaged_records(shell, damage, pattern, change):
    damage((pattern, change))
    status, output = run(shell)
    assert status in (0, 2)
    if status:
        assert Path(pattern).name in output
    for command in (
        ("runs",),
        ("runs", "show", "tiny"),
        ("registry", "list"),
        ("lineage", "tiny@1"),
    ):
        result = shell.run(*command)
        assert result.returncode in (0, 2), result.stderr
        assert "Traceback" not in result.stdout + result.stderr


def test_a_damaged_published_version_is_named(shell, damage):
    damage(("registry/tiny/1/saved_model.pb", flip))
    result = shell.run("registry", "list", "tiny", "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)
    result = shell.run("predict", "tiny", "abc")
    assert result.returncode == 2
    assert "registry/tiny/1" in result.stdout + result.stderr
