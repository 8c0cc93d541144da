"""ExampleValidator's executor: TFX's for the anomalies, one Beam pipeline for the rows."""

import json
import os
import pickle
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.utils.shared import Shared
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx import types
from tfx.components.example_validator import executor as tfx_executor
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_artifacts

from regard.components.common import events
from regard.components.common.component import Artifacts, Properties
from regard.components.common.errors import UserError
from regard.components.common.files import ROWS, SHARD_REMEDY, split_shards, write_uri
from regard.components.data.near_duplicates import Hits, NearDuplicateIndex
from regard.components.data.profiles import PROFILE_FILE, WordProfile
from regard.components.data.target_overlap import OVERLAP_FILE, overlap_to_json
from regard.components.data.text_checks import usual_scripts
from regard.components.example_validator import (
    check_results,
    drift_check,
    duplicates,
    row_checks,
    training_profile,
)
from regard.components.example_validator.shard_rows import (
    CheckCounts,
    Shard,
    read_referenced_rows,
)
from regard.components.settings.data_checks import DataChecksConfig
from regard.models.tasks.description import Feature


class ExampleValidatorExecutor(base_beam_executor.BaseBeamExecutor):
    """Writes ``anomalies`` as TFX does, and ``findings``."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Check every row; warn or fail according to the limits of ``checks``.

        Raises:
            UserError: a check with the action ``fail`` exceeds its limit.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        uri = artifact_utils.get_single_uri(output_dict["findings"])
        schema, pinned = input_dict["schema"], exec_properties["pinned_schema"]
        if pinned:
            schema = [standard_artifacts.Schema()]
            schema[0].uri = os.path.join(uri, "pinned_schema")
            fileio.makedirs(schema[0].uri)
            write_uri(os.path.join(schema[0].uri, "schema.pbtxt"), pinned)
        # It fills the artifact; its return value repeats it.
        tfx_executor.Executor().Do(
            {"statistics": input_dict["statistics"], "schema": schema},
            {"anomalies": output_dict["anomalies"]},
            {},
        )
        anomalies = _anomalies(artifact_utils.get_single_instance(output_dict["anomalies"]))

        fileio.makedirs(uri)
        checks = DataChecksConfig.model_validate_json(exec_properties["checks"])
        features = [Feature(**f) for f in json.loads(exec_properties["features"])]
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        shards = _shards(examples)
        counts, words = self._scan(shards, features, checks, uri)
        usual = usual_scripts(counts.letters)
        counts = row_checks.count_unusual_scripts(counts, usual)
        overlap = duplicates.count_target_overlap(counts)
        builder = check_results.FindingBuilder(checks, shards, features, usual)
        refs = builder.example_references(counts)
        findings = builder.findings(counts, read_referenced_rows(shards, features, refs))
        rows: Counter[str] = Counter()
        for index, count in sorted(counts.rows.items()):  # Beam's order varies
            rows[shards[index].split] += count
        expected = json.loads(examples.get_string_custom_property(ROWS) or "{}")
        if expected and expected != rows:
            message = f"The examples have {dict(rows)} rows, but CorpusGen wrote {expected}."
            raise UserError(message, examples.uri, SHARD_REMEDY)
        lengths = training_profile.length_histograms(counts, shards, features)
        profile = training_profile.train_profile(rows["train"], words, lengths)
        drift = drift_check.check_drift(exec_properties["production"], profile, checks)
        content = {"rows": rows, "checks": findings, "anomalies": anomalies, "lengths": lengths}
        if drift:
            content["drift"] = drift
        _write(os.path.join(uri, PROFILE_FILE), profile)
        _write(os.path.join(uri, "checks.json"), content)
        if checks.target_overlap:
            write_uri(os.path.join(uri, OVERLAP_FILE), overlap_to_json(overlap))

        sentences = [f"{a['split']}: {a['feature']}: {a['text']}" for a in anomalies]
        for text in [
            *sentences,
            *check_results.check_warnings(findings),
            *drift_check.drift_warnings(drift),
        ]:
            events.emit("warning", node="ExampleValidator", text=text)
        for error in (*check_results.failures(findings), *drift_check.drift_failures(drift)):
            raise error
        if pinned and sentences:
            name = pinned.partition("\n")[0].removeprefix("# ")
            remedy = "Fix the data, or change the schema."
            raise UserError("; ".join(sentences), f"data.schema ({name})", remedy)

    def _scan(
        self,
        shards: Sequence[Shard],
        features: Sequence[Feature],
        checks: DataChecksConfig,
        uri: str,
    ) -> tuple[CheckCounts, dict[str, WordProfile]]:
        """Run the checks as a Beam pipeline, whose results are two files.

        The other splits are read before the training split, which is searched for their inputs.
        """
        folder = os.path.join(uri, f".parts-{uuid.uuid4().hex[:8]}")
        paths = [os.path.join(folder, name) for name in ("counts.json", "words.json")]
        train = [shard for shard in shards if shard.split == "train"]
        rest = [shard for shard in shards if shard.split != "train"]
        scan = _ScanDoFn(list(features), checks, folder)
        try:
            with self._make_beam_pipeline() as pipeline:
                outputs = []
                inputs: Any = []
                for name, part in (("Others", rest), ("Train", train)):
                    outputs.append(
                        pipeline
                        | f"{name}Shards" >> beam.Create(part)
                        | f"Scan{name}"
                        >> beam.ParDo(scan, others=inputs).with_outputs(
                            *row_checks.OUTPUTS, main="counts"
                        )
                    )
                    inputs = beam.pvalue.AsList(outputs[0].inputs)
                others, trained = outputs
                exact = (
                    (others.packed, trained.packed)
                    | "Packed" >> beam.Flatten()
                    | "GroupByHash" >> beam.GroupByKey()
                    | "FindDuplicates" >> _map_stored(duplicates.find_duplicates)
                )
                near = (
                    trained.near
                    | "Hits" >> beam.GroupByKey()
                    | "CountHits" >> _map_stored(_count_hits)
                )
                _ = (
                    (others.counts, trained.counts, exact, near)
                    | "AllCounts" >> beam.Flatten()
                    | "Total" >> beam.CombineGlobally(CheckCounts.total)
                    | "SaveCounts" >> beam.Map(lambda counts: write_uri(paths[0], counts.to_json()))
                )
                _ = (
                    trained.words
                    | "WordBuckets" >> beam.GroupByKey()
                    | "SumBuckets" >> _map_stored(training_profile.sum_bucket)
                    | "WordFeatures" >> beam.GroupByKey()
                    | "JoinBuckets" >> beam.MapTuple(training_profile.join_buckets)
                    | "Words" >> beam.combiners.ToDict()
                    | "SaveWords" >> beam.Map(lambda words: write_uri(paths[1], json.dumps(words)))
                )
            texts = [_read(path) for path in paths]
        finally:
            # The process holds the index until another object is acquired.
            Shared().acquire(lambda: None)
            if fileio.exists(folder):
                fileio.rmtree(folder)
        return CheckCounts.from_json(texts[0]), json.loads(texts[1])


def _read(path: str, start: int = 0, size: int = -1) -> bytes:
    with fileio.open(path, "rb") as file:
        file.seek(start)
        return bytes(file.read(size))


class _Stored(NamedTuple):
    """A pickled value in a file, because local runners hold all elements in memory."""

    path: str
    start: int
    size: int

    def load(self) -> Any:
        return pickle.loads(_read(*self))


class _ScanDoFn(beam.DoFn):
    """Scans shards. All outputs but the counts go to files; a process builds the index once."""

    def __init__(self, features: Sequence[Feature], checks: DataChecksConfig, folder: str):
        self._features, self._checks, self._folder = features, checks, folder
        self._shared = Shared()

    def process(self, shard: Shard, others: Sequence[tuple[None, _Stored]]) -> Iterator[Any]:
        def build() -> NearDuplicateIndex | None:
            return row_checks.build_index((stored.load() for _, stored in others), self._checks)

        index = self._shared.acquire(build) if shard.split == "train" else None
        # Another attempt at the same shard has its own file.
        path, content = os.path.join(self._folder, uuid.uuid4().hex), bytearray()
        outputs: list[Any] = []
        for name, value in row_checks.scan_shard(shard, index, self._features, self._checks):
            if name == "counts":
                outputs.append(value)
                continue
            key, value = value if name in ("packed", "words") else (None, value)
            pickled = pickle.dumps(value)
            stored = _Stored(path, len(content), len(pickled))
            outputs.append(beam.pvalue.TaggedOutput(name, (key, stored)))
            content += pickled
        write_uri(path, bytes(content))
        yield from outputs


def _map_stored(function: Callable[[Any, Iterable[Any]], Any]) -> beam.PTransform:
    """Apply a function to each key and its stored values, loaded one after another."""
    return beam.MapTuple(lambda key, values: function(key, (stored.load() for stored in values)))


def _count_hits(_: None, hits: Iterable[Hits]) -> CheckCounts:
    return duplicates.count_near_overlap(duplicates.merge_hits(hits))


def _shards(examples: types.Artifact) -> list[Shard]:
    shards: list[Shard] = []
    for split in artifact_utils.decode_split_names(examples.split_names):
        for path in split_shards(artifact_utils.get_split_uri([examples], split)):
            shards.append(Shard(len(shards), split, path))
    return shards


def _anomalies(artifact: types.Artifact) -> list[dict[str, str]]:
    """Return TFDV's anomalies of every split as plain data."""
    anomalies = []
    for split in artifact_utils.decode_split_names(artifact.split_names):
        folder = artifact_utils.get_split_uri([artifact], split)
        with fileio.open(os.path.join(folder, tfx_executor.DEFAULT_FILE_NAME), "rb") as file:
            proto = anomalies_pb2.Anomalies.FromString(file.read())
        for feature, info in sorted(proto.anomaly_info.items()):
            anomalies.append({"split": split, "feature": feature, "text": info.description})
        if proto.HasField("dataset_anomaly_info"):
            text = proto.dataset_anomaly_info.description
            anomalies.append({"split": split, "feature": "(dataset)", "text": text})
    return anomalies


def _write(uri: str, content: Mapping[str, Any]) -> None:
    write_uri(uri, json.dumps(content, ensure_ascii=False, indent=1))
