"""Word alignments from a column of the data to the attention of the published model."""

import json
import random

import pytest

from tests.e2e.conftest import CONFIG, Shell

pytestmark = pytest.mark.slow
LETTERS = "abcdefgh"


def write_rows(path, count, seed):
    """Sentences, their words in capitals, and links in the reverse order.

    Without supervision, attention follows the words, whose order is the same on both sides.
    """
    draw = random.Random(seed)
    rows = set()
    while len(rows) < count:
        words = [letter * draw.randint(2, 4) for letter in draw.sample(LETTERS, 4)]
        links = " ".join(f"{i}-{3 - i}" for i in range(4))
        rows.add("\t".join((" ".join(words), " ".join(words).upper(), links)))
    path.write_text("".join(f"{row}\n" for row in sorted(rows)))


def test_attention_of_the_published_model_follows_the_links(tmp_path):
    shell = Shell(tmp_path)
    (tmp_path / "data").mkdir()
    for seed, (name, count) in enumerate((("train", 600), ("eval", 60), ("test", 60))):
        write_rows(tmp_path / "data" / f"{name}.tsv", count, seed)
    text = CONFIG.format(data=tmp_path / "data", epochs=10)
    guided = "early_stopping: null\n  guided_alignment: {links: links, weight: 1.0}"
    for old, new in (
        ("test.tsv", "test.tsv\n  extra: [links]"),
        ("exact_match, chrf]", "exact_match, aer], alignment: {gold: links}"),
        ("type: char, vocab_size: 60", "type: bpe, vocab_size: 60"),
        ("early_stopping: null", guided),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "tiny.yaml").write_text(text)
    result = shell.run("run", "tiny.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    record = json.loads((shell.home / "registry/tiny/1/regard.json").read_text())
    assert record["metrics"]["aer"]["value"] < 0.2
