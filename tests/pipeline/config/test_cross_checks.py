"""Settings that are right one by one and impossible together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

PAIR = "{source: a.en, target: a.de}"

# ``test_config_rules`` has the other rules of the section.
DATA_CASES = {
    "eval without test": (
        f"train: {PAIR}\n  eval: {PAIR}",
        ["4: data.eval: data.eval needs data.test too"],
    ),
    "test without eval": (
        f"train: {PAIR}\n  test: {PAIR}",
        ["4: data.test: data.test needs data.eval too"],
    ),
    "split and separate files": (
        f"train: {PAIR}\n  eval: {PAIR}\n  test: {PAIR}\n  split: {{eval: 0.1}}",
        ["6: data.split: cannot be combined with data.eval and data.test"],
    ),
    "no split at all": (
        f"train: {PAIR}\n  split: null",
        ["4: data.split: null needs data.eval and data.test"],
    ),
    "nothing left to train on": (
        f"train: {PAIR}\n  split: {{eval: 0.5, test: 0.5}}",
        ["4: data.split: eval and test take 1 of the rows"],
    ),
    "a date in place of a number": (
        "train: '{SPAN}.tsv'\n  spans: {first: 2026-11-20}",
        ["4: data.spans.first: a whole number is expected, as in the paths; got '2026-11-20'"],
    ),
    "only replayed spans": (
        "train: '{SPAN}.tsv'\n  spans: {window: 1, replay: 1.0}",
        ["4: data.spans.replay: "],
    ),
    "a column called span": (
        "train: '{SPAN}.tsv'\n  extra: [span]",
        ["4: data.extra.0: 'span' is reserved; rename the column"],
    ),
    "mixed formats": ("train: [a.tsv, b.jsonl]", ["3: data.train: the file names do not show one"]),
    "unknown side": (
        "train:\n    sorce: a\n    target: b",
        [
            "3: data.train: the side source is missing",
            "4: data.train.sorce: unknown side. Did you mean source? Choices: source, target",
        ],
    ),
    "files that are a number": (
        "train: 3",
        ["3: data.train: a path, a list of paths, or a path for each side such as {source: tr"],
    ),
    "no files": ("train: []", ["3: data.train: a path, a list of paths, or a path for each side"]),
    "reserved extra columns": (
        "train: a.tsv\n  extra: [alignment, score, image_file, target]",
        [
            "4: data.extra.0: 'alignment' is reserved",
            "4: data.extra.1: 'score' is reserved",
            "4: data.extra.2: 'image_file' is reserved",
            "4: data.extra.3: 'target' is reserved",
        ],
    ),
    "an extra column without a file": (
        f"train: {PAIR}\n  extra: [domain]",
        ["3: data.train: the side domain is missing"],
    ),
    "column names without header": (
        "train: a.tsv\n  columns: {source: en, target: 2}",
        ["4: data.columns.source: without data.header a column is a number from 1; got 'en'"],
    ),
    "column zero": (
        "train: a.tsv\n  columns: {source: 0, target: 1}",
        ["4: data.columns.source: column numbers start at 1; got 0"],
    ),
    "one column for both": (
        "train: a.tsv\n  columns: {source: 1, target: 1}",
        ["4: data.columns: two sides are read from the same column"],
    ),
    "missing and unknown column": (
        "train: a.tsv\n  columns: {source: 1, taget: 3}",
        [
            "4: data.columns.taget: unknown side. Did you mean target?",
            "4: data.columns: the side target is missing",
        ],
    ),
    "unknown key of a check": (
        f"train: {PAIR}\n  checks:\n    too_long: {{chars: 3}}",
        ["5: data.checks.too_long.chars: unknown key. Did you mean characters?"],
    ),
}

# What follows these begins in line 4.
CASES = {
    "batch smaller than a row": (
        "training: {batch_tokens: 199}",
        [
            "4: training.batch_tokens: 199 does not hold one row of max_length: 100 on both sides; "
            "use at least 200"
        ],
    ),
    "endless": (
        "training: {max_epochs: null, early_stopping: null}",
        ["4: training.max_epochs: training would never end"],
    ),
    "floor that is not computed": (
        "evaluation:\n  metrics: [chrf]\n  thresholds: {bleu: 30}",
        ["6: evaluation.thresholds.bleu: bleu is not computed; add it to evaluation.metrics"],
    ),
    "floor out of range": (
        "evaluation:\n  thresholds: {exact_match: 97}",
        [
            "5: evaluation.thresholds.exact_match: exact_match ranges from 0 to 1, so 97 is not "
            "possible"
        ],
    ),
    "comparison that is not computed": (
        "evaluation:\n  metrics: [chrf]\n  production: {metric: bleu}",
        ["6: evaluation.production.metric: bleu is not computed"],
    ),
    "metric twice": (
        "evaluation: {metrics: [bleu, bleu]}",
        ["4: evaluation.metrics: a metric is given twice"],
    ),
    "falling buckets": (
        "evaluation: {length_buckets: [10, 5]}",
        ["4: evaluation.length_buckets: the bounds must rise; [10, 5] was given"],
    ),
    "no room for text": (
        "tokenizer: {vocab_size: 260, byte_fallback: true}",
        ["4: tokenizer.vocab_size: 260 leaves no room for text: 4 special, 0 user-defined and"],
    ),
    "special piece twice": (
        "tokenizer: {user_defined_symbols: [<a>, <a>]}",
        ["4: tokenizer.user_defined_symbols: a symbol is listed twice"],
    ),
    "aer without gold": (
        "evaluation: {metrics: [bleu, aer]}",
        ["4: evaluation.metrics.1: aer needs evaluation.alignment"],
    ),
    "gold without aer": (
        "evaluation: {alignment: {gold: links}}",
        ["4: evaluation.alignment: is for aer; add it to evaluation.metrics"],
    ),
    "gold that is no column": (
        "evaluation: {metrics: [aer], alignment: {gold: links}}",
        ["4: evaluation.alignment.gold: 'links' is no column of data.extra"],
    ),
    "too few samples": (
        "evaluation: {samples: 19}",
        ["4: evaluation.samples: with 19 no difference can be significant at"],
    ),
    "a test without samples": (
        "evaluation: {samples: 0, production: {test: bootstrap}}",
        ["4: evaluation.production.test: bootstrap needs samples"],
    ),
    "a pattern that is none": (
        'evaluation: {slices: {patterns: {x: {feature: source, matches: "("}}}}',
        ["4: evaluation.slices.patterns.x.matches: no regular expression: missing )"],
    ),
    "special piece that is there": (
        "tokenizer: {user_defined_symbols: [</s>]}",
        ["4: tokenizer.user_defined_symbols: </s> is always there"],
    ),
}


@pytest.mark.parametrize("name", DATA_CASES)
def test_data(name: str, tmp_path: Path) -> None:
    text, expected = DATA_CASES[name]
    compare(problems_of(tmp_path, f"name: x\ndata:\n  {text}\n"), expected)


@pytest.mark.parametrize("name", CASES)
def test_other_sections(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    compare(problems_of(tmp_path, f"name: x\ndata:\n  train: {PAIR}\n{text}\n"), expected)


@pytest.mark.parametrize("task", ["similarity", "captioning"])
def test_a_baseline_has_to_read_and_write_texts(task: str, tmp_path: Path) -> None:
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\nevaluation: {{baseline: lead_1}}\n"
    result = problems_of(tmp_path, text)
    compare(result, ["4: evaluation.baseline: lead_1 answers a text with a text"])


NOT_READ = {
    "similarity": {
        "training: {label_smoothing: 0.1, penalties: {coverage: 1.0}}": [
            "4: training.label_smoothing: does not apply to scores; use 0",
            "4: training.penalties: does not apply to the task similarity; remove it",
        ]
    },
    "captioning": {
        "search: {max_source_length: 3, long_source: refuse}": [
            "4: search.max_source_length: images have no tokens; remove it",
            "4: search.long_source: images have no tokens; remove it",
        ],
        "model: {encoder: {units: 1}}": [
            "4: model.encoder.units: position encodings need at least 2 units; or set",
        ],
    },
    "translation": {
        "  checks: {drift_oov: {action: fail}}\nevaluation: {production: null}": [
            "4: data.checks.drift_oov.action: nothing is compared with where evaluation.production",
        ],
    },
}


@pytest.mark.parametrize(
    ("task", "text"), [(task, text) for task, cases in NOT_READ.items() for text in cases]
)
def test_what_a_task_would_not_read_is_refused(task: str, text: str, tmp_path: Path) -> None:
    head = f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\n"
    if text.startswith("  "):
        head = head.replace("data: {train: a.jsonl}", "data:\n  train: a.jsonl")
    expected = [line.replace("4: data", "5: data") for line in NOT_READ[task][text]]
    compare(problems_of(tmp_path, f"{head}{text}\n"), expected)


def test_checks_of_answers_that_are_no_texts(tmp_path: Path) -> None:
    checks = (
        "evaluation: {checks: {empty: {action: fail}, copies: {action: fail}, repetitions: {}}}"
    )
    for task, wrong in (("similarity", ["empty", "copies"]), ("captioning", ["copies"])):
        text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\n{checks}\n"
        if task == "captioning":
            text = text.replace("a.jsonl}", "a.jsonl, images: .}")
        compare(problems_of(tmp_path, text), [f"4: evaluation.checks.{name}: " for name in wrong])


_TRANSFORMER = "{attention: {score: scaled_dot}, decoder: {type: transformer, layers: 4, heads: 2}}"


@pytest.mark.parametrize(
    ("heads", "model", "wrong"),
    [
        ("layer: 1", "{}", ["layer: only a transformer decoder has layers of heads"]),
        ("head: 1", _TRANSFORMER, ["head: is one of a layer; give evaluation.alignment.layer too"]),
        (
            "layer: 5, head: 3",
            _TRANSFORMER,
            [
                "layer: 5 is too high: model.decoder.layers is 4; use 1 to 4",
                "head: 3 is too high: model.decoder.heads is 2; use 1 to 2",
            ],
        ),
        ("layer: 0", _TRANSFORMER, ["layer: "]),
        ("layer: 4, head: 2", _TRANSFORMER, []),
        ("layer: 4", _TRANSFORMER, []),
    ],
)
def test_whose_attention_is_measured(heads, model, wrong, tmp_path: Path) -> None:
    text = (
        "name: x\ndata: {train: a.tsv, extra: [links]}\n"
        f"evaluation: {{metrics: [aer], alignment: {{gold: links, {heads}}}}}\nmodel: {model}\n"
    )
    if wrong:
        compare(problems_of(tmp_path, text), [f"3: evaluation.alignment.{one}" for one in wrong])
    else:
        (tmp_path / "x.yaml").write_text(text)
        messages = json.loads(load(tmp_path / "x.yaml").evaluation.alignment.heads_json())
        assert messages == {"layer": 4, "head": 2 if "head" in heads else None}


def test_a_check_given_in_part_keeps_its_own_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        f"name: x\ndata:\n  train: {PAIR}\nevaluation: {{checks: {{copies: {{action: fail}}}}}}\n"
    )
    checks = load(path).evaluation.checks
    assert (checks.copies.limit, checks.copies.action) == (0.05, "fail")
    assert (checks.empty.limit, checks.length_ratio.ratio) == (0.01, 2.5)


@pytest.mark.parametrize(
    "text",
    [
        "training: {batch_tokens: 200}",
        "evaluation: {metrics: [exact_match], thresholds: {exact_match: 0.97}}",
        "evaluation: {production: null}",
        "training: {max_epochs: null, max_minutes: 5}",
    ],
)
def test_possible(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"name: x\ndata:\n  train: {PAIR}\n{text}\n")
    load(path)
