"""Metrics that a command computes."""

import os
import sys
import time

import pytest

from regard.components.evaluator import external_metrics
from regard.components.evaluator.scoring import ModelScores
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.errors import UserError
from regard.models.metrics import Rows
from tests.components.evaluator.evaluating import CONFIG, evaluate

# The share of a reference's words in the output; the best of several references.
SCRIPT = """
import sys
for line in sys.stdin:
    source, output, *references = line.rstrip("\\n").split("\\t")
    words = output.split()
    print(max(sum(w in words for w in r.split()) / len(r.split()) for r in references))
"""
TEXTS = [f"this is sentence number {n} of all{' of them' * (n % 2)}" for n in range(40)]
WORSE = [text if n % 3 else "what is this" for n, text in enumerate(TEXTS)]


def words_in(output, reference):
    return sum(word in output.split() for word in reference.split()) / len(reference.split())


def external(script, **options):
    return {"overlap": {"command": [sys.executable, "-c", script], **options}}


def scores(script, rows, **options):
    values = {"metrics": ["overlap"], "external": external(script, **options)}
    return ModelScores(rows, EvaluationConfig.model_validate(values))


def test_it_has_everything_that_a_metric_has(tmp_path):
    config = {
        **CONFIG,
        "metrics": ["overlap", "chrf"],
        "external": external(SCRIPT, label="word overlap"),
        "thresholds": {"overlap": 0.5},
        "production": {"metric": "overlap", "slices": ["length"]},
        "length_buckets": [8],
        "samples": 200,
        "baselines": ["chance"],
    }
    result = evaluate(tmp_path, config, WORSE, TEXTS, TEXTS)
    content = result.read("metrics.json")
    expected = [words_in(output, text) for output, text in zip(WORSE, TEXTS, strict=True)]
    metric = content["metrics"]["overlap"]
    assert metric["value"] == pytest.approx(sum(expected) / 40, abs=1e-12)
    assert metric["label"] == "word overlap"
    assert metric["scale"] == 1.0
    assert metric["signature"] == f"nrefs:1|external:{os.path.basename(sys.executable)}"
    assert metric["interval"]["low"] < metric["value"] < metric["interval"]["high"]
    assert content["production"]["metrics"]["overlap"]["value"] == 1.0
    assert content["production"]["comparison"]["p_value"] < 0.05
    assert 0 < content["baselines"][0]["metrics"]["overlap"]["value"] < 1
    (bucket, *_) = result.read("by_length.json")["buckets"]
    rows = range(0, 40, 2)  # the short ones
    assert bucket["rows"] == len(rows)
    mean = sum(expected[n] for n in rows) / len(rows)
    assert bucket["scores"]["candidate"]["overlap"] == pytest.approx(mean, abs=1e-12)
    assert not result.is_blessed
    rules = {(verdict["rule"], verdict["metric"]) for verdict in result.decision["verdicts"]}
    assert len([rule for rule in rules if rule[1] == "overlap"]) >= 2


def test_the_command_runs_once_for_all_models(tmp_path):
    log = tmp_path / "log"
    script = f"open({str(log)!r}, 'a').write('x')\n{SCRIPT}"
    config = {
        **CONFIG,
        "metrics": ["overlap"],
        "external": external(script),
        "thresholds": {},
        "production": {"metric": "overlap"},
        "baselines": ["chance", "copy"],
    }
    result = evaluate(tmp_path, config, WORSE, TEXTS, TEXTS)
    assert log.read_text() == "x"
    content = result.read("metrics.json")
    expected = [words_in(output, text) for output, text in zip(WORSE, TEXTS, strict=True)]
    mean = sum(expected) / len(expected)
    assert content["metrics"]["overlap"]["value"] == pytest.approx(mean, abs=1e-12)
    assert content["production"]["metrics"]["overlap"]["value"] == 1.0
    values = [baseline["metrics"]["overlap"]["value"] for baseline in content["baselines"]]
    assert values[0] < values[1] == 1.0  # the sources are the references


def test_the_command_runs_once(tmp_path):
    script = f"open({str(tmp_path / 'log')!r}, 'a').write('x')\n{SCRIPT}"
    rows = Rows(WORSE, [[text] for text in TEXTS], {"source": TEXTS})
    model_scores = scores(script, rows)
    model_scores.results(100)
    model_scores.subset_values([1, 2])
    model_scores.p_value(model_scores, "overlap", "randomization", 100, rows=[0, 1, 2])
    assert (tmp_path / "log").read_text() == "x"


def test_lines_are_escaped_and_have_every_reference(tmp_path):
    script = f"import sys; open({str(tmp_path / 'rows')!r}, 'wb').write(sys.stdin.buffer.read())"
    script += "; print('1\\n-2e0')"
    source = ["a\tb\\n", "c\r\nd"]
    rows = Rows(["é\u2028\x85", ""], [["x"], ["y", "z\n"]], {"source": source})
    assert scores(script, rows).metrics["overlap"].value == -0.5
    expected = "a\\tb\\\\n\té\u2028\x85\tx\nc\\r\\nd\t\ty\tz\\n\n"
    assert (tmp_path / "rows").read_bytes().decode() == expected


def test_a_lower_value_is_better_if_so_configured():
    rows = Rows(["a"], [["a"]])
    metric = scores("print(3)", rows, higher_is_better=False, scale=100).metrics["overlap"]
    assert (metric.value, metric.higher_is_better, metric.scale) == (3.0, False, 100)


FAILURES = {
    "print(1)": "printed 1 lines for 2 rows",
    "print(1); print('nan')": "printed 'nan' in line 2, no finite number",
    "print('x' * 99); print(1)": "printed 'xxxxxxxx",
    "print('1 2'); print(1)": "printed '1 2' in line 1",
    "import sys; print('no model', file=sys.stderr); sys.exit(3)": "status 3.\nno model",
    "import os; os.kill(os.getpid(), 11)": "SIGSEGV",
    "import time; time.sleep(60)": "timeout of 0.5 seconds",
    "while True: print('x' * 100_000)": "printed more than 1,000,000 bytes",
    "import sys\nwhile True: print('x' * 100_000, file=sys.stderr)": "more than 1,000,000 bytes",
}


@pytest.mark.parametrize("script", FAILURES)
def test_a_failure_names_the_key_and_the_reason(script, monkeypatch):
    monkeypatch.setattr(external_metrics, "_MAX_BYTES", 1_000_000)
    timeout = 0.5 if "sleep" in script else 60.0
    with pytest.raises(UserError) as caught:
        scores(script, Rows(["a", "b"], [["a"], ["b"]]), timeout=timeout)
    assert FAILURES[script] in caught.value.message
    assert caught.value.where == "evaluation.external.overlap.command"
    assert len(caught.value.message) <= 2000


def test_a_command_that_does_not_read_its_input_or_does_not_exist():
    rows = Rows(["a" * 100] * 5000, [["b" * 100]] * 5000)
    assert scores("for _ in range(5000): print(1)", rows).metrics["overlap"].value == 1.0
    values = {"metrics": ["odd"], "external": {"odd": {"command": "no-such-program x"}}}
    with pytest.raises(UserError, match=r"no-such-program cannot be started: .*No such file"):
        ModelScores(rows, EvaluationConfig.model_validate(values))


def test_there_is_no_shell(tmp_path):
    command = f"{sys.executable} -c 'import sys; print(len(sys.argv))' '; touch {tmp_path}/x' $HOME"
    values = {"metrics": ["odd"], "external": {"odd": {"command": command}}}
    config = EvaluationConfig.model_validate(values)
    assert config.external["odd"].command[-2:] == (f"; touch {tmp_path}/x", "$HOME")
    assert ModelScores(Rows(["a"], [["a"]]), config).metrics["odd"].value == 3.0
    assert not list(tmp_path.iterdir())


def test_a_timeout_ends_the_process(tmp_path):
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    with pytest.raises(UserError, match="timeout"):
        scores(f"{script}; time.sleep(600)", Rows(["a"], [["a"]]), timeout=1.0)
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")
