"""CorpusGen's work: a Beam pipeline over groups of files, then everything is named at once."""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from tfx import types
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from components import events
from components.corpus_gen import replay
from components.corpus_gen.convert import Report
from components.corpus_gen.findings import all_problems
from components.corpus_gen.findings import write as write_findings
from components.corpus_gen.fingerprints import fingerprint, named_images
from components.corpus_gen.formats import Options
from components.corpus_gen.images import Images
from components.corpus_gen.passes import Job, convert_one, first_pass, read_report, read_tally
from components.corpus_gen.records import os_errors
from components.corpus_gen.replay import Replayed
from components.corpus_gen.sources import Group, resolve
from components.corpus_gen.spans import settled
from components.corpus_gen.splits import Draws
from components.corpus_gen.survey import checked_rows
from components.errors import UserError
from components.parameters import applied

_WORK = ".writing-"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes the ``examples`` and the ``findings`` of a corpus."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Reads every file once; the splits appear only when the whole corpus is good.

        Raises:
            UserError: the corpus cannot be used as it is, or the disk is full or read-only.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        # What the graph has not settled was not there when it was made; nobody was told of it yet.
        notes: list[str] = []
        compiled = {"data": json.loads(exec_properties["data"])}
        data = settled(applied(compiled, exec_properties)["data"], notes)
        for note in notes:
            events.emit("warning", node="CorpusGen", text=note)
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        findings = artifact_utils.get_single_instance(output_dict["findings"])
        content = exec_properties["fingerprint"] or fingerprint(data)
        given = resolve(data)
        draws = Draws(data, given)
        groups = [group for group_list in given.values() for group in group_list]
        work = _work_folder(examples.uri)
        try:
            with os_errors():
                _make_folders(work, draws)
                reports = self._convert_all(groups, data, draws, work)
                _refuse(reports, Options.of(data).bad_rows_limit)
                rows = _rows(reports, draws)
                write_findings(findings.uri, data, content, rows, reports)
                _publish(work, examples.uri, list(rows))
        except OSError as error:
            raise _disk_error(error, examples.uri, data, groups) from error
        finally:
            if fileio.exists(work):
                fileio.rmtree(work)
        examples.split_names = artifact_utils.encode_split_names(list(rows))
        examples_utils.set_payload_format(examples, example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
        if "spans" in data:  # as TFX's ExampleGen marks its examples: with the newest
            newest = data["spans"]["taken"][-1]
            examples.span, examples.version = newest["span"], newest["version"] or 0

    def _convert_all(
        self, groups: list[Group], data: Mapping[str, Any], draws: Draws, work: str
    ) -> list[Report]:
        """Converts every group; of older spans, when it is known how many rows are replayed."""
        jobs = [(i, group, draws.of(group)) for i, group in enumerate(groups)]
        old = [job for job in jobs if job[1].replay]
        self._run(first_pass, jobs, data, work)
        tallies = {index: read_tally(work, index) for index, _, _ in old}
        if old:
            new = [read_report(work, index) for index, group, _ in jobs if not group.replay]
            others = sum(report.rows.get("train", 0) for report in new)
            parts = replay.parts(tallies, others, old[0][1].replay)
            drawn = [(index, group, Replayed(split, parts[index])) for index, group, split in old]
            self._run(convert_one, drawn, data, work)
        reports = [read_report(work, index) for index, _, _ in jobs]
        for report in reports:
            report.available = sum(tallies.get(report.index, {}).values())
        return reports

    def _run(
        self, work_one: Callable[..., None], jobs: Sequence[Job], data: Mapping[str, Any], work: str
    ) -> None:
        """Runs a function on every group as a Beam pipeline; what it finds comes back as files."""
        try:
            with self._make_beam_pipeline() as pipeline:
                _ = (
                    pipeline
                    | "Groups" >> beam.Create(jobs, reshuffle=len(jobs) > 1)
                    | "Convert" >> beam.Map(work_one, data=dict(data), work=work)
                )
        except Exception as error:
            # Beam keeps an exception's text only. A disk can be too full for a report, too.
            if os.strerror(errno.ENOSPC) in str(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise


def _work_folder(uri: str) -> str:
    """A folder inside the artifact's, where an unfinished corpus cannot be taken for a whole one.

    What a killed run left there is removed first.
    """
    if fileio.isdir(uri):
        for name in fileio.listdir(uri):
            if name.startswith(_WORK):
                fileio.rmtree(os.path.join(uri, name))
    return os.path.join(uri, _WORK + uuid.uuid4().hex[:8])


def _make_folders(work: str, draws: Draws) -> None:
    for name in draws.names:
        fileio.makedirs(os.path.join(work, f"Split-{name}"))


def _refuse(reports: list[Report], limit: float) -> None:
    """Raises the one error that the reports add up to, if they do."""
    for report in reports:
        if report.failed:
            raise OSError(*report.failed)
    all_problems(reports).refuse(limit)


def _rows(reports: list[Report], draws: Draws) -> dict[str, int]:
    """The number of rows of each split; none may be empty."""
    rows: dict[str, int] = {}
    for report in reports:
        for name, count in report.rows.items():
            rows[name] = rows.get(name, 0) + count
    return checked_rows(rows, all_problems(reports), draws.usual)


def _publish(work: str, uri: str, names: list[str]) -> None:
    """Gives shards the names that TFX gives them, then moves each split into its place.

    What an attempt left that was killed goes: TFX takes every file of a split for one of examples.
    """
    for name in names:
        folder = os.path.join(work, f"Split-{name}")
        for part in fileio.listdir(folder):
            if not part.endswith(".gz"):
                fileio.remove(os.path.join(folder, part))
        parts = sorted(fileio.listdir(folder))
        for i, part in enumerate(parts):
            final = f"data_tfrecord-{i:05d}-of-{len(parts):05d}.gz"
            fileio.rename(os.path.join(folder, part), os.path.join(folder, final))
    for name in names:
        final = os.path.join(uri, f"Split-{name}")
        if fileio.exists(final):  # the same artifact written again
            fileio.rmtree(final)
        fileio.rename(os.path.join(work, f"Split-{name}"), final)


def _disk_error(
    error: OSError, uri: str, data: Mapping[str, Any], groups: list[Group]
) -> UserError:
    """What a failed write means to the user."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"the output cannot be written: {error.strerror or error}",
            where=uri,
            remedy="Check the folder's rights, or choose another one with REGARD_HOME.",
        )
    files = [path for group in groups for path in group.files]
    files += filter(os.path.isfile, map(Images(data).place, named_images(data, groups)))
    size = sum(map(os.path.getsize, files))
    folder = uri
    while folder != os.path.dirname(folder) and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    return UserError(
        f"no space left for the corpus: its files have {size:,} bytes, {free:,} are free",
        where=uri,
        remedy="Free some space, or choose a folder on another disk with REGARD_HOME: a run "
        "needs several times the size of its data.",
    )
