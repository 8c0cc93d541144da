"""CorpusGen's executor: a Beam pipeline over groups of files, then the splits get their names."""

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import apache_beam as beam
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from regard.components.common.artifact_files import ROWS, write_uri
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.common.runtime_parameters import apply_parameters
from regard.components.corpus_gen.example_writer import (
    convert_or_count,
    python_os_errors,
    read_result,
)
from regard.components.data.corpus_plan import CorpusPlan, CorpusSummary, GroupResult
from regard.components.data.fingerprints import fingerprint
from regard.components.data.group_jobs import GroupJob
from regard.components.data.row_filter import create_filter
from regard.components.data.sources import Corpus
from regard.components.data.spans import resolve_spans
from regard.core import events
from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import sha256_file
from regard.core.owned_folders import SCRATCH, mark_name

_WORK_PREFIX = ".writing-"
_MARK = mark_name(SCRATCH)


class CorpusGenExecutor(base_beam_executor.BaseBeamExecutor):
    """Writes the ``examples`` and the ``findings`` of a corpus."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Read every file; the splits appear only if the whole corpus is valid.

        Raises:
            UserError: the corpus cannot be used, or the disk is full or read-only.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        # Spans that are resolved only now produce notes that no command has shown yet.
        notes: list[str] = []
        corpus = resolve_spans(read_corpus(exec_properties), notes)
        for note in notes:
            events.emit("warning", node="CorpusGen", text=note)
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        findings = artifact_utils.get_single_instance(output_dict["findings"])
        content = exec_properties["fingerprint"] or fingerprint(corpus)
        plan = CorpusPlan(corpus)
        work = _work_folder(examples.uri)
        try:
            with python_os_errors():
                _mark(examples.uri)
                _mark(work)
                for name in plan.splits:
                    fileio.makedirs(os.path.join(work, f"Split-{name}"))
                results = self._convert_all(plan, work)
                for result in results:
                    if result.write_error:
                        raise OSError(*result.write_error)
                summary = plan.summarize(results)
                _write_findings(findings.uri, content, summary, results)
                _publish(work, examples.uri, list(summary.rows), results)
        except OSError as error:
            raise _disk_error(error, examples.uri) from error
        finally:
            if fileio.exists(work):
                fileio.rmtree(work)
        examples.split_names = artifact_utils.encode_split_names(list(summary.rows))
        examples.set_string_custom_property(ROWS, json.dumps(summary.rows))
        examples_utils.set_payload_format(examples, example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE)
        if corpus.spans:  # TFX's ExampleGen marks its examples with the newest span as well
            newest = corpus.spans[-1]
            examples.span, examples.version = newest.number, newest.version or 0

    def _convert_all(self, plan: CorpusPlan, work: str) -> list[GroupResult]:
        """Convert every group, those of replayed spans after their rows are counted."""
        rules = create_filter(plan.corpus, plan.jobs)
        options = {"corpus": plan.corpus.to_json(), "folder": work, "rules": rules}
        self._run(plan.jobs, **options)
        results = [read_result(work, job.index) for job in plan.jobs]
        if replay_jobs := plan.replay_jobs(results):
            self._run(replay_jobs, **options)
        for job in replay_jobs:
            replayable = results[job.index].replayable
            results[job.index] = replace(read_result(work, job.index), replayable=replayable)
        return results

    def _run(self, jobs: Sequence[GroupJob], **options: Any) -> None:
        """Convert groups as a Beam pipeline; its results are files."""
        try:
            with self._make_beam_pipeline() as pipeline:
                inputs = pipeline | "Groups" >> beam.Create(jobs, reshuffle=len(jobs) > 1)
                _ = inputs | "Convert" >> beam.Map(convert_or_count, **options)
        except Exception as error:
            # Beam keeps only the text of an exception. A full disk can prevent even a result.
            if os.strerror(errno.ENOSPC) in str(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise


def read_corpus(exec_properties: Mapping[str, Any]) -> Corpus:
    """Return the corpus with the parameters of this run."""
    content = json.loads(exec_properties["corpus"])
    sections = apply_parameters({"data": content["config"]}, exec_properties)
    return Corpus.from_json({**content, "config": sections["data"]})


def _work_folder(uri: str) -> str:
    """Return a folder inside the artifact where an unfinished corpus cannot look like a whole one.

    What a killed run left there is removed first.
    """
    if fileio.isdir(uri):
        for name in fileio.listdir(uri):
            folder = os.path.join(uri, name)
            if name.startswith(_WORK_PREFIX) and fileio.exists(os.path.join(folder, _MARK)):
                fileio.rmtree(folder)
    return os.path.join(uri, _WORK_PREFIX + uuid.uuid4().hex[:8])


def _mark(folder: str) -> None:
    """Create a folder with a mark that allows its removal, unless it has other content."""
    if fileio.isdir(folder) and fileio.listdir(folder):
        return
    fileio.makedirs(folder)
    write_uri(os.path.join(folder, _MARK), "")


def _write_findings(
    uri: str, content_digest: str, summary: CorpusSummary, results: Sequence[GroupResult]
) -> None:
    """Write ``corpus.json``, and warn the user of what was skipped."""
    for note in summary.notes:
        events.emit("warning", node="CorpusGen", text=note)
    problems = summary.problems
    for note in problems.format_notes():
        events.emit("note", node="CorpusGen", text=note)
    for note in problems.first_row_notes():
        events.emit("result", node="CorpusGen", text=note)
    content: dict[str, Any] = {
        "fingerprint": content_digest,
        "rows": summary.rows,
        "skipped": problems.skipped_rows,
        "first_rows": problems.first_rows(),
        "files": [{"files": result.files, "rows": result.rows} for result in results],
        "problems": {
            reason: {"count": rows.skipped_rows, "examples": list(map(asdict, rows.examples))}
            for reason, rows in {"row/skipped": problems, **problems.changes}.items()
            if rows.skipped_rows
        },
    }
    if summary.spans:
        content["spans"] = [
            {**span.to_json(), "fingerprint": _span_digest(span.span.name, results)}
            for span in summary.spans
        ]
    fileio.makedirs(uri)
    write_uri(os.path.join(uri, "corpus.json"), json.dumps(content, ensure_ascii=False, indent=1))


def _span_digest(name: str, results: Sequence[GroupResult]) -> str:
    """Return a digest of the files of a span."""
    paths = [path for result in results if result.span == name for path in result.files]
    return hashlib.sha256("\n".join(map(sha256_file, paths)).encode()).hexdigest()


def _publish(work: str, uri: str, splits: Sequence[str], results: Sequence[GroupResult]) -> None:
    """Give shards the names that TFX gives them, then move each split to its final folder.

    They are those that the workers report: a listing may lack new files on NFS, and contain files
    of killed attempts.
    """
    for name in splits:
        source, folder = (os.path.join(work, start + name) for start in ("Split-", "whole-"))
        fileio.makedirs(folder)
        shards = [
            f"part-{result.index:05d}-{i:05d}.gz"
            for result in results
            for i in range(result.shards.get(name, 0))
        ]
        for i, shard in enumerate(shards):
            if not fileio.exists(os.path.join(source, shard)):
                raise OSError(errno.ENOENT, f"{shard} is missing from {source}")
            final = f"data_tfrecord-{i:05d}-of-{len(shards):05d}.gz"
            fileio.rename(os.path.join(source, shard), os.path.join(folder, final))
    for name in splits:
        final = os.path.join(uri, f"Split-{name}")
        if fileio.exists(final):  # the same artifact is written again
            if not fileio.exists(os.path.join(uri, _MARK)):
                remedy = "Choose another folder for the outputs of CorpusGen."
                raise UserError("The folder contains rows of another program.", final, remedy)
            fileio.rmtree(final)
        fileio.rename(os.path.join(work, f"whole-{name}"), final)


def _disk_error(error: OSError, uri: str) -> UserError:
    """Return the error of a failed write for the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EnvironmentFault(
            "No space left on the disk",
            where=uri,
            remedy="Free some space, or set REGARD_HOME to a folder on another disk. A run needs "
            "several times the size of its data.",
        )
    message = f"The output cannot be written: {error.strerror or error}"
    remedy = "Check the permissions of the folder, or set REGARD_HOME to another one."
    return EnvironmentFault(message, where=uri, remedy=remedy)
