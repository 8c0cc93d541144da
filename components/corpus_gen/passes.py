"""What Beam's workers do with a group of files, and the files by which they tell of it.

It is not the executor's own, so that a worker need not import all of TFX.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from components.corpus_gen import replay
from components.corpus_gen.convert import Report, convert
from components.corpus_gen.problems import Problems
from components.corpus_gen.replay import Replayed
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import HashedSplit
from components.files import write_uri

Job = tuple[int, Group, HashedSplit | Replayed | None]  # the group's place in the corpus first


def first_pass(job: Job, data: Mapping[str, Any], work: str) -> None:
    """Converts a group, or counts the rows of an older span's."""
    index, group, split = job
    if not group.replay:
        convert_one(job, data, work)
        return
    # What is wrong with its rows is told of the second pass, which reads them again.
    tally = replay.tally(group, data, split, Problems())
    write_uri(_tally_path(work, index), json.dumps(tally))


def convert_one(job: Job, data: Mapping[str, Any], work: str) -> None:
    """Converts a group, and leaves its report."""
    index, group, split = job
    report = convert(index, group, data, split, work)
    write_uri(_report_path(work, index), report.to_json())


def read_report(work: str, index: int) -> Report:
    """The report of a group."""
    from tfx.dsl.io import fileio

    with fileio.open(_report_path(work, index)) as file:
        return Report.from_json(file.read())


def read_tally(work: str, index: int) -> dict[int, int]:
    """The counted rows of an older span's group."""
    from tfx.dsl.io import fileio

    with fileio.open(_tally_path(work, index)) as file:
        return {int(place): count for place, count in json.loads(file.read()).items()}


def _report_path(work: str, index: int) -> str:
    return os.path.join(work, f"report-{index:05d}.json")


def _tally_path(work: str, index: int) -> str:
    return os.path.join(work, f"tally-{index:05d}.json")
