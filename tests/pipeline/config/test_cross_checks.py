"""Settings that are valid one by one and cannot be combined."""

import json
from pathlib import Path

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

PAIR = "{source: a.en, target: a.de}"

# ``test_config_rules`` has the other rules of the section.
DATA_CASES = {
    f"train: {PAIR}\n  eval: {PAIR}": "4: data.eval: data.eval needs data.test too",
    f"train: {PAIR}\n  test: {PAIR}": "4: data.test: data.test needs data.eval too",
    f"train: {PAIR}\n  eval: {PAIR}\n  test: {PAIR}\n  split: {{eval: 0.1}}": (
        "6: data.split: cannot be combined with data.eval and data.test"
    ),
    f"train: {PAIR}\n  split: null": "4: data.split: null needs data.eval and data.test",
    f"train: {PAIR}\n  split: {{eval: 0.5, test: 0.5}}": (
        "4: data.split: eval and test take 1 of the rows"
    ),
    "train: 3": (
        "3: data.train: a path, a list of paths, or a path for each side such as {source: tr"
    ),
    "train: []": "3: data.train: a path, a list of paths, or a path for each side",
    "train: a.tsv\n  extra: [alignment, score, image_file, target]": [
        "4: data.extra.0: 'alignment' is reserved",
        "4: data.extra.1: 'score' is reserved",
        "4: data.extra.2: 'image_file' is reserved",
        "4: data.extra.3: 'target' is reserved",
    ],
    "train: a.tsv\n  header: false\n  columns: {source: en, target: 2}": (
        "5: data.columns.source: without data.header a column is a number from 1; got 'en'"
    ),
    "train: a.tsv\n  columns: {source: 1, target: 1}": (
        "4: data.columns: two sides are read from the same column"
    ),
    "train: a.tsv\n  columns: {source: 1, taget: 3}": [
        "4: data.columns.taget: unknown side. Did you mean target?",
        "4: data.columns: the side target is missing",
    ],
}

# What follows these begins in line 4.
CASES = {
    "evaluation:\n  metrics: [chrf]\n  thresholds: {bleu: 30}": (
        "6: evaluation.thresholds.bleu: bleu is not computed; add it to evaluation.metrics"
    ),
    "evaluation:\n  thresholds: {exact_match: 97}": (
        "5: evaluation.thresholds.exact_match: exact_match ranges from 0 to 1, so 97 is not "
        "possible"
    ),
    "evaluation:\n  metrics: [chrf]\n  production: {metric: bleu}": (
        "6: evaluation.production.metric: bleu is not computed"
    ),
    "evaluation: {metrics: [bleu, bleu]}": "4: evaluation.metrics: a metric is given twice",
    "evaluation: {length_buckets: [10, 5]}": (
        "4: evaluation.length_buckets: the bounds must increase"
    ),
    "tokenizer: {vocab_size: 260, byte_fallback: true}": "4: tokenizer.vocab_size: must exceed 260",
    "tokenizer: {user_defined_symbols: [<a>, <a>]}": (
        "4: tokenizer.user_defined_symbols: a symbol is listed twice"
    ),
    "evaluation: {metrics: [bleu, aer]}": "4: evaluation.metrics.1: aer needs evaluation.alignment",
    "evaluation: {alignment: {gold: links}}": (
        "4: evaluation.alignment: is used by aer only; add aer"
    ),
    "evaluation: {metrics: [bleu, aer], alignment: {gold: links}}": (
        "4: evaluation.alignment.gold: 'links' is not a column of data.extra"
    ),
    "evaluation: {samples: 19}": (
        "4: evaluation.samples: must be at least 20 for significance: 0.05"
    ),
    "evaluation: {samples: 0, production: {test: bootstrap}}": (
        "4: evaluation.production.test: bootstrap needs evaluation.samples"
    ),
    'evaluation: {slices: {patterns: {x: {feature: source, matches: "("}}}}': (
        "4: evaluation.slices.patterns.x.matches: no regular expression: missing )"
    ),
    "evaluation:\n  external: {comet: {command: 'true'}}\ntraining: {early_stopping: "
    "{metric: comet}}": (
        "6: training.early_stopping.metric: comet is computed on the test split only; use loss"
    ),
    "evaluation: {external: {chrf: {command: 'true'}}}": (
        "4: evaluation.external.chrf: is a metric already; use another name"
    ),
    "evaluation: {external: {comet: {command: no-such-program}}}": (
        "4: evaluation.external.comet.command: there is no program no-such-program"
    ),
    """evaluation: {external: {comet: {command: "'a"}}}""": (
        "4: evaluation.external.comet.command: value error, No closing quotation"
    ),
    "evaluation: {metrics: [[bleu]], external: 5}": [
        "4: evaluation.metrics.0: a text is expected, ['bleu'] was given",
        "4: evaluation.external: a mapping (key: value) is expected, 5 was given",
    ],
    "evaluation: {external: {comet: {command: ''}}}": "4: evaluation.external.comet.command: ",
    "evaluation: {external: {Comet: {command: 'true'}}}": "4: evaluation.external.Comet: ",
    "evaluation: {external: {comet: {command: 'true', timeout: 0}}}": (
        "4: evaluation.external.comet.timeout: must be greater than 0; 0 was given"
    ),
    "evaluation: {metrics: [bleu, comit], external: {comet: {command: 'true'}}}": (
        "4: evaluation.metrics.1: 'comit' is not a choice. Did you mean comet? "
    ),
    "tokenizer: {user_defined_symbols: [</s>]}": (
        "4: tokenizer.user_defined_symbols: </s> is a built-in symbol"
    ),
    "serving: {split_sentences: true, confidence: {}}": (
        "4: serving.confidence: is calibrated for whole outputs; remove it, or split_sentences"
    ),
    "serving: {confidence: {metric: exact_match}}": (
        "4: serving.confidence.good: exact_match is at most 1; use good: 1"
    ),
    "serving: {confidence: {metric: bleu}}": ("4: serving.confidence.metric: "),
    "tokenizer: {user_defined_symbols: [<0xFF>]}": (
        "4: tokenizer.user_defined_symbols: <0xFF> is a built-in symbol"
    ),
}


@pytest.mark.parametrize(("text", "expected"), DATA_CASES.items())
def test_data(text, expected, tmp_path):
    compare(problems_of(tmp_path, f"name: x\ndata:\n  {text}\n"), expected)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("data: {train: a.tsv, schema: 's3://b/s.pbtxt'}", "data.schema"),
        ("training: {warm_start: {model: 'gs://b/m/1'}}", "training.warm_start.model"),
        ("tokenizer: {type: word, word_list: 'http://h/words'}", "tokenizer.word_list"),
        ("tokenizer: {model: 'http://h/a.model'}", "tokenizer.model"),
        ("tokenizer: {model: {source: 'gs://h/a', target: b}}", "tokenizer.model.source"),
    ],
)
def test_keys_that_need_local_paths(text, key, tmp_path):
    if not text.startswith("data"):
        text = f"data: {{root: 's3://b', train: ['a.tsv', 'gs://b/c.tsv']}}\n{text}"
    text = f"name: a\ntask: translation\nserving: {{registry: 's3://b/r'}}\n{text}\n"
    (problem,) = problems_of(tmp_path, text)
    assert f"{key}: " in problem
    assert problem.endswith("is a URI; copy it to a local folder")


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_other_sections(text, expected, tmp_path):
    compare(problems_of(tmp_path, f"name: x\ndata:\n  train: {PAIR}\n{text}\n"), expected)


@pytest.mark.parametrize(
    ("task", "wrong"),
    [("similarity", [0, 1]), ("captioning", [0]), ("pointer", [0, 1]), ("translation", [])],
)
def test_baselines_suit_the_task(task: str, wrong: list[int], tmp_path: Path) -> None:
    names = ["copy", "most_frequent", "chance"]
    images = ", images: ." if task == "captioning" else ""
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl{images}}}\n"
    text += f"evaluation: {{baselines: [{', '.join(names)}]}}\n"
    if task == "translation":
        text = text.replace("a.jsonl", "a.tsv")
    expected = [f"4: evaluation.baselines.{i}: {names[i]} does not apply" for i in wrong]
    if expected:
        compare(problems_of(tmp_path, text), expected)
    else:
        assert load_text(tmp_path, text).evaluation.baselines == tuple(names)


@pytest.mark.parametrize("task", ["captioning", "pointer", "similarity", "span", "summarisation"])
def test_ensembles_are_for_text_to_text_tasks(task: str, tmp_path: Path) -> None:
    images = ", images: ." if task == "captioning" else ""
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl{images}}}\n"
    text += "training: {ensemble: [a@1]}\n"
    if task == "summarisation":
        assert load_text(tmp_path, text).training.ensemble == ("a@1",)
    else:
        expected = f"4: training.ensemble: does not apply to the task {task}, only to tasks wi"
        compare(problems_of(tmp_path, text), expected)


def test_a_model_is_listed_once_in_an_ensemble(tmp_path: Path) -> None:
    text = "name: x\ntask: translation\ndata: {train: a.tsv}\ntraining: {ensemble: [a@1, a@1]}\n"
    expected = "4: training.ensemble: a model is listed twice and would count twice; rem"
    compare(problems_of(tmp_path, text), expected)


NOT_READ = {
    "similarity": {
        "training: {label_smoothing: 0.1, penalties: {coverage: 1.0}}": [
            "4: training.label_smoothing: does not apply to the task similarity; remove it",
            "4: training.penalties: does not apply to the task similarity; remove it",
        ],
        "serving: {confidence: {}}": [
            "4: serving.confidence: does not apply to the task similarity, which writes no texts"
        ],
    },
    "span": {
        "serving: {confidence: {}}": [
            "4: serving.confidence: does not apply to the task span, which writes no texts with a"
        ],
        "training: {label_smoothing: 0.1, jit_compile: true}": [
            "4: training.label_smoothing: does not apply to the task span; remove it",
            "4: training.jit_compile: XLA cannot compile recurrent layers (model.encoder.type: "
            "recurrent and model.modelling.type: recurrent); use false",
        ],
        "tokenizer: {shared: false, punctuation: keep}": [
            "4: tokenizer.shared: passage and question share one encoder",
            "4: tokenizer.punctuation: an answer must not begin or end within a token; use split",
        ],
        "model: {pointer: {units: 8, score: dot}}": [
            "4: model.pointer.score: dot needs equal widths",
        ],
        "model: {encoder: [{units: 5}, {type: transformer, heads: 3}]}": [
            "4: model.encoder.1.heads: 3 heads do not divide the width of the outputs of "
            "model.encoder.0: 10; use",
        ],
        "model: {encoder: []}": ["4: model.encoder: the list is empty"],
        "  checks: {encoding: {action: repair}}": [
            "4: data.checks.encoding.action: repaired passages have other offsets; use drop",
        ],
    },
    "summarisation": {
        "serving: {split_sentences: true}": [
            "4: serving.split_sentences: does not apply to the task summarisation, which needs the"
        ],
    },
    "captioning": {
        "search: {max_source_length: 3, long_source: refuse}": [
            "4: search.max_source_length: does not apply to the task captioning, whose",
            "4: search.long_source: does not apply to the task captioning, whose",
        ],
        "model: {encoder: {units: 1}}": [
            "4: model.encoder.units: position encodings need at least 2 units; or set",
        ],
    },
    "translation": {
        "  checks: {drift_oov: {action: fail}}\nevaluation: {production: null}": [
            "4: data.checks.drift_oov.action: nothing is compared if evaluation.production",
        ],
    },
}


@pytest.mark.parametrize(
    ("task", "text"), [(task, text) for task, cases in NOT_READ.items() for text in cases]
)
def test_settings_that_a_task_would_ignore(task: str, text: str, tmp_path: Path) -> None:
    head = f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\n"
    if text.startswith("  "):
        head = head.replace("data: {train: a.jsonl}", "data:\n  train: a.jsonl")
    expected = [line.replace("4: data", "5: data") for line in NOT_READ[task][text]]
    compare(problems_of(tmp_path, f"{head}{text}\n"), expected)


def test_output_checks_that_do_not_apply(tmp_path: Path) -> None:
    checks = "evaluation: {checks: {empty: {action: warn}, copies: {limit: 0.2}, repetitions: {}}}"
    for task, wrong in (("similarity", ""), ("captioning", ".copies")):
        text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\n{checks}\n"
        if task == "captioning":
            text = text.replace("a.jsonl}", "a.jsonl, images: .}")
        compare(problems_of(tmp_path, text), f"4: evaluation.checks{wrong}: does not apply")


_TRANSFORMER = "{attention: {score: scaled_dot}, decoder: {type: transformer, layers: 4, heads: 2}}"


@pytest.mark.parametrize(
    ("heads", "model", "wrong"),
    [
        ("layer: 1", "{}", ["layer: only a transformer decoder has layers of heads"]),
        ("head: 1", _TRANSFORMER, ["head: needs evaluation.alignment.layer too"]),
        (
            "layer: 5, head: 3",
            _TRANSFORMER,
            [
                "layer: must be 1 to 4, model.decoder.layers",
                "head: must be 1 to 2, model.decoder.heads",
            ],
        ),
        ("layer: 0", _TRANSFORMER, ["layer: "]),
        ("layer: 4, head: 2", _TRANSFORMER, []),
        ("layer: 4", _TRANSFORMER, []),
    ],
)
def test_measured_attention_exists(heads, model, wrong, tmp_path: Path) -> None:
    text = (
        "name: x\ndata: {train: a.tsv, extra: [links]}\n"
        f"evaluation: {{metrics: [bleu, aer], alignment: {{gold: links, {heads}}}}}\n"
        f"model: {model}\n"
    )
    if wrong:
        compare(problems_of(tmp_path, text), [f"3: evaluation.alignment.{one}" for one in wrong])
    else:
        messages = json.loads(load_text(tmp_path, text).evaluation.alignment.heads_json())
        assert messages == {"layer": 4, "head": 2 if "head" in heads else None}


_GUIDED = "training: {guided_alignment: {links: links}}"


@pytest.mark.parametrize(
    ("task", "model", "wrong"),
    [
        ("translation", "{}", None),
        ("translation", _TRANSFORMER, None),
        ("translation", "{attention: null}", "the model has no attention; remove it"),
        (
            "translation",
            "{attention: {alignment: sparsemax}}",
            "sparsemax attention has weights of",
        ),
        ("translation", "{attention: {alignment: hard}}", "hard attention has weights of zero"),
        ("summarisation", "{}", "does not apply to the task summarisation"),
        ("captioning", "{}", "does not apply to the task captioning"),
        ("similarity", "{}", "does not apply to the task similarity"),
    ],
)
def test_only_soft_attention_between_two_texts_is_guided(
    task, model, wrong, tmp_path: Path
) -> None:
    data = "{train: a.jsonl, extra: [links], images: .}" if task == "captioning" else ""
    data = data or "{train: a.jsonl, extra: [links]}"
    text = f"name: x\ntask: {task}\ndata: {data}\nmodel: {model}\n{_GUIDED}\n"
    if wrong:
        compare(problems_of(tmp_path, text), [f"5: training.guided_alignment: {wrong}"])
    else:
        features = {feature.name: feature for feature in load_text(tmp_path, text).features}
        assert (features["links"].links, features["source"].links) == (True, False)


@pytest.mark.parametrize("task", ["similarity", "pointer"])
def test_tasks_without_an_output_text_sample_no_tokens(task, tmp_path: Path) -> None:
    text = (
        f"name: x\ntask: {task}\ndata: {{train: a.jsonl}}\ntraining: {{scheduled_sampling: {{}}}}\n"
    )
    message = f"4: training.scheduled_sampling: does not apply to the task {task}; remove it"
    assert message in "\n".join(problems_of(tmp_path, text))


def test_a_check_given_in_part_keeps_its_own_limit(tmp_path: Path) -> None:
    section = "evaluation: {checks: {copies: {action: fail}}}\n"
    checks = load_text(tmp_path, f"name: x\ndata:\n  train: {PAIR}\n{section}").evaluation.checks
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
    load_text(tmp_path, f"name: x\ndata:\n  train: {PAIR}\n{text}\n")


@pytest.mark.parametrize(
    ("rest", "wrong"),
    [
        ("", None),
        ("tokenizer: {type: unigram}", None),
        ("tokenizer: {type: char}", "needs a bpe or unigram tokenizer"),
        ("tokenizer: {user_defined_symbols: [<br>]}", "splits tags and user-defined symbols"),
        ("tokenizer: {type: bpe, user_defined_symbols: [<br>]}", None),
        (
            "tokenizer: {shared: true}\nmodel: {decoder: {pointer_generator: true}}",
            "a pointer-generator copies the tokens",
        ),
        ("task: similarity", "does not apply to the task similarity"),
        ("task: span", "does not apply to the task span"),
    ],
)
def test_only_generated_texts_have_random_segmentations(rest, wrong, tmp_path: Path) -> None:
    sampling = "training: {subword_sampling: {alpha: 0.2}}"
    text = f"name: x\n{sampling}\ndata: {{train: a.jsonl}}\n{rest}\n"
    if wrong:
        compare(problems_of(tmp_path, text), [f"2: training.subword_sampling: {wrong}"])
    else:
        assert load_text(tmp_path, text).training.subword_sampling.alpha == 0.2
