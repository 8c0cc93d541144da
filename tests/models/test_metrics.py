from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from models import metrics

HYPOTHESES = ["A man rides a red bike .", "zwei Hunde laufen", "The end of it all, at last."]
REFERENCES = ["A man is riding a red bike.", "Zwei Hunde laufen", "The end of it all, at last."]


def test_values_signatures_and_order():
    exact, bleu, chrf = metrics.compute(["exact_match", "bleu", "chrf"], HYPOTHESES, REFERENCES)
    assert exact.value == pytest.approx(1 / 3)
    assert (exact.label, exact.scale, exact.signature) == (
        "exact match",
        1.0,
        "nrefs:1|case:mixed|norm:strip",
    )
    assert 0 < bleu.value < 100
    assert bleu.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert chrf.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")
    assert bleu.higher_is_better


def test_bleu_is_that_of_the_command_line(tmp_path):
    (tmp_path / "h").write_text("\n".join(HYPOTHESES) + "\n", encoding="utf-8")
    (tmp_path / "r").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "r", "-i", "h", "-m", "bleu", "chrf", "-w", "6"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    printed = {entry["name"]: entry["score"] for entry in json.loads(done.stdout)}
    bleu, chrf = metrics.compute(["bleu", "chrf"], HYPOTHESES, REFERENCES)
    assert round(bleu.value, 6) == printed["BLEU"]
    assert round(chrf.value, 6) == printed["chrF2"]


def test_lowercase_changes_value_and_signature():
    (mixed,) = metrics.compute(["exact_match"], ["ABC "], ["abc"])
    (lower,) = metrics.compute(["exact_match"], ["ABC "], ["abc"], lowercase=True)
    assert (mixed.value, lower.value) == (0.0, 1.0)
    assert "case:lc" in lower.signature
    (bleu,) = metrics.compute(["bleu"], HYPOTHESES, REFERENCES, lowercase=True)
    assert "case:lc" in bleu.signature


@pytest.mark.parametrize("tokenize", ["13a", "zh"])
def test_bleu_lc_is_bleu_of_lowercased_text(tokenize):
    texts = [[text.lower() for text in side] for side in (HYPOTHESES, REFERENCES)]
    (wanted,) = metrics.compute(["bleu"], *texts, tokenize=tokenize)
    cased, lower = metrics.compute(["bleu", "bleu_lc"], HYPOTHESES, REFERENCES, tokenize=tokenize)
    assert lower.value == wanted.value > cased.value
    assert (lower.label, lower.name) == ("BLEU (lc)", "bleu_lc")
    assert f"case:lc|eff:no|tok:{tokenize}" in lower.signature


def test_bleu_lc_counts_the_words_of_the_published_references():
    folder = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    if not folder.is_dir():
        pytest.skip("REGARD_DATA does not name a folder with multi30k")
    with gzip.open(folder / "test_2016_flickr.de.gz", "rt", encoding="utf-8") as file:
        references = [line.rstrip("\n") for line in file]
    score = BLEU(lowercase=True).corpus_score(references, [references])
    assert score.ref_len == pytest.approx(12103, abs=5)  # fairseq-generate's reflen


def test_tokenizer_reaches_bleu():
    chinese = ["我们是好朋友和好邻居"], ["我们是好朋友和好同事"]
    (words,) = metrics.compute(["bleu"], *chinese)
    (characters,) = metrics.compute(["bleu"], *chinese, tokenize="zh")
    assert characters.value > words.value
    assert "tok:zh" in characters.signature


def test_an_empty_hypothesis_scores_and_does_not_crash():
    assert [m.value for m in metrics.compute(["bleu", "chrf"], [""], ["abc"])] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("names", "tokenize", "hypotheses", "message"),
    [
        (["blue"], "13a", ["a"], "did you mean 'bleu'.*choices: bleu, chrf, exact_match"),
        (["bleu"], "14a", ["a"], "unknown tokenizer '14a'.*13a"),
        (["bleu"], "13a", ["a", "b"], "2 hypotheses but 1 references"),
    ],
)
def test_refusals(names, tokenize, hypotheses, message):
    with pytest.raises(ValueError, match=message):
        metrics.compute(names, hypotheses, ["a"], tokenize=tokenize)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no hypotheses"):
        metrics.compute(["bleu"], [], [])


def test_importing_it_does_not_import_sacrebleu():
    code = "import sys, models.metrics; print('sacrebleu' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"
