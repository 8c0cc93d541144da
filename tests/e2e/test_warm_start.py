"""A pipeline whose every model starts from the one that is in production."""

import json

import pytest

from pipeline.nodes import NODES
from tests.e2e.conftest import Shell


@pytest.fixture(scope="module")
def runs(shell):
    """A run, then one with new data, then one with nothing new."""

    def run():
        done = shell.run("run", "tiny.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    path = shell.folder / shell.configure(epochs=3)
    text = path.read_text().replace("early_stop: null", "early_stop: null\n  warm_start: {}")
    # Pushed if it is as good; here the question is where it comes from.
    path.write_text(text.replace("tokenize: none", "tokenize: none, production: null"))
    first = run()
    with open(shell.folder / "data/train.tsv", "a") as file:
        file.writelines(f"{word}\t{word.upper()}\n" for word in ("xa", "xyb", "cyx", "dax") * 9)
    return [first, run(), run()]


def training(shell: Shell) -> list[dict]:
    """What the Trainer recorded, the oldest first."""
    folder = shell.home / "pipelines/tiny/artifacts/Trainer/model_run"
    found = sorted(folder.glob("*/training.json"), key=lambda path: int(path.parent.name))
    return [json.loads(path.read_text()) for path in found]


def test_the_second_model_starts_from_the_first(shell, runs):
    first, second = training(shell)
    assert first["warm_start"] == {}
    start = second["warm_start"]
    record = json.loads((shell.home / "registry/tiny/1/regard.json").read_text())
    assert (start["model"], start["digest"]) == ("tiny@1", record["digest"])
    vocabulary = start["vocabularies"]["source"]
    assert vocabulary["new"] == 2  # x and y
    assert vocabulary["copied"] == vocabulary["pieces"] - 2
    losses = [one["history"][0]["loss"] for one in (first, second)]
    assert losses[1] < 0.5 * losses[0]
    notes = [event["text"] for event in shell.events(1) if event["kind"] == "note"]
    assert any("starts from the weights of tiny@1" in text for text in notes)


def test_its_record_and_its_lineage_say_so(shell, runs):
    record = json.loads((shell.home / "registry/tiny/2/regard.json").read_text())
    assert record["warm_start"]["start"]["model"] == "tiny@1"
    done = shell.run("lineage", "tiny@2")
    assert "from the weights of tiny@1" in done.stdout, done.stdout + done.stderr


def test_a_run_without_news_finds_everything_in_the_cache(shell, runs):
    assert shell.states() == dict.fromkeys(NODES, "cached")
