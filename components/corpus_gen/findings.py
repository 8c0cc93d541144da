"""What CorpusGen tells of its work: ``corpus.json``."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.dsl.io import fileio

from components import events
from components.corpus_gen.convert import Report
from components.corpus_gen.problems import Problems
from components.corpus_gen.replay import too_few
from components.corpus_gen.survey import ordered, untested
from components.files import sha256_file, write_uri


def all_problems(reports: Sequence[Report]) -> Problems:
    """The problems of all groups of files."""
    problems = Problems()
    for report in reports:
        problems.merge(report.problems)
    return problems


def write(
    uri: str,
    data: Mapping[str, Any],
    fingerprint: str,
    rows: Mapping[str, int],
    reports: Sequence[Report],
) -> None:
    """Writes ``corpus.json``, and tells the user what was skipped or repaired.

    Args:
        uri: the folder of the artifact.
        data: the ``data`` section as ``spans.settled`` gives it.
        fingerprint: of the content of its files.
        rows: of each split.
        reports: of each group of files.
    """
    problems = all_problems(reports)
    spans = _spans(data, reports)
    told = [*problems.notes(), *untested(data, spans)]
    if spans:
        told += too_few(spans, rows, data["spans"].get("replay", 0.0))
    for note in told:
        events.emit("warning", node="CorpusGen", text=note)
    content = {
        "fingerprint": fingerprint,
        "rows": rows,
        "skipped": problems.left_out,
        "repaired": problems.total("replace"),
        "files": [{"files": r.files, "rows": r.rows} for r in reports],
        "problems": {
            key: {"count": count, "examples": problems.to_json()["examples"][key]}
            for key, count in problems.counts.items()
        },
    }
    if spans:
        content["spans"] = spans
    fileio.makedirs(uri)
    write_uri(os.path.join(uri, "corpus.json"), json.dumps(content, ensure_ascii=False, indent=1))


def _spans(data: Mapping[str, Any], reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The spans that were taken, each with its rows by split and a digest of its files.

    Of one that is replayed also how many rows were ``available``.
    """
    found = []
    for span in data["spans"]["taken"] if "spans" in data else ():
        own = [report for report in reports if report.span == span["name"]]
        rows: dict[str, int] = {}
        for report in own:
            for name, count in report.rows.items():
                rows[name] = rows.get(name, 0) + count
        digests = [sha256_file(path) for report in own for path in report.files]
        digest = hashlib.sha256("\n".join(digests).encode()).hexdigest()
        known = {**span, "rows": ordered(rows), "fingerprint": digest}
        if span.get("replayed"):
            known["available"] = sum(report.available for report in own)
        found.append(known)
    return found
