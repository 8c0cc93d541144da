"""ExampleValidator's work: TFX's executor for the anomalies, one Beam pipeline for the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import apache_beam as beam
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx import types
from tfx.components.example_validator import executor as tfx_executor
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components import events
from components.example_validator.repeats import Packer, compare, content
from components.example_validator.rows import Shard, fetch, find, read
from components.example_validator.tally import Tally, reference
from components.example_validator.verdict import findings, refuse, sentence
from components.files import write_uri
from models.tasks.features import Feature

_ROW_CHECKS = ("empty_side", "length_ratio", "too_long")
_REPEATS = ("duplicates", "overlap")


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes ``anomalies`` as TFX does, and ``findings``."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Looks at every row; warns or refuses by the limits of ``checks``.

        Raises:
            UserError: a check whose action is ``fail`` found more than its limit.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        # It fills the artifact it is given; what it returns says the same once more.
        tfx_executor.Executor().Do(
            {name: input_dict[name] for name in ("statistics", "schema")},
            {"anomalies": output_dict["anomalies"]},
            {},
        )
        anomalies = _anomalies(artifact_utils.get_single_instance(output_dict["anomalies"]))

        uri = artifact_utils.get_single_uri(output_dict["findings"])
        fileio.makedirs(uri)
        checks = {
            name: check
            for name, check in json.loads(exec_properties["checks"]).items()
            if check is not None and name in (*_ROW_CHECKS, *_REPEATS)
        }
        features = [Feature.from_json(f) for f in json.loads(exec_properties["features"])]
        shards = _shards(artifact_utils.get_single_instance(input_dict["examples"]))
        tally = self._count(shards, features, checks, uri)
        refs = {
            ref
            for name, kept in tally.examples.items()
            if name in checks
            for pair in kept
            for ref in pair
            if ref is not None
        }
        found = findings(tally, checks, shards, fetch(shards, features, refs))
        rows: dict[str, int] = {}
        for index, count in tally.rows.items():
            split = shards[index].split
            rows[split] = rows.get(split, 0) + count
        content = {"rows": rows, "checks": found, "anomalies": anomalies}
        write_uri(
            os.path.join(uri, "checks.json"), json.dumps(content, ensure_ascii=False, indent=1)
        )

        for text in [
            *(f"{a['split']}: {a['feature']}: {a['text']}" for a in anomalies),
            *(sentence(n, f) for n, f in found.items() if f["exceeded"] and f["action"] == "warn"),
        ]:
            events.emit("warning", node="ExampleValidator", text=text)
        refuse(found)

    def _count(
        self,
        shards: Sequence[Shard],
        features: Sequence[Feature],
        checks: Mapping[str, Mapping[str, Any]],
        uri: str,
    ) -> Tally:
        """Runs the checks as a Beam pipeline, whose one result comes back as a file."""
        path = os.path.join(uri, ".tally.json")
        with self._make_beam_pipeline() as pipeline:
            scanned = (
                pipeline
                | "Shards" >> beam.Create(list(shards))
                | "Scan"
                >> beam.FlatMap(_scan, features=list(features), checks=dict(checks)).with_outputs(
                    "packed", main="tallies"
                )
            )
            repeats = (
                scanned.packed
                | "Meet" >> beam.GroupByKey()
                | "Compare" >> beam.MapTuple(lambda _, packed: compare(packed))
            )
            _ = (
                (scanned.tallies, repeats)
                | "Both" >> beam.Flatten()
                | "Total" >> beam.CombineGlobally(Tally.total)
                | "Save" >> beam.Map(lambda tally: write_uri(path, json.dumps(asdict(tally))))
            )
        with fileio.open(path) as file:
            content = json.load(file)
        fileio.remove(path)
        return Tally(
            _int_keys(content["rows"]),
            {name: _int_keys(by_shard) for name, by_shard in content["counts"].items()},
            {name: [(r, o) for r, o in kept] for name, kept in content["examples"].items()},
        )


def _scan(
    shard: Shard, features: list[Feature], checks: Mapping[str, Mapping[str, Any]]
) -> Iterator[Any]:
    """One shard's tally, and its packed hashes on the output ``packed``."""
    tally = Tally()
    packer = Packer(shard.split == "train")
    repeats = any(name in checks for name in _REPEATS)
    sides = [i for i, feature in enumerate(features) if feature.tokenized]
    inputs = [i for i, feature in enumerate(features) if feature.role == "input"]
    learned = [i for i, feature in enumerate(features) if feature.role != "extra"]
    count = 0
    for count, row in enumerate(read(shard.path, features), 1):
        ref = reference(shard.index, count - 1)
        for name in find([row.values[i] for i in sides], checks):
            tally.add(name, ref)
        if repeats:
            contents = [content(values) for values in row.values]
            whole = [contents[i] for i in learned]
            for packed in packer.add(ref, [contents[i] for i in inputs], whole):
                yield beam.pvalue.TaggedOutput("packed", packed)
    for packed in packer.flush():
        yield beam.pvalue.TaggedOutput("packed", packed)
    tally.rows[shard.index] = count
    yield tally


def _shards(examples: types.Artifact) -> list[Shard]:
    shards: list[Shard] = []
    for split in artifact_utils.decode_split_names(examples.split_names):
        for pattern in examples_utils.get_split_file_patterns([examples], split):
            shards += [
                Shard(len(shards) + i, split, path)
                for i, path in enumerate(sorted(fileio.glob(pattern)))
            ]
    return shards


def _anomalies(artifact: types.Artifact) -> list[dict[str, str]]:
    """TFDV's anomalies of every split, as plain data."""
    found = []
    for split in artifact_utils.decode_split_names(artifact.split_names):
        folder = artifact_utils.get_split_uri([artifact], split)
        with fileio.open(os.path.join(folder, tfx_executor.DEFAULT_FILE_NAME), "rb") as file:
            proto = anomalies_pb2.Anomalies.FromString(file.read())
        for feature, info in sorted(proto.anomaly_info.items()):
            found.append({"split": split, "feature": feature, "text": info.description})
        if proto.HasField("dataset_anomaly_info"):
            text = proto.dataset_anomaly_info.description
            found.append({"split": split, "feature": "(dataset)", "text": text})
    return found


def _int_keys(counts: Mapping[str, int]) -> dict[int, int]:
    return {int(key): count for key, count in counts.items()}
