"""From files to a pushed model, and back to a prediction in a fresh process."""

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from pipeline.nodes import NODES
from tests.pages import plain


@pytest.fixture(scope="module")
def finished(shell):
    done = shell.run("run", shell.configure(epochs=6))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_every_node_is_done_and_the_model_pushed(shell, finished):
    assert shell.states(0) == dict.fromkeys(NODES, "done")
    version = shell.home / "registry/tiny/1"
    assert (version / "saved_model.pb").exists()
    profile = json.loads((version / "assets.extra/profile.json").read_text())
    assert profile["features"]["source"]["distinct"] == profile["rows"] == 900
    record = json.loads((version / "regard.json").read_text())
    assert record["metrics"]["exact_match"]["value"] > 0.5
    assert "Blessed" in finished.stdout
    assert "regard predict tiny" in finished.stdout


def test_the_report_of_the_node_and_of_the_command_tell_the_same(shell, finished):
    (made,) = (shell.home / "pipelines/tiny/artifacts/Reporter").rglob("report.html")
    assert str(made) in finished.stdout
    asked = shell.run("report", "tiny@1")
    assert asked.returncode == 0, asked.stderr
    pages = [plain(Path(path).read_text()) for path in (made, asked.stdout.strip())]
    sentences = [page[page.index("A ") : page.index("pushed as version 1.")] for page in pages]
    assert sentences[0] == sentences[1]
    assert "exact match" in sentences[0]
    assert "Trainer done" in pages[0]
    # The command knows the run besides, and the node that made the other page.
    assert "Reporter done" in pages[1]
    assert "regard run" in pages[1]


def test_predictions_in_a_fresh_process_are_those_that_were_evaluated(shell, finished):
    (table,) = (shell.home / "pipelines/tiny/artifacts/Predictor").rglob("candidate.parquet")
    rows = parquet.read_table(table).to_pylist()[:20]
    lines = "".join(row["source"] + "\n" for row in rows)
    done = shell.run("predict", "tiny", text=lines)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [row["hypothesis"] for row in rows]
    assert done.stderr == ""


def test_odd_lines_get_one_answer_each(shell, finished):
    lines = ["abc", " ".join(["abc"] * 10_000), "", "ab\u2028cd", "ab\0cd", "head"]
    done = shell.run("predict", "tiny", text="".join(f"{line}\n" for line in lines))
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("\n")
    assert len(answers) == len(lines) + 1
    assert answers[2] == ""
    alone = shell.run("predict", "tiny", "abc", "head")
    assert [answers[0], answers[5]] == alone.stdout.splitlines()


def test_a_path_and_a_version_name_the_same_model(shell, finished):
    by_name = shell.run("predict", "tiny@1", "abc", "head")
    by_path = shell.run("predict", str(shell.home / "registry/tiny/1"), "abc", "head")
    assert by_name.stdout == by_path.stdout
    assert len(by_name.stdout.splitlines()) == 2


def test_a_second_run_skips_everything(shell, finished):
    done = shell.run("run", "tiny.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert shell.states() == dict.fromkeys(NODES, "cached")
    assert [v.name for v in (shell.home / "registry/tiny").iterdir()] == ["1"]


def test_a_version_is_traced_back_to_its_data(shell, finished):
    """Also behind a later run that found everything in the cache, for that one made nothing."""
    done = shell.run("run", "tiny.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = shell.run("lineage", "tiny@1", "--json")
    found = json.loads(done.stdout)
    first, *_ = sorted(path.name for path in (shell.home / "pipelines/tiny/runs").iterdir())
    assert (found["run"]["id"], found["missing"]) == (first, [])
    assert [node["node"] for node in found["nodes"]] == list(reversed(NODES))
    assert {node["run"] for node in found["nodes"]} == {first}
    assert all(output["there"] for node in found["nodes"] for output in node["outputs"])
    assert found["data"]["state"] == "unchanged"
    assert sum(found["data"]["rows"].values()) > 0

    done = shell.run("runs", "diff", "tiny@1", "tiny", "--json")
    difference = json.loads(done.stdout)
    assert difference["a"]["run"] == f"tiny/{first}"
    assert difference["config"] == []
    assert difference["data"]["same"] is True
    trainer = next(node for node in difference["nodes"] if node["name"] == "Trainer")
    assert trainer["a"]["peak_bytes"] > 100 << 20
    assert trainer["b"] == {"state": "cached"}


def test_to_stops_after_a_node(shell, finished):
    done = shell.run("run", "tiny.yaml", "--to", "Preprocess")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Trainer" not in shell.states()


def test_from_runs_a_node_again(shell, finished):
    done = shell.run("run", "tiny.yaml", "--from", "Evaluator")
    assert done.returncode == 0, done.stdout + done.stderr
    found = shell.states()
    assert found["Predictor"] == "cached"
    assert found["Evaluator"] == "done"


def test_a_floor_that_is_missed_pushes_nothing(shell, finished):
    text = (shell.folder / "tiny.yaml").read_text()
    strict = text.replace("tokenize: none", "tokenize: none, floors: {exact_match: 1.0, chrf: 100}")
    strict = strict.replace("units: 24", "units: 4").replace("max_epochs: 6", "max_epochs: 1")
    (shell.folder / "strict.yaml").write_text(strict.replace("name: tiny", "name: strict"))
    done = shell.run("run", "strict.yaml")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Not blessed" in done.stdout
    assert not (shell.home / "registry/strict").exists()


def test_runs_lists_them_all(shell, finished):
    done = shell.run("runs", "--json")
    runs = json.loads(done.stdout)
    assert len(runs) >= 2
    assert {run["name"] for run in runs} >= {"tiny"}


def test_a_model_worse_than_production_is_not_pushed(shell, finished):
    text = (shell.folder / "tiny.yaml").read_text()
    (shell.folder / "worse.yaml").write_text(text.replace("max_epochs: 6", "max_epochs: 1"))
    done = shell.run("run", "worse.yaml", "--json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "version 1" in json.loads(done.stdout)["blessing"]["sentence"]
    tables = (shell.home / "pipelines/tiny/artifacts/Predictor").rglob("production.parquet")
    (table,) = tables
    rows = parquet.read_table(table, columns=["hypothesis", "references"]).to_pylist()
    assert sum([row["hypothesis"]] == row["references"] for row in rows) > len(rows) / 2
    assert [v.name for v in (shell.home / "registry/tiny").iterdir()] == ["1"]
    findings = (shell.home / "pipelines/tiny/artifacts/ExampleValidator").rglob("checks.json")
    newest = max(findings, key=lambda path: path.stat().st_mtime)
    drift = json.loads(newest.read_text())["drift"]
    assert drift["version"] == "1"
    assert all(found["value"] < 1e-9 for found in drift["checks"].values())
