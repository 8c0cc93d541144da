"""What Beam's workers do with a group of files: convert its rows, or count what may be replayed.

The results are files, because Beam does not return values. This module does not import TFX.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from pydantic import TypeAdapter

from regard.components.common import events
from regard.components.common.files import write_uri
from regard.components.corpus_gen.example_writer import ExampleEncoder, ShardWriter
from regard.components.data.corpus_plan import GroupJob, GroupResult, with_progress
from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.sources import Corpus

if TYPE_CHECKING:  # most corpora need no filter
    from regard.components.data.row_filter import RowFilter

_RESULT = TypeAdapter(GroupResult)


def convert_or_count(
    job: GroupJob, corpus: Mapping[str, Any], folder: str, rules: RowFilter | None = None
) -> None:
    """Convert a group, or count the rows that a replayed group may give, and save the result.

    The second reading of a replayed group, which converts it, reports the problems of its rows.

    Args:
        job: the group; a replayed one is converted if it has a threshold.
        corpus: JSON of the corpus.
        folder: where the splits and the results are written.
        rules: drops and repairs rows; None: no check does.
    """
    parsed = Corpus.from_json(corpus)
    if job.group.replay and job.threshold is None:
        result = GroupResult.of(job)
        rows = job.rows(parsed, ReadProblems(), Images.of(parsed.config), rules)
        result.replayable = job.count_replayable(rows)
    else:
        result = convert(job, parsed, folder, rules)
    write_uri(_result_path(folder, job.index), _RESULT.dump_json(result))


def convert(job: GroupJob, corpus: Corpus, folder: str, rules: RowFilter | None) -> GroupResult:
    """Write a group's rows to ``<folder>/Split-<name>/part-<index>-<shard>.gz``, in their order.

    It raises neither for invalid input nor for a full disk: the result reports them.

    Args:
        job: the group.
        corpus: the corpus.
        folder: where the folders of the splits are.
        rules: drops and repairs rows; None: no check does.
    """
    group = job.group
    images = Images.of(corpus.config, decode=True)
    result = GroupResult.of(job)
    encode = ExampleEncoder(corpus.features, group.files[0], images, group.span)
    writers = {
        name: ShardWriter(os.path.join(folder, f"Split-{name}", f"part-{job.index:05d}"))
        for name in job.splits
    }
    result.rows = dict.fromkeys(job.splits, 0)
    rows = job.rows(corpus, result.problems, images, rules)
    report = functools.partial(events.emit, "progress", node="CorpusGen")
    try:
        for line, values in with_progress(group, rows, lambda text: report(text=text)):
            name = job.assign(values)
            if name is not None:
                writers[name].write(encode(line, values))
                result.rows[name] += 1
        for name, writer in writers.items():
            writer.close()
            result.shards[name] = writer.shards
    except UnreadableFile as error:
        result.problems.unreadable.append(error.problem)
    except OSError as error:
        result.write_error = (error.errno or 0, error.strerror or str(error))
    if result.write_error or result.problems.is_fatal(corpus.config):
        _remove_shards(job, folder)
    return result


def read_result(folder: str, index: int) -> GroupResult:
    """Read the result of a group."""
    from tfx.dsl.io import fileio

    with fileio.open(_result_path(folder, index)) as file:
        return _RESULT.validate_json(file.read())


def _remove_shards(job: GroupJob, folder: str) -> None:
    """Remove what was written of a corpus that will not be used: the disk may be full."""
    for name in job.splits:
        shards = os.path.join(folder, f"Split-{name}")
        for shard in tf.io.gfile.listdir(shards):
            if shard.startswith(f"part-{job.index:05d}-"):
                tf.io.gfile.remove(os.path.join(shards, shard))


def _result_path(folder: str, index: int) -> str:
    return os.path.join(folder, f"result-{index:05d}.json")
