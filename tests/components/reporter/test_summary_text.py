import dataclasses

import pytest

from regard.components.common.run_record import RunRecord
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.summary_text import describe_model, summarize_run
from regard.components.reporter.tables import format_share
from regard.core.errors import Failure
from tests.components.reporter import sample_runs


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0%"), (1.0, "100%"), (0.0123, "1.2%"), (0.5, "50%"), (0.9951, "99.5%")),
        *((0.99999, "over 99.9%"), (0.00012, "0.012%"), (1e-7, "under 0.01%")),
    ],
)
def test_format_share(value, text):
    assert format_share(value) == text


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (
            {"decoder": {"type": "luong"}, "attention": {"score": {"type": "scaled_dot"}}},
            "luong translation model with scaled dot attention",
        ),
        (
            {
                "decoder": {"type": "bahdanau"},
                "attention": {"score": "additive", "alignment": {"type": "hard"}},
            },
            "bahdanau translation model with hard additive attention",
        ),
        ({"decoder": {"type": "a"}, "attention": None}, "a translation model without attention"),
        ({"decoder": {"type": "transformer"}}, "transformer translation model"),
        (
            {"decoder": {"type": "feed_forward"}, "attention": {"score": "general"}},
            "feed-forward translation model with general attention",
        ),
        ({"encoder": {"type": "recurrent"}}, "recurrent translation model"),
        (
            {"encoder": [{"type": "convolutional"}, {"type": "recurrent"}]},
            "convolutional + recurrent translation model",
        ),
        ({"decoder": {"score": "additive"}}, "translation model with additive attention"),
        ({}, "translation model"),
    ],
)  # fmt: skip
def test_describe_model(model, name):
    assert describe_model("translation", {"model": model}) == name


def test_summary_of_a_successful_run(facts):
    assert summarize_run(facts) == (
        "A Luong translation model with general attention (12,345 parameters), trained on 90 rows "
        "of mine for 600 steps (6 full epochs) in 1:05, reaches BLEU 40.00 [39.00, 41.00] "
        "on 20 test rows; it passed the evaluation gate and is version 2."
    )


def test_summary_of_a_run_that_fails_the_gate(facts, tmp_path):
    sample_runs.put(tmp_path, "blessing", "blessing.json", {"blessed": False, "sentence": "No."})
    sample_runs.put(tmp_path, "pushed", "pushed.json", {"pushed": False})
    assert summarize_run(facts).endswith("on 20 test rows; it did not pass the evaluation gate.")


def test_summary_of_a_rejected_model_that_is_published(facts, tmp_path):
    sample_runs.put(tmp_path, "blessing", "blessing.json", {"blessed": False, "sentence": "No."})
    text = summarize_run(facts)
    assert text.endswith(
        "; it did not pass the evaluation gate, and was published as version 2 all the same."
    )


def test_summary_of_a_run_without_a_model(tmp_path):
    run = RunRecord(name="mine", failure=Failure(node="Trainer", error="no memory"))
    text = summarize_run(RunFacts(run, {}, "similarity"))
    assert text == "A similarity model, not evaluated: the run failed at Trainer."
    for status, end in [
        ("", "."),
        ("killed", ": the run was killed."),
        ("running", ": the run is in progress."),
    ]:
        current = RunFacts(RunRecord(name="mine", status=status), {}, "similarity")
        assert summarize_run(current) == f"A similarity model, not evaluated{end}"


def test_summary_of_a_failure_after_the_evaluation(facts, tmp_path):
    failure = Failure(node="ServingCheck", error="x")
    failed = facts.run.model_copy(update={"failure": failure})
    text = summarize_run(dataclasses.replace(facts, run=failed))
    assert text.endswith("on 20 test rows: the run failed at ServingCheck.")


def test_summary_of_an_undefined_metric(facts, tmp_path):
    with sample_runs.edit(tmp_path, "evaluation", "metrics.json") as content:
        content["metrics"]["bleu"] |= {"value": float("nan"), "interval": None}
    assert "reaches BLEU undefined on 20 test rows" in summarize_run(facts)
