"""Drift of logged requests from the data that a version was trained on.

The memory does not depend on the size of the log. Nothing here needs TensorFlow.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from glob import escape
from pathlib import Path
from typing import Any

import orjson

from regard.components.data.profiles import BOUNDS, Profile, divergence, read_profile
from regard.components.data.text_analysis import split_words
from regard.components.data.text_files import read_lines
from regard.components.example_validator import training_profile
from regard.components.example_validator.drift_check import (
    DriftFinding,
    DriftFindings,
    check_drift,
)
from regard.components.registry.records import read_record
from regard.components.registry.store import Registry
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.errors import DataError
from regard.serving.contract import PROFILE, SavedModelError, read_contract

# Words and lengths are compared only if ten of them are expected. The divergence of two samples of
# the same data is therefore below 0.02 on average, whatever their size.
MIN_ROWS = 200
_MAX_WORDS = 1 << 17  # different words of a feature; all others count as one word
_MAX_WORD = 100  # characters


class RequestCounter:
    """Counts the rows of a version in logs.

    Args:
        version: ``NAME@VERSION``.
        reference: the profile of the version.
        start: the time of the first row to count, in the form of the log.
        bins: the number of bins of equal widths for the confidence.

    Attributes:
        lines: the number of lines: ``rows`` that are counted, ``damaged`` lines, and ``other``
            lines, of failed requests, other versions and earlier times.
        confidences: the number of rows in each bin of the confidence.
    """

    def __init__(self, version: str, reference: Profile, start: str, bins: int = 0):
        self._version = version
        self._start = start
        self.confidences = [0] * bins
        self.lines = Counter(rows=0, other=0, damaged=0)
        self._lengths: dict[str, Counter[int]] = defaultdict(Counter)
        self._words = {
            name: Counter(dict.fromkeys(feature["words"], 0))
            for name, feature in reference["features"].items()
            if "words" in feature
        }

    def add(self, line: str) -> None:
        """Count a line."""
        try:
            row = orjson.loads(line)
            is_counted = (
                row["status"] == "OK"
                and f"{row['model']}@{row['version']}" == self._version
                and row["time"] >= self._start
            )
            if is_counted:
                self._add_row(row)
            self.lines["rows" if is_counted else "other"] += 1
        except (AttributeError, KeyError, TypeError, ValueError):
            self.lines["damaged"] += 1

    def _add_row(self, row: dict[str, Any]) -> None:
        for name, length in row["inputs"].items():
            self._lengths[name][min(int(length), BOUNDS[-1] + 1)] += 1
        for name, counts in self._words.items():
            for word in split_words(row.get("texts", {}).get(name, "")):
                short = word[:_MAX_WORD]
                counts[short if short in counts or len(counts) < _MAX_WORDS else "…"] += 1

        confidence = row.get("confidence")
        if self.confidences and isinstance(confidence, float) and 0.0 <= confidence <= 1.0:
            bins = len(self.confidences)
            self.confidences[min(int(confidence * bins), bins - 1)] += 1

    def profile(self) -> Profile:
        """Return the profile of the rows."""
        lengths = {
            name: training_profile.text_lengths(counts) for name, counts in self._lengths.items()
        }
        # Without texts in the log, words are not compared.
        texts = {name: counts for name, counts in self._words.items() if counts.total()}
        words = {name: training_profile.word_profile(counts) for name, counts in texts.items()}
        return training_profile.train_profile(self.lines["rows"], words, lengths)


def measure(
    model: str, registry: Path, logs: Sequence[Path], hours: float
) -> tuple[DriftFindings, Counter[str]]:
    """Compare the requests to a version with its profile.

    Args:
        model: ``NAME``, ``NAME@VERSION``, or a folder.
        registry: the registry's folder.
        logs: files of the request log; rotated files are added.
        hours: ignore earlier requests.

    Returns:
        The drift, and the ``RequestCounter.lines``.

    Raises:
        UserError: there is no such model, it has no profile, a file cannot be read, or there are
            too few rows.
    """
    folder = Registry(registry).resolve(model)
    version = f"{folder.parent.resolve().name}@{folder.name}"
    path = str(folder / PROFILE)
    start = (datetime.now(timezone.utc) - timedelta(hours=hours)).isoformat(timespec="milliseconds")
    reference = read_profile(path, "Give a version that `regard run` has published.")
    calibration = _read_calibration(folder)
    counter = RequestCounter(version, reference, start, len(calibration.get("histogram", ())))
    for log in logs:
        rotated = sorted(log.parent.glob(f"{escape(log.name)}.[0-9]*"), reverse=True)
        for file in (*rotated, log):
            for line in read_lines(str(file)):
                counter.add(line)
    config = read_record(folder).config.get("data", {}).get("checks", {})
    production = json.dumps({"version": version, "profile": path})
    checks = DataChecksConfig.model_validate(config)
    findings = check_drift(production, counter.profile(), checks)
    findings = findings or {"version": version, "checks": {}, "uncompared": {}}
    if sum(counter.confidences) >= MIN_ROWS:
        findings["checks"]["drift_confidence"] = _confidence_drift(calibration, counter.confidences)
    if counter.lines["rows"] < MIN_ROWS or not findings["checks"]:
        raise DataError(
            f"The log has {counter.lines['rows']} rows of {version} and {counter.lines['other']} "
            f"other lines; at least {MIN_ROWS} rows with lengths are needed.",
            remedy="Log more rows with --log-sample, or give another version.",
        )
    return findings, counter.lines


def _read_calibration(folder: Path) -> Mapping[str, Any]:
    """Return the entry of the confidence in the contract of a version; empty without one."""
    try:
        return read_contract(folder).get("confidence") or {}
    except SavedModelError:  # of another program
        return {}


def _confidence_drift(calibration: Mapping[str, Any], counts: Sequence[int]) -> DriftFinding:
    """Compare the confidence of requests with that of the eval split of the training."""
    value, limit = divergence(calibration["histogram"], counts), calibration["max_drift"]
    return {
        "value": value,
        "feature": "confidence",
        "limit": limit,
        "action": "warn",
        "exceeded": value > limit,
        "features": {"confidence": {"value": value}},
    }
