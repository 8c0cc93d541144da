"""ExampleValidator's work: TFX's executor for the anomalies, one Beam pipeline for the rows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx import types
from tfx.components.example_validator import executor as tfx_executor
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components import events, profiles, seen
from components.example_validator import changes, near, verdict, vocabulary, writing
from components.example_validator.repeats import compare, count_seen
from components.example_validator.rows import Shard, fetch
from components.example_validator.scan import OUTPUTS, scan
from components.example_validator.tally import Tally
from components.files import write_uri
from models.tasks.features import Feature


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
        given = json.loads(exec_properties["checks"])
        given = {name: check for name, check in given.items() if check is not None}
        checks = {name: check for name, check in given.items() if name not in changes.CHECKS}
        features = [Feature.from_json(f) for f in json.loads(exec_properties["features"])]
        shards = _shards(artifact_utils.get_single_instance(input_dict["examples"]))
        tally, words = self._count(shards, features, checks, uri)
        usual = writing.usual(tally, checks["script"]["usual"]) if "script" in checks else {}
        tally = writing.judged(tally, usual)
        known = count_seen(tally)
        refs = {
            ref
            for name, kept in tally.examples.items()
            if name in checks
            for pair in kept
            for ref in pair
            if ref is not None
        }
        judge = verdict.Judge(checks, shards, features, usual)
        found = judge.findings(tally, fetch(shards, features, refs))
        rows: dict[str, int] = {}
        for index, count in sorted(tally.rows.items()):  # Beam's order is any
            split = shards[index].split
            rows[split] = rows.get(split, 0) + count
        lengths = _lengths(tally, shards, features)
        profile = _profile(rows, words, lengths)
        drift = changes.held_against(exec_properties["production"], profile, given)
        content = {"rows": rows, "checks": found, "anomalies": anomalies, "lengths": lengths}
        if drift:
            content["drift"] = drift
        _write(os.path.join(uri, profiles.FILE), profile)
        _write(os.path.join(uri, "checks.json"), content)
        if "target_overlap" in checks:
            write_uri(os.path.join(uri, seen.FILE), seen.to_json(known))

        for text in [
            *(f"{a['split']}: {a['feature']}: {a['text']}" for a in anomalies),
            *(verdict.sentence(name, f) for name, f in found.items() if _warns(f)),
            *changes.sentences(drift),
        ]:
            events.emit("warning", node="ExampleValidator", text=text)
        verdict.refuse(found)
        changes.refuse(drift)

    def _count(
        self,
        shards: Sequence[Shard],
        features: Sequence[Feature],
        checks: Mapping[str, Mapping[str, Any]],
        uri: str,
    ) -> tuple[Tally, dict[str, dict[str, Any]]]:
        """Runs the checks as a Beam pipeline, whose results come back as two files.

        The other splits are read before the training split, in whose rows their inputs are looked
        for.
        """
        paths = [os.path.join(uri, name) for name in (".tally.json", ".words.json")]
        train = [shard for shard in shards if shard.split == "train"]
        rest = [shard for shard in shards if shard.split != "train"]
        options = {"features": list(features), "checks": dict(checks)}
        with self._make_beam_pipeline() as pipeline:
            scanned = []
            inputs: Any = []
            for name, part in (("Others", rest), ("Train", train)):
                scanned.append(
                    pipeline
                    | f"{name}Shards" >> beam.Create(part)
                    | f"Scan{name}"
                    >> beam.FlatMap(scan, others=inputs, **options).with_outputs(
                        *OUTPUTS, main="tallies"
                    )
                )
                inputs = beam.pvalue.AsList(scanned[0].inputs)
            others, trained = scanned
            repeats = (
                (others.packed, trained.packed)
                | "Packed" >> beam.Flatten()
                | "Meet" >> beam.GroupByKey()
                | "Compare" >> beam.MapTuple(compare)
            )
            nearly = (
                trained.near
                | "Nearest" >> beam.CombineGlobally(near.joined)
                | "Near" >> beam.Map(near.tallied)
            )
            _ = (
                (others.tallies, trained.tallies, repeats, nearly)
                | "All" >> beam.Flatten()
                | "Total" >> beam.CombineGlobally(Tally.total)
                | "Save" >> beam.Map(lambda tally: write_uri(paths[0], tally.to_json()))
            )
            _ = (
                trained.words
                | "Buckets" >> beam.GroupByKey()
                | "Sum" >> beam.MapTuple(vocabulary.summed)
                | "Features" >> beam.GroupByKey()
                | "Join" >> beam.MapTuple(vocabulary.joined)
                | "Vocabulary" >> beam.combiners.ToDict()
                | "SaveWords" >> beam.Map(lambda words: write_uri(paths[1], json.dumps(words)))
            )
        texts = []
        for path in paths:
            with fileio.open(path) as file:
                texts.append(file.read())
            fileio.remove(path)
        return Tally.from_json(texts[0]), json.loads(texts[1])


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


def _lengths(
    tally: Tally, shards: Sequence[Shard], features: Sequence[Feature]
) -> dict[str, dict[str, Any]]:
    """The lengths of each feature that has some, by split."""
    found = {}
    for feature in features:
        if feature.name not in tally.lengths:
            continue
        splits: dict[str, list[int]] = {}
        for index, counts in sorted(tally.lengths[feature.name].items()):
            split = shards[index].split
            sums = splits.setdefault(split, [0] * len(counts))
            splits[split] = [a + b for a, b in zip(sums, counts, strict=True)]
        bounds = list(profiles.BOUNDS)
        found[feature.name] = {"unit": profiles.unit(feature), "bounds": bounds, "splits": splits}
    return found


def _profile(
    rows: Mapping[str, int],
    words: Mapping[str, Mapping[str, Any]],
    lengths: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """What is kept of the training split, to hold later data against it."""
    features = {}
    for name, found in lengths.items():
        counts = found["splits"].get("train", [0] * (len(found["bounds"]) + 1))
        told = {"unit": found["unit"], "bounds": found["bounds"], "counts": counts}
        features[name] = {**words.get(name, {}), "lengths": told}
    return {"rows": rows.get("train", 0), "features": features}


def _warns(finding: Mapping[str, Any]) -> bool:
    """Whether it is over a limit that only warns, or may be over it where nobody looked."""
    if finding["exceeded"]:
        return finding["action"] == "warn"
    return "capped" in finding


def _write(uri: str, content: Any) -> None:
    write_uri(uri, json.dumps(content, ensure_ascii=False, indent=1))
