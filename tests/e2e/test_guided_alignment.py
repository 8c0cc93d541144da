"""Word alignments from a column of the data to the attention of the published model."""

import json
import random

import pytest

from tests.e2e.conftest import CONFIG, Shell

pytestmark = pytest.mark.slow
WORDS = {w: w[::-1].upper() for w in "house tree small green cat runs fast blue bird sings".split()}


def write_rows(path, count, seed):
    """Sentences, their words translated in the reverse order, and the links between them."""
    draw = random.Random(seed)
    rows = set()
    while len(rows) < count:
        words = draw.choices(list(WORDS), k=draw.randint(3, 5))
        target = [WORDS[word] for word in reversed(words)]
        links = [f"{i}-{len(words) - 1 - i}" for i in range(len(words))]
        rows.add("\t".join((" ".join(words), " ".join(target), " ".join(links))))
    path.write_text("".join(f"{row}\n" for row in sorted(rows)))


def test_supervision_lowers_the_alignment_error_rate(tmp_path):
    shell = Shell(tmp_path)
    (tmp_path / "data").mkdir()
    for seed, (name, count) in enumerate((("train", 600), ("eval", 60), ("test", 60))):
        write_rows(tmp_path / "data" / f"{name}.tsv", count, seed)
    text = CONFIG.format(data=tmp_path / "data", epochs=8)
    for old, new in (
        ("test.tsv", "test.tsv\n  extra: [links]"),
        ("exact_match, chrf]", "exact_match, aer], alignment: {gold: links}, production: null"),
        ("type: char, vocab_size: 60", "type: bpe, vocab_size: 60"),
    ):
        assert old in text
        text = text.replace(old, new)
    rates = []
    for guided in ("null", "{links: links, weight: 1.0}"):
        keys = f"early_stopping: null\n  guided_alignment: {guided}"
        (tmp_path / "tiny.yaml").write_text(text.replace("early_stopping: null", keys))
        result = shell.run("run", "tiny.yaml")
        assert result.returncode == 0, result.stdout + result.stderr
        record = json.loads(
            (shell.home / f"registry/tiny/{len(rates) + 1}/regard.json").read_text()
        )
        rates.append(record["metrics"]["aer"]["value"])
    assert rates[1] < 0.1
    assert rates[1] < rates[0] - 0.1
