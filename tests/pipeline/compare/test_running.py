"""The command over fake workers: order, failures, interruptions, what is left to do."""

from __future__ import annotations

import json
import signal
import time

from pipeline import machine


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_models_run_in_order_and_are_told(fakes):
    code, out, err = fakes.run("--draw")
    assert (code, err) == (0, "")
    assert fakes.started() == ["small", "large", "wide"]
    assert "✓ small" in out
    assert "BLEU 24.00" in out
    found = fakes.results()
    assert {label: model["state"] for label, model in found.items()} == dict.fromkeys(
        ("small", "large", "wide"), "finished"
    )
    assert found["wide"]["metrics"]["bleu"]["value"] == 29.0
    assert [model["parameters"] for model in found.values()] == [4000, 6000, 9000]
    names = {path.name for path in fakes.directory.iterdir()}
    pictures = {f"{p}.{e}" for p in ("bleu-by-length", "learning-curves") for e in ("svg", "png")}
    assert names == {"configs", "logs", "results.json", "table.md"} | pictures
    assert "| wide | 9,000 |" in (fakes.directory / "table.md").read_text()
    assert not (fakes.home / "registry").exists()


def test_json_is_all_that_is_printed(fakes):
    code, out, _ = fakes.run("--json", "--only", "small")
    told = json.loads(out)
    assert code == 0
    assert [model["label"] for model in told["models"]] == ["small", "large", "wide"]
    assert told["directory"] == str(fakes.directory)


def test_models_that_fail_do_not_stop_the_others(fakes):
    fakes.goes(small="crash", large="user")
    code, out, _ = fakes.run()
    assert code == 1
    assert fakes.started() == ["small", "large", "wide"]
    assert "small failed: Trainer: the worker process crashed with SIGSEGV" in out
    assert "large failed: Trainer: the batch is too large" in out
    found = fakes.results()
    states = [found[label]["state"] for label in ("small", "large", "wide")]
    assert states == ["failed", "failed", "finished"]
    assert "| large (failed) | – |" in (fakes.directory / "table.md").read_text()
    fakes.goes()
    assert fakes.run("--only", "large")[0] == 0
    assert fakes.results()["large"]["state"] == "finished"


def test_a_job_that_ends_before_its_run_is_told_by_its_last_words(fakes):
    (fakes.home / "pipelines").mkdir(parents=True)
    (fakes.home / "pipelines" / "sizes-large").touch()  # a file where the folder should be
    code, out, _ = fakes.run("--only", "large")
    assert code == 1
    assert "large failed: Give REGARD_HOME a folder" in out


def test_ctrl_c_stops_and_the_same_command_goes_on(fakes):
    fakes.goes(large="slow")
    process = fakes.start("sizes.yaml")
    wait_for(lambda: fakes.started() == ["small", "large"])
    wait_for(lambda: fakes.results().get("small", {}).get("state") == "finished")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert fakes.started() == ["small", "large"]
    assert "go on    regard compare sizes.yaml   (what is done is skipped)" in out
    states = [model["state"] for model in fakes.results().values()]
    assert states == ["finished", "interrupted", "waiting"]
    fakes.goes()
    assert fakes.run("--keep")[0] == 0
    assert fakes.started() == ["small", "large", "large", "wide"]
    assert fakes.results()["wide"]["state"] == "finished"


def test_what_goes_on_is_what_was_asked_for(fakes):
    fakes.goes(small="user")
    code, out, _ = fakes.run("--only", "wide,small", "--jobs", "2", "--keep", "--name", "mine")
    assert code == 1
    command = "regard compare sizes.yaml --name mine --only wide,small --jobs 2 --keep"
    assert f"go on    {command}   (what is done is skipped)" in out
    # The table is of all models, whichever were run last.
    table = (fakes.home / "compare" / "mine" / "table.md").read_text()
    assert "\nregard compare sizes.yaml --name mine\n" in table


def test_spans_that_are_left_out_are_told_before_anything_runs(fakes):
    text = fakes.matrix.read_text().replace("train: train.tsv", "train: 'train-{SPAN}.tsv'")
    text = text.replace("}\n  model:", ", spans: {marker: 'done-{SPAN}', last: 4}}\n  model:", 1)
    fakes.matrix.write_text(text)
    for span in (1, 2, 4):
        rows = "".join(f"a {span} {i}\tb\n" for i in range(200))
        (fakes.folder / "data" / f"train-{span}.tsv").write_text(rows)
        if span != 2:
            (fakes.folder / "data" / f"done-{span}").touch()
    code, out, err = fakes.run("--json", "--only", "small")
    assert code == 0
    assert json.loads(out)["models"][0]["state"] == "finished"
    assert err.splitlines()[:2] == [
        f"data: span 2 is left out: {fakes.folder}/data/done-2 is not there",
        "data: 1 span is missing between 1 and 4: 3",
    ]
    assert fakes.run("--status")[2] == ""


def test_jobs_end_with_a_killed_parent(fakes):
    fakes.goes(small="slow")
    process = fakes.start("sizes.yaml")
    wait_for(lambda: fakes.started() == ["small"])
    process.kill()
    process.communicate()

    def ended():
        records = fakes.home.glob("pipelines/sizes-small/runs/*/run.json")
        return [json.loads(p.read_text())["status"] for p in records] == ["interrupted"]

    wait_for(ended)


def test_several_at_once_share_the_cores(fakes):
    fakes.goes(small="slow", large="slow")
    process = fakes.start("sizes.yaml", "--jobs", "2")
    wait_for(lambda: sorted(fakes.started()) == ["large", "small"])
    time.sleep(0.5)
    assert len(fakes.started()) == 2  # the third one waits for a place
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    threads = [line.split()[1] for line in (fakes.folder / "started.txt").read_text().splitlines()]
    assert threads == [str(max(1, machine.cores() // 2))] * 2
    fakes.goes()
    assert fakes.run("--jobs", "2")[0] == 0
    assert "3 models shared" not in (fakes.directory / "table.md").read_text()
    assert (
        "2 models shared the machine: small, large, wide"
        in (fakes.directory / "table.md").read_text()
    )


def test_only_some(fakes):
    assert fakes.run("--only", "wide,small", "--only", "small")[0] == 0
    assert fakes.started() == ["small", "wide"]
    assert fakes.results()["large"]["state"] == "waiting"
    code, out, err = fakes.run("--only", "lrage")
    assert (code, out) == (2, "")
    assert "did you mean 'large'?" in err


def test_status_and_table_only_run_nothing(fakes):
    fakes.goes(large="user")
    fakes.run("--only", "small,large")
    started = fakes.started()
    code, out, err = fakes.run("--status")
    assert (code, err) == (0, "")
    small, large, wide = out.splitlines()
    assert small.startswith("small  finished     BLEU 24.00")
    assert large == "large  failed       Trainer: the batch is too large"
    assert wide == "wide   waiting"
    assert json.loads(fakes.run("--status", "--json")[1])["models"][1]["state"] == "failed"
    (fakes.directory / "table.md").unlink()
    (fakes.directory / "results.json").unlink()
    code, out, err = fakes.run("--table-only")
    assert (code, err) == (0, "")
    assert "| small | 4,000 |" in (fakes.directory / "table.md").read_text()
    assert fakes.results()["small"]["state"] == "finished"
    assert fakes.started() == started


def test_status_of_what_never_ran_writes_nothing(fakes):
    assert fakes.run("--status")[1].split() == [
        "small",
        "waiting",
        "large",
        "waiting",
        "wide",
        "waiting",
    ]
    assert not fakes.home.exists()


def test_keep_leaves_alone_only_what_has_this_configuration(fakes):
    fakes.run("--only", "small,wide")
    fakes.matrix.write_text(fakes.matrix.read_text().replace("units: 9", "units: 10"))
    code, out, _ = fakes.run("--keep", "--only", "small,wide")
    assert code == 0
    assert fakes.started() == ["small", "wide", "wide"]
    assert "⟲ small" in out
    assert fakes.results()["wide"]["parameters"] == 10000


def test_nothing_runs_where_anything_is_wrong(fakes):
    fakes.matrix.write_text(fakes.matrix.read_text() + "  last: {model.embeding: 9}\n")
    code, out, err = fakes.run()
    assert (code, out) == (2, "")
    assert "sizes.yaml:14: models.last.model.embeding: unknown key; did you mean embedding?" in err
    (fakes.folder / "data" / "train.tsv").unlink()
    fakes.matrix.write_text(fakes.matrix.read_text().rpartition("  last")[0])
    code, out, err = fakes.run()
    assert (code, out) == (2, "")
    assert "data.train: no such file" in err
    assert not fakes.home.exists()
