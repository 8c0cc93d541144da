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
from models.metrics import Rows

HYPOTHESES = ["A man rides a red bike .", "zwei Hunde laufen", "The end of it all, at last."]
REFERENCES = ["A man is riding a red bike.", "Zwei Hunde laufen", "The end of it all, at last."]
SEVERAL = [[REFERENCES[0], HYPOTHESES[0]], [REFERENCES[1]], ["The end."]]


def pairs(hypotheses, references) -> Rows:
    return Rows(hypotheses, [[reference] for reference in references])


def sacrebleu(folder: Path, *options: str, references=(REFERENCES,)) -> dict[str, float]:
    """What sacreBLEU's command line prints."""
    names = [f"r{number}" for number in range(len(references))]
    for name, lines in zip(["h", *names], [HYPOTHESES, *references], strict=True):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", *names, "-i", "h", *options, "-w", "6"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True)
    printed = json.loads(done.stdout)
    entries = printed if isinstance(printed, list) else [printed]
    return {entry["name"]: entry["score"] for entry in entries}


def test_values_are_those_of_the_command_line(tmp_path):
    printed = sacrebleu(tmp_path, "-m", "bleu", "chrf", "ter", "--ter-case-sensitive")
    found = metrics.compute(["bleu", "chrf", "ter"], pairs(HYPOTHESES, REFERENCES))
    assert [round(metric.value, 6) for metric in found] == [
        printed["BLEU"],
        printed["chrF2"],
        printed["TER"],
    ]


def test_two_references_are_those_of_the_command_line(tmp_path):
    others = ["A man rides.", "Zwei Hunde rennen", "The very end."]
    printed = sacrebleu(tmp_path, "-m", "bleu", "chrf", references=(REFERENCES, others))
    rows = Rows(HYPOTHESES, [list(both) for both in zip(REFERENCES, others, strict=True)])
    bleu, chrf = metrics.compute(["bleu", "chrf"], rows)
    assert (round(bleu.value, 6), round(chrf.value, 6)) == (printed["BLEU"], printed["chrF2"])
    assert bleu.signature.startswith("nrefs:2|")


def test_rows_need_not_have_as_many_references():
    more, fewer = Rows(HYPOTHESES, SEVERAL), Rows(HYPOTHESES, [row[:1] for row in SEVERAL])
    names = ["bleu", "chrf", "ter", "bleu_1"]
    for one, other in zip(metrics.compute(names, more), metrics.compute(names, fewer), strict=True):
        assert one.signature.startswith("nrefs:var|")
        assert other.signature.startswith("nrefs:1|")
        assert (one.value > other.value) == one.higher_is_better


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_bleu_up_to_an_order(tmp_path, order):
    (metric,) = metrics.compute([f"bleu_{order}"], pairs(HYPOTHESES, REFERENCES))
    wanted = BLEU(max_ngram_order=order, force=True).corpus_score(HYPOTHESES, [REFERENCES])
    assert metric.value == wanted.score
    assert metric.signature.endswith(f"|order:{order}")
    assert metric.label == f"BLEU-{order}"


def test_ter_counts_edits_a_word_and_lower_is_better():
    (metric,) = metrics.compute(["ter"], pairs(["a b c d x y"], ["a b"]))
    assert metric.value == pytest.approx(200.0)  # more than a hundred is possible
    assert not metric.higher_is_better
    (mixed,) = metrics.compute(["ter"], pairs(["A b"], ["a b"]))
    (lower,) = metrics.compute(["ter"], pairs(["A b"], ["a b"]), {"lowercase": True})
    assert (mixed.value, lower.value) == (50.0, 0.0)
    assert "case:lc" in lower.signature


def test_lowercase_changes_value_and_signature():
    rows = pairs(HYPOTHESES, REFERENCES)
    (mixed,) = metrics.compute(["bleu"], rows)
    (lower,) = metrics.compute(["bleu"], rows, {"lowercase": True})
    assert lower.value > mixed.value
    assert "case:lc" in lower.signature


@pytest.mark.parametrize("tokenize", ["13a", "zh"])
def test_bleu_lc_is_bleu_of_lowercased_text(tokenize):
    texts = [[text.lower() for text in side] for side in (HYPOTHESES, REFERENCES)]
    options = {"tokenize": tokenize}
    (wanted,) = metrics.compute(["bleu"], pairs(*texts), options)
    cased, lower = metrics.compute(["bleu", "bleu_lc"], pairs(HYPOTHESES, REFERENCES), options)
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
    chinese = pairs(["我们是好朋友和好邻居"], ["我们是好朋友和好同事"])
    (words,) = metrics.compute(["bleu"], chinese)
    (characters,) = metrics.compute(["bleu"], chinese, {"tokenize": "zh"})
    assert characters.value > words.value
    assert "tok:zh" in characters.signature


def test_an_empty_hypothesis_scores_and_does_not_crash():
    found = metrics.compute(["bleu", "chrf", "ter"], pairs([""], ["abc"]))
    assert [metric.value for metric in found] == [0.0, 0.0, 100.0]
