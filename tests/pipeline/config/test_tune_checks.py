"""The section ``tune``: parsing and validation."""

import pytest

from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: a\ndata: {train: a.tsv}\n"
OVER = "training.learning_rate: {log: [1e-4, 1e-2]}"


def text(over, more="", before=""):
    """Return a configuration; ``search_space`` is in line 4 if ``before`` is empty."""
    return f"{HEAD}{before}tune: {{{more}\nsearch_space: {{{over}}}}}\n"


def problems(folder, *parts):
    return problems_of(folder, text(*parts))


ENCODERS = "model: {encoder: [{type: convolutional, units: 64}, {units: 32}]}\n"


@pytest.mark.parametrize(
    ("searched", "message"),
    [
        (
            "model.encoder.2.units: {choice: [1, 2]}",
            "unknown key: model.encoder has no 2. Choices:",
        ),
        ("model.encoder.-1.units: {choice: [1, 2]}", "unknown key: model.encoder has no -1."),
        ("model.encoder.units: {choice: [1, 2]}", "unknown key: model.encoder has no units."),
        ("model.encoder.0.cell: {choice: [gru]}", "unknown key: model.encoder.0 has no cell."),
        ("model.encoder.1.units: {linear: [0, 9]}", "the value 0 is invalid: must be greater than"),
        ("model.encoder.0: {linear: [0, 9]}", ".linear: this key is not a number; use choice"),
    ],
)
def test_invalid_keys_of_the_items_of_a_list(tmp_path, searched, message):
    key = searched.partition(": ")[0]
    message = message if message.startswith(".") else f": {message}"
    lines = problems(tmp_path, searched, "", ENCODERS)
    compare(lines, f"5: tune.search_space.{key}{message}")


RANGES = {
    "training.learning_rat: {log: [1e-4, 1e-2]}": (
        ": unknown key: training has no learning_rat. Did"
    ),
    "model.encoder.heads: {choice: [1, 2]}": ": unknown key: model.encoder has no heads.",
    "training.checkpoint_averaging.checkpoints: {choice: [2, 5]}": (
        ": the section training.checkpoint_averaging is null; set it"
    ),
    "model.dropout.rate: {linear: [0, 1]}": ": model.dropout is 0.2, which has no keys",
    "training.learning_rate: {log: [1e-2, 1e-4]}": ".log: must be [LOW, HIGH] with LOW < HIGH",
    "training.learning_rate: {log: [0, 1e-4]}": ".log: LOW must be greater than 0, not 0.0",
    "training.learning_rate: {log: [1e-4]}": ".log: must be [LOW, HIGH]",
    "training.learning_rate: {log: [1e-4, high]}": ".log.1: a number is expected,",
    "training.learning_rate: {lg: [1e-4, 1e-2]}": ".lg: unknown key. Did you mean log? Choices:",
    "training.learning_rate: 0.1": ": a mapping (key: value) is expected, 0.1 was",
    "training.learning_rate: {}": ": set one of linear, log and choice, not none",
    "training.learning_rate: {log: [1e-4, 1e-2], choice: [1]}": (
        ": set one of linear, log and choice, not log and ch"
    ),
    "training.learning_rate: {choice: [0.1, 0.1]}": ".choice: needs two or more different values",
    "training.learning_rate: {choice: [0.1, 0.2], step: 2}": (
        ".step: applies to linear and log; remove it"
    ),
    "training.learning_rate: {log: [1e-4, 1e-2], step: 1}": (
        ".step: is a ratio for log and must exceed 1"
    ),
    "model.encoder.units: {linear: [64, 128], step: 100}": (
        ".step: 100 leaves only one value, 64; use less"
    ),
    "model.encoder.units: {linear: [64, 128.5]}": ".linear: this key takes integers only",
    "model.encoder.bidirectional: {linear: [0, 1]}": ".linear: this key is not a number; use",
    "model.dropout: {linear: [0, 1.5]}": ": the value 1.5 is invalid: must be less than 1",
    "model.encoder.cell: {choice: [lstm, gru, elman]}": (
        ": the value 'elman' is invalid: 'elman' is not a choice."
    ),
    "training.batch_tokens: {log: [64, 8192]}": ": the value 64 is invalid: must be at least 200",
    "training.batch_tokens: {choice: [4096, auto]}": (
        ": the value 'auto' is invalid: auto depends on measurements, also in deterministic"
    ),
}


@pytest.mark.parametrize(("searched", "message"), RANGES.items())
def test_invalid_ranges(tmp_path, searched, message):
    key = searched.partition(": ")[0]
    compare(problems(tmp_path, searched), f"4: tune.search_space.{key}{message}")


def test_part_of_a_section_that_is_searched_as_a_whole(tmp_path):
    over = "model.encoder: {choice: [{units: 64}, {units: 128}]}, "
    lines = problems(tmp_path, over + "model.encoder.layers: {choice: [1, 2]}")
    compare(lines, "4: tune.search_space.model.encoder.layers: is part of model.encoder, which is")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("name", "use keys of model and training"),
        ("data.root", "use keys of model and training"),
        ("serving.check_rows", "use keys of model and training"),
        ("evaluation.metrics", "use keys of model and training"),
        ("training", "use `regard compare`"),
        ("tokenizer.vocab_size", "use `regard compare`"),
        ("search.beam_size", "use `regard compare`"),
        ("training.max_epochs", "limits the training; use tune.max_epochs"),
        ("training.max_length", "use `regard compare`"),
        ("training.early_stopping", "changes what is measured"),
        ("training.early_stopping.metric", "changes what is measured"),
        ("training.warm_start.model", "use `regard compare`"),
        ("training.deterministic", "does not affect the model"),
        ("model.pretrained.source", "use `regard compare`"),
    ],
)
def test_forbidden_keys(tmp_path, key, reason):
    lines = problems(tmp_path, f"{key}: {{choice: [1, 2]}}")
    compare(lines, [f"4: tune.search_space.{key}: cannot be tuned: {reason}"])


def test_key_that_changes_preprocessing_is_rejected(tmp_path):
    head = "name: a\ntask: captioning\ndata: {train: a.tsv}\n"
    tune = "tune: {search_space: {model.image.height: {choice: [32, 64]}}}\n"
    (line,) = problems_of(tmp_path, head + tune)
    assert "model.image.height: " in line
    assert "the data would have to be preprocessed again; use `regard compare`" in line


SETTINGS = {
    "max_trials: 5,": "3: tune.max_trials: hyperband derives it from max_epochs",
    "algorithm: random, factor: 2, iterations: 2,": [
        "3: tune.factor: applies to hyperband, not to random; remove it",
        "3: tune.iterations: applies to hyperband, not to random; remove it",
    ],
    "max_epochs: 50,": "3: tune.max_epochs: 50 exceeds training.max_epochs: 20; use less",
    "objective: bleuu,": "3: tune.objective: 'bleuu' is not a choice. Did you mean bl",
    "objective: aer,": "3: tune.objective: aer is computed on the test split only; use loss",
    "algorithm: grid,": "3: tune.algorithm: 'grid' is not a choice. Choices: hyperband",
    "max_epochs: 2,": "3: tune.max_epochs: 2 epochs are less than factor: 3; use algorithm",
    "seed: 4294967295,": "3: tune.seed: must be less than or equal to 4294967294",
    "factor: 1,": "3: tune.factor: must be greater than or equal to 2; 1 was",
    "epochs: 3,": "3: tune.epochs: unknown key. epochs is tune.max_epochs",
}


@pytest.mark.parametrize(("more", "expected"), SETTINGS.items())
def test_invalid_settings_of_the_search(tmp_path, more, expected):
    compare(problems(tmp_path, OVER, more), expected)


@pytest.mark.parametrize(
    ("more", "training", "expected"),
    [
        (
            "",
            "{max_epochs: null, max_steps: 100}",
            "4: tune.max_epochs: hyperband needs it because training.max_epochs is null",
        ),
        (
            "factor: 9,",
            "{max_epochs: 8}",
            "4: tune.factor: 8 epochs are less than factor: 9; use algorithm",
        ),
    ],
)
def test_settings_of_the_search_that_the_training_refuses(tmp_path, more, training, expected):
    compare(problems(tmp_path, OVER, more, f"training: {training}\n"), expected)


def test_empty_search_space(tmp_path):
    compare(
        problems_of(tmp_path, f"{HEAD}tune: {{}}\n"),
        ["3: tune.search_space: is missing: The keys of"],
    )
    lines = problems_of(tmp_path, f"{HEAD}tune: {{search_space: {{}}}}\n")
    compare(lines, "3: tune.search_space: ")


def test_batch_size_that_trials_would_measure(tmp_path):
    lines = problems(tmp_path, OVER, "", "training: {batch_tokens: auto}\n")
    compare(lines, "3: training.batch_tokens: auto depends on measurements, also in")


def test_search_is_not_validated_if_the_rest_is_invalid(tmp_path):
    lines = problems(tmp_path, OVER, "", "training: {batch_tokens: 10}\n")
    compare(lines, ["3: training.batch_tokens: must be at least 200"])
