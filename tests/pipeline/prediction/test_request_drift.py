"""Drift of logged requests, by ``regard drift``."""

import json
import random
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from regard.components.example_validator import training_profile
from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from regard.pipeline.prediction import request_drift
from regard.serving.contract import CONTRACT, PROFILE
from regard.serving.server.metrics import Metrics
from regard.serving.server.options import RequestLogOptions
from regard.serving.server.request_log import RequestLog
from tests import fake_models

WORDS = [f"word{number}" for number in range(40)]


def sentences(count, words=WORDS, length=8, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(words, k=draw.randint(1, length))) for _ in range(count)]


@pytest.fixture
def version(tmp_path):
    """The folder of a version that was trained on 5,000 sentences."""
    folder = tmp_path / "registry" / "m" / "2"
    (folder / PROFILE).parent.mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    (folder.parent / "1").mkdir()
    (folder.parent / "1" / "saved_model.pb").touch()
    texts = sentences(5000, seed=1)
    lengths = training_profile.text_lengths(Counter(map(len, texts)))
    words = training_profile.word_profile(Counter(word for text in texts for word in text.split()))
    profile = training_profile.train_profile(5000, {"source": words}, {"source": lengths})
    (folder / PROFILE).write_text(json.dumps(profile))
    return folder


@pytest.fixture
def log(tmp_path):
    """Logs texts as the server does, and returns the file."""

    def log(sources, version=2, status="OK", confidence=None, **options):
        file = tmp_path / "requests.jsonl"
        writer = RequestLog(RequestLogOptions(file, **{"texts": True, **options}), Metrics())
        head = {"model": "m", "version": version, "signature": "serving_default", "status": status}
        outputs = {"score": np.full(len(sources), -0.5)}
        if confidence is not None:
            outputs["confidence"] = np.asarray(confidence, np.float32)
        inputs = {"source": np.array([text.encode() for text in sources], object)}
        writer.add(time.monotonic(), head, inputs, outputs)
        writer.close()
        return file

    return log


def drift(version, file, *arguments):
    registry = version.parents[1]
    command = ["drift", "m", "--log", str(file), "--registry", str(registry), *arguments]
    return CliRunner().invoke(app, command, env={"COLUMNS": "100"}, catch_exceptions=False)


def test_the_same_distribution(version, log):
    result = drift(version, log(sentences(2000)))
    assert result.exit_code == 0
    first, _, *lines = result.stdout.splitlines()
    assert first == "m@2: 2,000 rows, 0 other, 0 damaged"
    labels = ("words of source", "new words of source", "lengths of source")
    assert [line.rstrip().endswith("ok") for line in lines] == [True] * 3
    assert all(line.startswith(label) for line, label in zip(lines, labels, strict=True))


@pytest.mark.parametrize(
    ("texts", "exceeded"),
    [
        (sentences(500, length=30), {"drift_lengths"}),
        (sentences(500, [f"neue{number}" for number in range(40)]), {"drift_words", "drift_oov"}),
    ],
    ids=["longer", "other words"],
)
def test_drift_is_named(version, log, texts, exceeded):
    file = log(texts)
    result = drift(version, file, "--json")
    assert result.exit_code == 3
    content = json.loads(result.stdout)
    assert {name for name, check in content["checks"].items() if check["exceeded"]} == exceeded
    assert content["lines"] == {"rows": 500, "other": 0, "damaged": 0}
    lines = [line.split() for line in drift(version, file).stdout.splitlines()]
    assert sum("drift" in line for line in lines) == len(exceeded)


def test_without_texts_only_lengths_are_compared(version, log):
    checks = json.loads(drift(version, log(sentences(300), texts=False), "--json").stdout)["checks"]
    assert list(checks) == ["drift_lengths"]


def test_the_limits_are_those_of_the_version(version, log):
    checks = {"drift_words": None, "drift_oov": None, "drift_lengths": {"limit": 0.9}}
    (version / "regard.json").write_text(json.dumps({"config": {"data": {"checks": checks}}}))
    result = drift(version, log(sentences(500, length=30)), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["checks"]["drift_lengths"]["limit"] == 0.9


def test_rotated_files_and_lines_that_are_not_compared(version, log):
    file = log(sentences(150))
    log(sentences(10), version=1)
    log(sentences(20), status="INTERNAL")
    with file.open("a") as opened:
        opened.write('{"time": "2026\n[]\nnull\n\x00\xff\n{"status": "OK", "model": "m"}\n')
        row = {"model": "m", "version": 2, "status": "OK", "time": "3", "inputs": {"source": "x"}}
        opened.write(json.dumps(row) + "\n")
    file.rename(f"{file}.1")
    log(sentences(150))
    result = drift(version, file)
    assert result.stdout.startswith("m@2: 300 rows, 30 other, 6 damaged\n")
    assert result.exit_code == 0


def test_earlier_requests_are_ignored(version, log):
    file = log(sentences(300, length=30))
    old = file.read_text().replace('"time": "20', '"time": "19')
    file.write_text(old)
    log(sentences(300))
    assert drift(version, file).exit_code == 3
    result = drift(version, file, "--since", "24")
    assert (result.exit_code, result.stdout[:32]) == (0, "m@2: 300 rows, 300 other, 0 dama")


@pytest.fixture
def calibrated(version):
    """The version with confidences that are spread evenly over ten bins, without other limits."""
    contract = dict(fake_models.Reverser().contract())
    contract["confidence"] = {"output": "confidence", "histogram": [30] * 10, "max_drift": 0.05}
    (version / CONTRACT).write_text(json.dumps(contract))
    checks = dict.fromkeys(("drift_words", "drift_oov", "drift_lengths"))
    (version / "regard.json").write_text(json.dumps({"config": {"data": {"checks": checks}}}))
    return version


@pytest.mark.parametrize(
    ("confidence", "status"),
    [(np.linspace(0, 1, 300), 0), (np.linspace(0, 1, 300) ** 3, 3), (np.zeros(300), 3)],
    ids=["even", "lower", "none"],
)
def test_drift_of_the_confidence(calibrated, log, confidence, status):
    file = log(sentences(300), confidence=confidence)
    result = drift(calibrated, file, "--json")
    assert result.exit_code == status
    check = json.loads(result.stdout)["checks"]["drift_confidence"]
    assert (check["limit"], check["exceeded"]) == (0.05, status == 3)
    assert drift(calibrated, file).stdout.splitlines()[2].startswith("confidence")


def test_rows_without_a_confidence(calibrated, log):
    log(sentences(199), confidence=np.full(199, 0.5))
    file = log(sentences(300), confidence=np.full(300, np.nan))
    with pytest.raises(UserError, match="at least 200 rows"):
        drift(calibrated, file)


def test_too_few_rows(version, log):
    with pytest.raises(UserError, match=r"has 199 rows of m@2 and 0 other lines; at least 200"):
        drift(version, log(sentences(199)))
    with pytest.raises(UserError, match="has 0 rows of m@2 and 349 other lines"):
        drift(version, log(sentences(150)), "--since", "0")


def test_a_version_without_a_profile_and_a_missing_log(version, log):
    with pytest.raises(UserError, match="the profile cannot be read"):
        request_drift.measure("m@1", version.parents[1], [log(["a"])], 1)
    with pytest.raises(UserError, match="the file cannot be read: No such file"):
        drift(version, Path("none.jsonl"))


def test_memory_does_not_grow_with_new_words(version, log, monkeypatch):
    monkeypatch.setattr(request_drift, "_MAX_WORDS", 1000)
    reference = json.loads((version / PROFILE).read_text())
    counter = request_drift.RequestCounter("m@2", reference, "")
    row = {"model": "m", "version": 2, "status": "OK", "time": "3", "inputs": {"source": 9}}

    def add(numbers):
        for number in numbers:
            text = f"word1 {number:x}{'y' * 300}"
            counter.add(json.dumps({**row, "texts": {"source": text}}))

    add(range(2000))
    tracemalloc.start()
    add(range(2000, 6000))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    words = counter.profile()["features"]["source"]
    assert (words["total"], words["words"]["word1"]) == (12_000, 6000)
    assert sum(words["words"].values()) == 12_000


def test_tensorflow_is_not_imported(version, log):
    file, registry = log(sentences(300)), version.parents[1]
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from regard.pipeline.prediction import request_drift\n"
        f"request_drift.measure('m', Path({str(registry)!r}), [Path({str(file)!r})], 1)\n"
        "print({'tensorflow', 'keras', 'tfx', 'apache_beam'} & {*sys.modules})"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert completed.stdout == "set()\n", completed.stderr
