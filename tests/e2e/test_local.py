"""From files to a published model and a prediction in another process."""

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from regard import predict
from regard.pipeline.config.config import NODES
from tests.pages import plain


@pytest.fixture(scope="module")
def finished(shell):
    config = shell.folder / shell.configure(epochs=6)
    beam = "{type: beam, beam_size: 2, length_penalty: 0.0}"
    # Exported in less time.
    config.write_text(config.read_text().replace(beam, "{type: greedy}"))
    result = shell.run("run", config.name)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_every_node_runs_and_the_model_is_published(shell, finished):
    assert shell.states(0) == dict.fromkeys(NODES, "done")
    version = shell.home / "registry/tiny/1"
    assert (version / "saved_model.pb").exists()
    profile = json.loads((version / "assets.extra/profile.json").read_text())
    assert profile["features"]["source"]["distinct"] == profile["rows"] == 900
    record = json.loads((version / "regard.json").read_text())
    assert record["metrics"]["exact_match"]["value"] > 0.5
    assert "Passed: " in finished.stdout
    assert "regard predict tiny" in finished.stdout


def test_report_of_the_node_and_of_the_command_agree(shell, finished):
    (report,) = (shell.home / "pipelines/tiny/artifacts/Reporter").rglob("report.html")
    assert str(report) in finished.stdout
    command = shell.call("report", "tiny@1")
    assert command.exit_code == 0, command.output
    pages = [plain(Path(path).read_text()) for path in (report, command.stdout.strip())]
    sentences = [page[page.index("A ") : page.index("is version 1.")] for page in pages]
    assert sentences[0] == sentences[1]
    assert "exact match" in sentences[0]
    assert "Trainer done" in pages[0]
    # Only the report of the command includes the run and the node Reporter.
    assert "Reporter done" in pages[1]
    assert "regard run" in pages[1]


def test_predictions_in_another_process_equal_the_evaluated_ones(shell, finished):
    (table,) = (shell.home / "pipelines/tiny/artifacts/Predictor").rglob("candidate.parquet")
    rows = parquet.read_table(table).to_pylist()[:20]
    lines = "".join(row["source"] + "\n" for row in rows)
    result = shell.run("predict", "tiny", text=lines)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [row["hypothesis"] for row in rows]
    assert result.stderr == ""


def test_each_line_has_one_output(shell, finished):
    lines = ["abc", " ".join(["abc"] * 10_000), "", "ab\u2028cd", "ab\0cd", "head"]
    result = shell.run("predict", "tiny", text="".join(f"{line}\n" for line in lines))
    assert result.returncode == 0, result.stderr
    outputs = result.stdout.split("\n")
    assert len(outputs) == len(lines) + 1
    assert outputs[2] == ""
    alone = predict(shell.home / "registry/tiny/1", ["abc", "head"])
    assert [outputs[0], outputs[5]] == [prediction.hypothesis for prediction in alone]


def test_second_run_is_cached_and_not_part_of_the_lineage(shell, finished):
    result = shell.run("run", "tiny.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert shell.states() == dict.fromkeys(NODES, "cached")
    assert [v.name for v in (shell.home / "registry/tiny").iterdir()] == ["1"]

    result = shell.run("lineage", "tiny@1", "--json")
    lineage = json.loads(result.stdout)
    first, *_ = sorted(path.name for path in (shell.home / "pipelines/tiny/runs").iterdir())
    assert (lineage["run"]["id"], lineage["missing"]) == (first, [])
    assert [node["node"] for node in lineage["nodes"]] == list(reversed(NODES))
    assert {node["run"] for node in lineage["nodes"]} == {first}
    assert all(output["exists"] for node in lineage["nodes"] for output in node["outputs"])
    assert lineage["data"]["state"] == "unchanged"
    assert sum(lineage["data"]["rows"].values()) > 0

    newest, *_, oldest = json.loads(shell.run("runs", "tiny", "--json").stdout)
    assert oldest["nodes"]["Trainer"]["peak_bytes"] > 100 << 20
    assert newest["nodes"]["Trainer"]["state"] == "cached"


@pytest.mark.slow
def test_to_stops_after_a_node(shell, finished):
    result = shell.run("run", "tiny.yaml", "--to", "Preprocess")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Trainer" not in shell.states()


@pytest.mark.slow
def test_from_runs_a_node_again(shell, finished):
    result = shell.run("run", "tiny.yaml", "--from", "Evaluator")
    assert result.returncode == 0, result.stdout + result.stderr
    states = shell.states()
    assert states["Predictor"] == "cached"
    assert states["Evaluator"] == "done"


@pytest.mark.slow
def test_model_worse_than_production_is_not_published(shell, finished):
    text = (shell.folder / "tiny.yaml").read_text()
    (shell.folder / "worse.yaml").write_text(text.replace("max_epochs: 6", "max_epochs: 1"))
    result = shell.run("run", "worse.yaml", "--json")
    assert result.returncode == 3, result.stdout + result.stderr
    assert "version 1" in json.loads(result.stdout)["blessing"]["sentence"]
    tables = (shell.home / "pipelines/tiny/artifacts/Predictor").rglob("production.parquet")
    (table,) = tables
    rows = parquet.read_table(table, columns=["hypothesis", "references"]).to_pylist()
    assert sum([row["hypothesis"]] == row["references"] for row in rows) > len(rows) / 2
    assert [v.name for v in (shell.home / "registry/tiny").iterdir()] == ["1"]
    findings = (shell.home / "pipelines/tiny/artifacts/ExampleValidator").rglob("checks.json")
    newest = max(findings, key=lambda path: path.stat().st_mtime)
    drift = json.loads(newest.read_text())["drift"]
    assert drift["version"] == "1"
    assert all(check["value"] < 1e-9 for check in drift["checks"].values())


@pytest.mark.slow
def test_first_version_must_beat_baselines_unless_published_anyway(shell, finished):
    text = (shell.folder / "tiny.yaml").read_text().replace("name: tiny", "name: first")
    text = text.replace("max_epochs: 6", "max_epochs: 6\n  max_steps: 1")
    (shell.folder / "first.yaml").write_text(text.replace("baselines: []", "baselines: [copy]"))
    result = shell.run("run", "first.yaml")
    assert result.returncode == 3, result.stdout + result.stderr
    assert "Failed: exact match 0.0000 is not better than the baseline (copy of the input: 0." in (
        result.stdout
    )
    assert "regard run first.yaml --publish-anyway" in result.stdout
    assert not (shell.home / "registry/first").exists()
    anyway = shell.run("run", "first.yaml", "--publish-anyway")
    assert anyway.returncode == 0, anyway.stdout + anyway.stderr
    (run,) = json.loads(shell.run("runs", "first", "--json", "--limit", "1").stdout)
    states = {name: node["state"] for name, node in run["nodes"].items()}
    assert [states[name] for name in ("Trainer", "Evaluator", "Pusher")] == [
        *["cached"] * 2,
        "done",
    ]
    lineage = shell.run("lineage", "first")
    assert "Published with --publish-anyway." in lineage.stdout.replace("\n", " ")


@pytest.mark.slow
def test_model_below_a_threshold_is_not_published(shell, finished):
    """The weak model of the test before, which the cache still has."""
    thresholds = "tokenize: none, production: null, thresholds: {exact_match: 0.9}"
    text = (shell.folder / "tiny.yaml").read_text().replace("max_epochs: 6", "max_epochs: 1")
    (shell.folder / "strict.yaml").write_text(text.replace("tokenize: none", thresholds))
    result = shell.run("run", "strict.yaml")
    assert result.returncode == 3, result.stdout + result.stderr
    assert "Failed: exact match" in result.stdout
    assert "is below the threshold of 0.9" in result.stdout
    assert [v.name for v in (shell.home / "registry/tiny").iterdir()] == ["1"]


SECRET, PIN = "hunter2-is-no-password", "3141592653"


@pytest.mark.slow
def test_values_of_variables_are_not_written(shell):
    """References stay references in everything that a run writes, its log included."""
    shell.environment |= {"SECRET": SECRET, "PIN": PIN}
    path = shell.folder / shell.configure(epochs=1)
    text = path.read_text().replace("name: tiny", "name: secrets")
    text += """
beam:
  options:
    s3_secret_access_key: ${SECRET}
    s3_access_key_id: ${PIN}
kubeflow: {image: "registry.example.org/${SECRET}/regard:1", volumes: {regard: /regard}}
"""
    path.write_text(text)
    result = shell.run("run", str(path))
    assert result.returncode == 0, result.stdout + result.stderr
    report = shell.run("report", "secrets")
    assert report.returncode == 0, report.stderr
    files = [file for file in shell.home.rglob("*") if file.is_file()]
    assert len(files) > 50
    for secret in (SECRET.encode(), PIN.encode()):
        assert [str(file) for file in files if secret in file.read_bytes()] == []
    for output in (result, report):
        assert SECRET not in output.stdout + output.stderr
    (config,) = (shell.home / "pipelines/secrets/runs").glob("*/config.yaml")
    assert "registry.example.org/${SECRET}/regard:1" in config.read_text()
    record = json.loads((shell.home / "registry/secrets/1/regard.json").read_text())
    assert record["config"]["kubeflow"]["image"] == "registry.example.org/${SECRET}/regard:1"
    del shell.environment["SECRET"]
    missing = shell.run("run", str(path))
    assert missing.returncode == 2
    assert "the environment variable SECRET is not set" in missing.stderr
