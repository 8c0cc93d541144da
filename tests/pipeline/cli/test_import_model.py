"""``regard import``: from a folder to a version that other commands use."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from regard.components.registry.records import read_record
from regard.core.files import sha256_file
from regard.pipeline.cli.app import main
from regard.pipeline.config.load import load
from tests.components.importing.huggingface_fixtures import FOLDER
from tests.components.importing.toolkit_fixtures import JOEYNMT, OPENNMT_TF


@pytest.fixture
def regard(tmp_path, monkeypatch, capfd):
    """Run a command in this process; return its exit status, output and errors."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capfd.readouterr()

    return call


def expected(name, kind):
    with gzip.open(FOLDER / name / "expected.json.gz") as file:
        content = json.load(file)
    return zip(content["sentences"], content[kind], strict=True)


def test_a_marian_model_is_published_and_translates(regard, tmp_path):
    folder = FOLDER / "marian-opus"
    status, output, errors = regard("import", "marian", folder, "--name", "opus", "--json")
    assert (status, errors) == (0, "")
    result = json.loads(output)
    assert result["model"] == "opus@1"
    assert result["is_new"]
    assert result["checked_rows"] >= 2

    record = read_record(tmp_path / "home/registry/opus/1")
    assert record.imported.format == "marian"
    assert record.imported.files["model.safetensors"] == sha256_file(folder / "model.safetensors")
    rows = [(row["source"], answer) for row, answer in expected("marian-opus", "beam")]
    rows = [(text, answer["text"]) for text, answer in rows if len(answer["ids"]) < 18][:5]
    status, output, _ = regard("predict", "opus", *(text for text, _ in rows))
    assert status == 0
    assert output.splitlines() == [text for _, text in rows]

    status, output, _ = regard("lineage", "opus")
    assert status == 0
    assert "from the folder marian-opus (marian)" in output
    text = " ".join(output.split())
    assert "parent none: the version was imported from the folder marian-opus" in text
    assert "missing" not in output

    # The references are the outputs.
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    status, output, _ = regard("evaluate", "opus", "--data", data, "--out", "scores", "--json")
    assert status == 0
    metrics = json.loads((tmp_path / "scores/metrics.json").read_text())["metrics"]
    assert metrics["exact_match"]["value"] == 1
    assert (tmp_path / "scores/report.html").is_file()
    status, _, errors = regard("report", "opus@1")
    assert status == 2
    assert "regard lineage opus@1" in errors

    status, output, _ = regard("import", "marian", folder, "--name", "opus", "--json")
    assert not json.loads(output)["is_new"]
    assert json.loads(output)["version"] == 1


def test_an_m2m_model_has_tags(regard):
    pairs = [("--pair", "de-ru"), ("--pair", "en-de")]
    arguments = [text for pair in pairs for text in pair]
    status, _, errors = regard("import", "m2m", FOLDER / "m2m", "--name", "m2m", *arguments)
    assert (status, errors) == (0, "")
    for row, answer in expected("m2m", "beam"):
        pair = f"{row['source_language']}-{row['target_language']}"
        if pair == "de-ru" and len(answer["ids"]) < 20 and "<unk>" not in answer["text"]:
            status, output, _ = regard("predict", "m2m", "--tag", pair, row["source"])
            assert (status, output) == (0, f"{answer['text']}\n")
            return
    pytest.fail("the fixture has no such row")


def test_the_written_configuration_is_valid(regard, tmp_path):
    path = tmp_path / "tuned.yaml"
    folder = FOLDER / "marian-separate"
    regard("import", "marian", folder, "--name", "sep", "--config", path)
    lines = "".join(f"kato {number} {number % 7}\n" for number in range(400))
    Path("data").mkdir()
    for name in ("train.src", "train.trg"):
        Path("data", name).write_text(lines)
    config = load(path)
    assert config.training.warm_start.model == "sep@1"
    assert config.model.tie_embeddings == "output"
    assert config.model.encoder.positions == "sinusoidal_marian"
    status, output, errors = regard("validate", path)
    assert status == 0, output + errors

    status, _, errors = regard("import", "marian", folder, "--name", "sep", "--config", path)
    assert status == 2
    assert "exists" in errors


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["marian", "nowhere", "--name", "x"], "nowhere"),
        (["m2m", FOLDER / "m2m", "--name", "x", "--pair", "en"], "--pair"),
        (["m2m", FOLDER / "m2m", "--name", "x", "--pair", "en-de-fr"], "--pair"),
        (["m2m", FOLDER / "m2m", "--name", "x", "--pair", "en-xx"], "xx"),
        (["npz", FOLDER], "--name"),
        (["npz", "nowhere", "--list"], "nowhere"),
        (["joeynmt", "nowhere", "--name", "x"], "nowhere"),
        (["joeynmt", JOEYNMT / "pre-tied", "--name", "x", "--checkpoint", "../a"], "--checkpoint"),
        (["opennmt-tf", "nowhere", "--name", "x"], "nowhere"),
        (["opennmt-tf", OPENNMT_TF / "pre", "--name", "x"], "--heads"),
        (["opennmt-tf", OPENNMT_TF / "relative-target", "--name", "x", "--heads", "4"], "--heads"),
        (["opennmt-tf", OPENNMT_TF / "pre", "--name", "x", "--heads", "3"], "--heads"),
        (["marian", FOLDER / "m2m", "--name", "x"], "model_type"),
        (["marian", FOLDER / "marian-opus", "--name", "../x"], "../x"),
        (["marian", FOLDER / "marian-opus", "--name", ""], "--name"),
        (["marian", FOLDER / "marian-opus", "--name", "x", "--config", "A B.yaml"], "--config"),
    ],
)
def test_mistakes_are_errors_of_the_user_and_leave_nothing(regard, tmp_path, arguments, word):
    status, output, errors = regard("import", *arguments)
    assert status == 2
    assert word in errors
    assert "Traceback" not in errors
    assert output == ""
    assert not [*tmp_path.rglob("regard.json")]
