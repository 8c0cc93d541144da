"""One model with a tag per file, from unequal corpora to the predictions of each tag."""

import json
import re

import pytest

from tests.e2e.conftest import CONFIG, Shell, write_data

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A published model that writes words in capitals, or backwards: a third of its rows."""
    shell = Shell(tmp_path_factory.mktemp("tags"))
    write_data(data := shell.folder / "data")
    for path in list(data.iterdir()):
        words = [line.split("\t")[0] for line in path.read_text().splitlines()]
        backwards = "".join(f"{word}\t{word[::-1]}\n" for word in words[: len(words) // 2])
        (data / f"backwards-{path.name}").write_text(backwards)
    text = CONFIG.format(data=data, epochs=12)
    for name in ("train", "eval", "test"):
        text = text.replace(f" {name}.tsv", f" [{name}.tsv, backwards-{name}.tsv]")
    tags = "{train: [up, back], eval: [up, back], test: [up, back], temperature: 5}"
    text = text.replace("tokenizer:", f"  tags: {tags}\ntokenizer:")
    slices = "slices: {by: [tag], thresholds: {tag=up: {chrf: 30}, tag=back: {chrf: 10}}}"
    text = text.replace("metrics: [", f"{slices}, metrics: [")
    (shell.folder / "tiny.yaml").write_text(text)
    result = shell.run("run", "tiny.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    return shell


def test_an_epoch_repeats_the_rare_tag(shell):
    (text,) = (e["text"] for e in shell.events() if "rows drawn" in e.get("text", ""))
    counts = re.findall(r"<(\w+)> (\d+) of (\d+)", text)
    (first, up, all_up), (second, back, all_back) = counts
    assert (first, all_up, second, all_back) == ("up", "900", "back", "450")
    assert int(up) < 900
    assert int(back) > 450


def test_each_tag_has_metrics(shell):
    (path,) = (shell.home / "pipelines/tiny/artifacts/Evaluator").glob("*/*/slices.json")
    slices = json.loads(path.read_text())["slices"]
    rows = {part["name"]: part["rows"] for part in slices if part["kind"] == "tag"}
    assert rows == {"up": 60, "back": 30}


@pytest.mark.parametrize(("tag", "write"), [("up", str.upper), ("back", lambda word: word[::-1])])
def test_the_tag_selects_the_output(shell, tag, write):
    words = ["badge", "face", "deaf", "chafe", "head", "bead"]
    result = shell.run("predict", "tiny", "--tag", tag, text="\n".join(words))
    assert result.returncode == 0, result.stderr
    outputs = result.stdout.splitlines()
    assert sum(out == write(word) for word, out in zip(words, outputs, strict=True)) >= 5


def test_a_text_without_a_tag_is_refused(shell):
    result = shell.run("predict", "tiny", text="badge\n")
    assert result.returncode == 2
    assert "The text has no tag: its tags are up, back." in result.stderr
