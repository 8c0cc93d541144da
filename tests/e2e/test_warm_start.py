"""A pipeline whose models start from the model in production."""

import json

import pytest

from regard.pipeline.config.config import NODES
from tests.e2e.conftest import Shell

TAB = "\t"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(shell):
    """A run, a run with new data, and a run without changes."""

    def run():
        result = shell.run("run", "tiny.yaml")
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    path = shell.folder / shell.configure(epochs=3)
    text = path.read_text().replace(
        "early_stopping: null", "early_stopping: null\n  warm_start: {}"
    )
    # Without the comparison with production, every model is published.
    path.write_text(text.replace("tokenize: none", "tokenize: none, production: null"))
    first = run()
    with open(shell.folder / "data/train.tsv", "a") as file:
        file.writelines(f"{word}\t{word.upper()}\n" for word in ("xa", "xyb", "cyx", "dax") * 9)
    return [first, run(), run()]


def training(shell: Shell) -> list[dict]:
    """The records of the Trainer, oldest first."""
    folder = shell.home / "pipelines/tiny/artifacts/Trainer/model_run"
    paths = sorted(folder.glob("*/training.json"), key=lambda path: int(path.parent.name))
    return [json.loads(path.read_text()) for path in paths]


def test_second_model_starts_from_the_first(shell, runs):
    first, second = training(shell)
    assert first["warm_start"] == {}
    start = second["warm_start"]
    record = json.loads((shell.home / "registry/tiny/1/regard.json").read_text())
    assert (start["model"], start["digest"]) == ("tiny@1", record["digest"])
    vocabulary = start["vocabularies"]["source"]
    assert vocabulary["new"] == 2  # x and y
    assert vocabulary["copied"] == vocabulary["tokens"] - 2
    losses = [record["history"][0]["loss"] for record in (first, second)]
    assert losses[1] < 0.5 * losses[0]
    notes = [event["text"] for event in shell.events(1) if event["kind"] == "note"]
    assert any("starts from the weights of tiny@1" in text for text in notes)


def test_record_and_lineage_name_the_start(shell, runs):
    record = json.loads((shell.home / "registry/tiny/2/regard.json").read_text())
    assert record["warm_start"]["start"]["model"] == "tiny@1"
    result = shell.run("lineage", "tiny@2")
    assert "from the weights of tiny@1" in result.stdout, result.stdout + result.stderr


def test_run_without_changes_is_cached(shell, runs):
    assert shell.states() == dict.fromkeys(NODES, "cached")


def test_fine_tuning_on_other_data(shell, runs):
    """Low-rank changes of a published model, with replayed old rows and an old test file."""
    data = shell.folder / "data"
    old = (data / "train.tsv").read_text().splitlines()
    new = [f"{line}{line.partition(TAB)[2][:1]}" for line in old]  # repeats the first letter
    for name, lines in (("1", old), ("2", new[300:]), ("new-eval", new[:50]), ("new", new[50:99])):
        (data / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines))
    text = (shell.folder / "tiny.yaml").read_text().replace("name: tiny", "name: fine")
    for before, after in (
        ("train: train.tsv", 'train: "{SPAN}.tsv"\n  spans: {window: 1, replay: 0.25}'),
        ("eval: eval.tsv", "eval: new-eval.tsv"),
        ("test: test.tsv", "test: [new.tsv, test.tsv]"),
        ("warm_start: {}", "warm_start: {model: tiny@2, keep_tokenizer: true}\n  LORA"),
        ("LORA", "lora: {rank: 4}\n  freeze: [bridge]"),
        ("production: null", "production: null, slices: {by: [file], thresholds: THRESHOLDS}"),
        ("THRESHOLDS", "{file=test.tsv: {chrf: 1}, file=new.tsv: {chrf: 1}}"),
    ):
        assert before in text
        text = text.replace(before, after)
    (shell.folder / "fine.yaml").write_text(text)
    result = shell.run("run", "fine.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = (shell.home / "pipelines/fine/artifacts/Trainer/model_run").glob("*/training.json")
    record = json.loads(path.read_text())
    assert record["warm_start"]["model"] == "tiny@2"
    assert record["warm_start"]["vocabularies"] == {}
    assert 0 < record["trained_parameters"] < 0.5 * record["parameters"]
    rows = record["rows"]["train"]["usable"]
    assert rows == pytest.approx((len(new) - 300) / 0.75, rel=0.05)
    record = json.loads((shell.home / "registry/fine/1/regard.json").read_text())
    assert record["warm_start"]["start"]["model"] == "tiny@2"
    (path,) = (shell.home / "pipelines/fine/artifacts/Evaluator").rglob("slices.json")
    slices = json.loads(path.read_text())["slices"]
    names = {part["name"]: part["rows"] for part in slices if part["kind"] == "file"}
    assert names == {"new.tsv": 49, "test.tsv": 60}
    # An ordinary model: it can be the start of another training without adapters.
    text = text.replace("name: fine", "name: again").replace("tiny@2", "fine@1")
    text = text.replace("lora: {rank: 4}", "max_steps: 2").replace("  freeze: [bridge]\n", "")
    (shell.folder / "again.yaml").write_text(text)
    result = shell.run("run", "again.yaml", "--publish-anyway")
    assert result.returncode == 0, result.stdout + result.stderr
