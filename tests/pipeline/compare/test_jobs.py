"""Training of several models, with simulated workers."""

import json
import signal
import time

import pytest

from regard.core import locks
from regard.core.processor import count_cores
from regard.pipeline.compare import jobs
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.workspace import Workspace
from tests.processes import wait_for


def test_all_models_are_trained_in_order(simulation):
    code, out, err = simulation.run(with_plots=True)
    assert (code, err) == (0, "")
    assert simulation.started() == ["small", "large", "wide"]
    assert "small: finished in " in out
    assert "BLEU 24.00" in out
    results = simulation.results()
    assert simulation.states() == ["finished"] * 3
    assert results["wide"]["metrics"]["bleu"]["value"] == 29.0
    assert [model["parameters"] for model in results.values()] == [4000, 6000, 9000]
    names = {path.name for path in simulation.directory.iterdir()}
    pictures = {"bleu-by-length.svg", "learning-curves.svg"}
    assert names == {"configs", "logs", "results.json", "table.md"} | pictures
    assert "| wide | 9,000 |" in (simulation.directory / "table.md").read_text()
    assert not (simulation.home / "registry").exists()


def test_a_verbose_comparison_prints_the_logs_of_its_models(simulation):
    code, out, _ = simulation.run("-v", "--only", "small")
    assert code == 0
    lines = (simulation.directory / "logs" / "small.txt").read_text().splitlines()
    assert len(lines) > 2
    printed = [line.partition(":")[2].strip() for line in out.splitlines() if line[:6] == "small:"]
    assert printed[0].startswith("training")
    assert printed[1:-1] == [line.strip() for line in lines]
    assert printed[-1].startswith("finished in")


def test_the_last_line_of_a_log_may_have_no_line_feed(simulation):
    workspace = Workspace(simulation.home)
    comparison = read_comparison([simulation.matrix], workspace, None)
    folder, lines = ComparisonFolder.of(workspace, comparison.name), []
    job = jobs.ModelJob(comparison.members[0], workspace, folder, {}, lines.append)
    job.log.parent.mkdir(parents=True)
    job.log.write_text("first\nkill")
    job.watch()
    assert lines == ["first"]
    job.log.write_text("first\nkilled")
    job.watch()
    assert job.result(1).state == "waiting"
    assert lines == ["first", "killed"]


@pytest.mark.slow
def test_failed_models_do_not_stop_the_others(simulation):
    simulation.simulate(small="crash", large="user")
    code, out, _ = simulation.run()
    assert code == 1
    assert simulation.started() == ["small", "large", "wide"]
    assert "small failed: Trainer: the worker process crashed with SIGSEGV" in out
    assert "large failed: Trainer: the batch is too large" in out
    assert simulation.states() == ["failed", "failed", "finished"]
    assert "| large (failed) | – |" in (simulation.directory / "table.md").read_text()
    simulation.simulate()
    assert simulation.run("--only", "large")[0] == 0
    assert simulation.states() == ["failed", "finished", "finished"]


def test_job_that_fails_before_its_run(simulation):
    (simulation.home / "pipelines").mkdir(parents=True)
    (simulation.home / "pipelines" / "sizes-large").touch()  # a file where the folder should be
    code, out, _ = simulation.run("--only", "large", with_worker=True)
    assert code == 1
    assert "large: failed: Set REGARD_HOME" in out


@pytest.mark.slow
def test_interrupted_comparison_resumes(simulation):
    simulation.simulate(large="slow")
    process = simulation.start()
    wait_for(lambda: simulation.started() == ["small", "large"])
    wait_for(lambda: simulation.results().get("small", {}).get("state") == "finished")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert simulation.started() == ["small", "large"]
    assert "resume   regard compare sizes.yaml" in out
    assert simulation.states() == ["finished", "interrupted", "waiting"]
    simulation.simulate()
    assert simulation.run("--only", "large,wide")[0] == 0
    assert simulation.started() == ["small", "large", "large", "wide"]
    assert simulation.states() == ["finished"] * 3


def test_command_to_resume_has_the_same_options(simulation):
    simulation.train_nothing(small="the batch is too large")
    code, out, _ = simulation.run("--only", "wide,small", "--jobs", "2", "--name", "mine")
    assert code == 1
    command = "regard compare sizes.yaml --name mine --only wide,small --jobs 2"
    assert f"resume   {command}" in out
    assert "small failed: the batch is too large" in out
    # The table is of all models, whichever were run last.
    table = (simulation.home / "compare" / "mine" / "table.md").read_text()
    assert "\nregard compare sizes.yaml --name mine\n" in table


def test_notes_on_the_data(simulation):
    text = simulation.matrix.read_text().replace("train: train.tsv", "train: 'train-{SPAN}.tsv'")
    text = text.replace("}\n  model:", ", spans: {marker: 'done-{SPAN}', last: 2}}\n  model:", 1)
    simulation.matrix.write_text(text)
    for span in (1, 2):
        rows = "".join(f"a {span} {i}\tb\n" for i in range(200))
        (simulation.folder / "data" / f"train-{span}.tsv").write_text(rows)
    (simulation.folder / "data" / "done-1").touch()
    simulation.train_nothing()
    code, out, err = simulation.run("--json", "--only", "small")
    assert code == 0
    assert json.loads(out)["models"][0]["state"] == "waiting"
    note = f"data: span 2 is skipped: {simulation.folder}/data/done-2 is missing"
    assert err.splitlines()[0] == note


def test_jobs_end_with_a_killed_parent(simulation):
    simulation.simulate(small="slow")
    process = simulation.start()
    wait_for(lambda: simulation.started() == ["small"])
    process.kill()
    process.communicate()
    lock = simulation.home / "pipelines" / "sizes-small" / "lock"
    assert lock.exists()
    wait_for(lambda: not locks.is_locked(lock))


@pytest.mark.slow
def test_parallel_jobs_share_the_cores(simulation):
    simulation.simulate(small="slow", large="slow")
    process = simulation.start("--jobs", "2")
    wait_for(lambda: sorted(simulation.started()) == ["large", "small"])
    time.sleep(0.5)
    assert len(simulation.started()) == 2
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert simulation.threads() == [str(max(1, count_cores() // 2))] * 2
    simulation.simulate()
    assert simulation.run("--jobs", "2")[0] == 0


def test_only_selected_models(simulation):
    trained = simulation.train_nothing()
    assert simulation.run("--only", "wide,small", "--only", "small")[0] == 0
    assert trained == ["small", "wide"]
    assert simulation.states() == ["waiting"] * 3
    code, out, err = simulation.run("--only", "lrage")
    assert (code, out) == (2, "")
    assert "Did you mean large?" in err
    assert trained == ["small", "wide"]


def test_given_values_change_every_model(simulation):
    trained = simulation.train_nothing()
    assert simulation.run("--set", "training.max_epochs=3")[0] == 0
    assert trained == ["small", "large", "wide"]
    assert "--set training.max_epochs=3" in (simulation.directory / "table.md").read_text()
    code, _, err = simulation.run("--set", "training.max_epochs=x")
    assert code == 2
    assert "error: --set training.max_epochs: a whole number" in err


def test_invalid_input_trains_nothing(simulation):
    simulation.matrix.write_text(simulation.matrix.read_text() + "  last: {model.embeding: 9}\n")
    code, out, err = simulation.run()
    assert (code, out) == (2, "")
    assert "sizes.yaml:14: models.last.model.embeding: unknown key. Did you mean embedding?" in err
    (simulation.folder / "data" / "train.tsv").unlink()
    simulation.matrix.write_text(simulation.matrix.read_text().rpartition("  last")[0])
    code, out, err = simulation.run()
    assert (code, out) == (2, "")
    assert "data.train: No such file" in err
    assert not simulation.home.exists()
