"""The section ``tune``: what is searched, and what is refused at which line."""

import pytest

from pipeline.config import load
from pipeline.config.tune_checks import dimensions
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: a\ndata: {train: a.tsv}\n"
OVER = "training.learning_rate: {log: [1e-4, 1e-2]}"


def problems(folder, over, more="", before=""):
    """The lines told; the section ``over`` begins in line 4 where nothing stands before it."""
    return problems_of(folder, f"{HEAD}{before}tune: {{{more}\nover: {{{over}}}}}\n")


def config(folder, over, more="", before=""):
    path = folder / "x.yaml"
    path.write_text(f"{HEAD}{before}tune: {{{more}\nover: {{{over}}}}}\n")
    return load(path)


def test_ranges_of_floats_and_of_whole_numbers_follow_from_the_key(tmp_path):
    over = (
        f"{OVER}, model.dropout: {{linear: [0, 0.5]}}, model.encoder.layers: {{linear: [1, 3]}}, "
        "training.batch_tokens: {log: [1024, 8192], step: 2}, "
        "training.schedule.warmup_steps: {linear: [0, 100], step: 50}, "
        "training.clip_norm: {choice: [null, 1.0, 5]}"
    )
    rate, dropout, layers, tokens, warmup, clip = dimensions(config(tmp_path, over))
    assert (rate.low, rate.high, rate.log, rate.whole) == (1e-4, 1e-2, True, False)
    assert (dropout.log, dropout.whole) == (False, False)
    assert layers.whole
    assert (tokens.log, tokens.whole, tokens.step) == (True, True, 2)
    assert (warmup.whole, warmup.step) == (True, 50)
    assert clip.choices == [None, 1.0, 5]


def test_choices_of_whole_sections_are_read_as_the_file_is(tmp_path):
    over = "model.attention: {choice: [{score: general}, {score: additive, alignment: local_p}]}"
    (attention,) = dimensions(config(tmp_path, over))
    assert attention.choices[0] == {"score": "general"}
    assert attention.meanings[0]["alignment"] == {"type": "soft"}
    assert attention.meanings[1]["alignment"]["type"] == "local_p"


@pytest.mark.parametrize(
    ("over", "lines"),
    [
        (
            "training.learning_rat: {log: [1e-4, 1e-2]}",
            ["4: tune.over.training.learning_rat: unknown key: training has no learning_rat; did "],
        ),
        (
            "model.encoder.heads: {choice: [1, 2]}",
            ["4: tune.over.model.encoder.heads: unknown key: model.encoder has no heads; "],
        ),
        (
            "training.ema.decay: {linear: [0.9, 0.99]}",
            ["4: tune.over.training.ema.decay: there is no section training.ema, which is null; "],
        ),
        (
            "model.dropout.rate: {linear: [0, 1]}",
            ["4: tune.over.model.dropout.rate: model.dropout is 0.2, and has no keys"],
        ),
        (
            "training.learning_rate: {log: [1e-2, 1e-4]}",
            ["4: tune.over.training.learning_rate.log: [LOW, HIGH] is expected, the lower one "],
        ),
        (
            "training.learning_rate: {log: [0, 1e-4]}",
            ["4: tune.over.training.learning_rate.log: must begin above 0; 0.0 was given"],
        ),
        (
            "training.learning_rate: {log: [1e-4]}",
            ["4: tune.over.training.learning_rate.log: [LOW, HIGH] is expected"],
        ),
        (
            "training.learning_rate: {log: [1e-4, high]}",
            ["4: tune.over.training.learning_rate.log.1: a number or null is expected, the text"],
        ),
        (
            "training.learning_rate: {lg: [1e-4, 1e-2]}",
            ["4: tune.over.training.learning_rate.lg: unknown key; did you mean log? choices: "],
        ),
        (
            "training.learning_rate: 0.1",
            ["4: tune.over.training.learning_rate: a mapping (key: value) is expected, the "],
        ),
        (
            "training.learning_rate: {}",
            ["4: tune.over.training.learning_rate: one of linear, log and choice is expected, non"],
        ),
        (
            "training.learning_rate: {log: [1e-4, 1e-2], choice: [1]}",
            ["4: tune.over.training.learning_rate: one of linear, log and choice is expected, log"],
        ),
        (
            "training.learning_rate: {choice: [0.1, 0.1]}",
            ["4: tune.over.training.learning_rate.choice: two or more different values are expec"],
        ),
        (
            "training.learning_rate: {choice: [0.1, 0.2], step: 2}",
            ["4: tune.over.training.learning_rate.step: is for linear and log; leave it out"],
        ),
        (
            "training.learning_rate: {log: [1e-4, 1e-2], step: 1}",
            ["4: tune.over.training.learning_rate.step: is a factor here, and must be more than 1"],
        ),
        (
            "model.encoder.units: {linear: [64, 128], step: 100}",
            ["4: tune.over.model.encoder.units.step: 100 leaves one value only, 64; use less"],
        ),
        (
            "model.encoder.units: {linear: [64, 128.5]}",
            ["4: tune.over.model.encoder.units.linear: the key takes whole numbers only; "],
        ),
        (
            "model.encoder.bidirectional: {linear: [0, 1]}",
            ["4: tune.over.model.encoder.bidirectional.linear: the key takes no numbers; use"],
        ),
        (
            "model.dropout: {linear: [0, 1.5]}",
            ["4: tune.over.model.dropout: 1.5 is not possible: must be less than 1"],
        ),
        (
            "model.encoder.cell: {choice: [lstm, gru, elman]}",
            ["4: tune.over.model.encoder.cell: 'elman' is not possible: 'elman' is not a choice; "],
        ),
        (
            "training.batch_tokens: {log: [64, 8192]}",
            ["4: tune.over.training.batch_tokens: 64 is not possible: 64 does not hold one row"],
        ),
        (
            f"{OVER}, model.encoder: {{choice: [{{units: 64}}, {{units: 128}}]}}, "
            "model.encoder.layers: {choice: [1, 2]}",
            ["4: tune.over.model.encoder.layers: is a part of model.encoder, which is tuned as a "],
        ),
    ],
)
def test_ranges_that_cannot_be(tmp_path, over, lines):
    compare(problems(tmp_path, over), lines)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("name", "only keys of model and training can"),
        ("data.root", "only keys of model and training can"),
        ("serving.check_rows", "only keys of model and training can"),
        ("evaluation.metrics", "only keys of model and training can"),
        ("training", "ends a training"),
        ("tokenizer.vocab_size", "each value needs another tokenizer"),
        ("search.beam_size", "is for answers and no part of the training; write the few that matt"),
        ("training.max_epochs", "ends a training; tune.epochs"),
        ("training.max_length", "rows that are longer are measured in no trial"),
        ("training.early_stop", "decides what trials are compared by"),
        ("training.early_stop.metric", "decides what trials are compared by"),
        ("training.warm_start.from", "a search starts from one model"),
        ("training.deterministic", "changes nothing about the model"),
        ("model.pretrained.source", "files are looked up before the search"),
    ],
)
def test_keys_that_cannot_be_tuned(tmp_path, key, reason):
    lines = problems(tmp_path, f"{key}: {{choice: [1, 2]}}")
    compare(lines, [f"4: tune.over.{key}: cannot be tuned: {reason}"])


def test_values_that_are_not_possible_together(tmp_path):
    network = "model: {embedding: 64, encoder: {type: transformer}, decoder: {type: transformer}}\n"
    over = "model.embedding: {choice: [64, 96]}, model.encoder.heads: {choice: [4, 64]}"
    compare(
        problems(tmp_path, over, before=network),
        ["5: tune.over: not possible together: model.embedding: 96, "],
    )


def test_what_would_need_other_data_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: a\ntask: captioning\ndata: {train: a.tsv}\n"
        "tune: {over: {model.image.height: {choice: [32, 64]}}}\n"
    )
    text = path.read_text()
    (line,) = problems_of(tmp_path, text)
    assert "model.image.height: " in line
    assert "the data would have to be preprocessed anew; write the few that matter" in line


@pytest.mark.parametrize(
    ("more", "before", "lines"),
    [
        ("trials: 5,", "", ["3: tune.trials: hyperband's follow from epochs, factor and iter"]),
        (
            "algorithm: random, factor: 2, iterations: 2,",
            "",
            [
                "3: tune.factor: is for hyperband, not for random; leave it out",
                "3: tune.iterations: is for hyperband, not for random; leave it out",
            ],
        ),
        (
            "epochs: 50,",
            "",
            ["3: tune.epochs: 50 is more than a run has, training.max_epochs: 20; use less"],
        ),
        (
            "",
            "training: {max_epochs: null, max_steps: 100}\n",
            ["4: tune.epochs: hyperband divides epochs, and training.max_epochs is null; give "],
        ),
        ("objective: bleuu,", "", ["3: tune.objective: 'bleuu' is not a choice; did you mean bl"]),
        ("objective: aer,", "", ["3: tune.objective: aer is known only of the test split; use "]),
        ("algorithm: grid,", "", ["3: tune.algorithm: 'grid' is not a choice; choices: hyperband"]),
        ("parallel: 0,", "", ["3: tune.parallel: must be at least 1; 0 was given"]),
        (
            "epochs: 2,",
            "",
            ["3: tune.epochs: trials of 2 epochs cannot be divided by factor: 3; use more epochs"],
        ),
        (
            "factor: 9,",
            "training: {max_epochs: 8}\n",
            ["4: tune.factor: trials of 8 epochs cannot be divided by factor: 9; use more epochs"],
        ),
        ("seed: 4294967295,", "", ["3: tune.seed: must be at most 4294967294; 4294967295 was"]),
        ("factor: 1,", "", ["3: tune.factor: must be at least 2; 1 was given"]),
        ("epoch: 3,", "", ["3: tune.epoch: unknown key; did you mean epochs? choices: "]),
    ],
)
def test_searches_that_cannot_be(tmp_path, more, before, lines):
    compare(problems(tmp_path, OVER, more, before), lines)


def test_nothing_to_search(tmp_path):
    compare(problems_of(tmp_path, f"{HEAD}tune: {{}}\n"), ["3: tune.over: is missing: The keys, "])
    found = problems_of(tmp_path, f"{HEAD}tune: {{over: {{}}}}\n")
    assert len(found) == 1
    assert found[0].startswith("3: tune.over: ")


def test_nothing_is_said_of_a_search_while_the_rest_is_wrong(tmp_path):
    lines = problems(tmp_path, OVER, before="training: {batch_tokens: 10}\n")
    compare(lines, ["3: training.batch_tokens: 10 does not hold one row"])
