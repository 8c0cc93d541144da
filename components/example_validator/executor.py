"""ExampleValidator's executor: TFX's for the anomalies, one Beam pipeline for the rows."""

import json
import os
import pickle
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.utils.shared import Shared
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx import types
from tfx.components.example_validator import executor as tfx_executor
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_artifacts

from regard.components.common.artifact_files import (
    ROWS,
    SHARD_REMEDY,
    examples_split,
    split_shards,
    write_uri,
)
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.data.near_duplicates import NearDuplicateIndex
from regard.components.data.profiles import PROFILE_FILE, WordProfile
from regard.components.data.target_overlap import OVERLAP_FILE, overlap_to_json
from regard.components.example_validator import (
    check_results,
    drift_check,
    shard_scan,
    training_profile,
)
from regard.components.example_validator.scan_results import Outputs, combine_outputs, find_problems
from regard.components.example_validator.shard_rows import CheckCounts, Shard
from regard.components.example_validator.target_checks import (
    TargetSettings,
    find_unsuitable_metrics,
)
from regard.components.settings.data_checks import DataChecksConfig
from regard.core import events
from regard.core.errors import DataError
from regard.core.features import Feature
from regard.core.kinds import feature_from_json


class ExampleValidatorExecutor(base_beam_executor.BaseBeamExecutor):
    """Writes ``anomalies`` as TFX does, and ``findings``."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Check every row; warn or fail according to the limits of ``checks``.

        Raises:
            UserError: a check with the action ``fail`` exceeds its limit, or a metric with a
                threshold does not suit the targets.
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
        features = [feature_from_json(f) for f in json.loads(exec_properties["features"])]
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        shards = _shards(examples)
        targets = TargetSettings.from_json(exec_properties["targets"])
        counts, words = self._scan(shards, features, checks, targets, uri)
        findings, overlap = find_problems(counts, shards, features, checks, targets)
        rows: Counter[str] = Counter()
        for index, count in sorted(counts.rows.items()):  # Beam's order varies
            rows[shards[index].split] += count
        expected = json.loads(examples.get_string_custom_property(ROWS) or "{}")
        if expected and expected != rows:
            message = f"The examples have {dict(rows)} rows, but CorpusGen wrote {expected}."
            raise DataError(message, examples.uri, SHARD_REMEDY)
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
        errors = [*check_results.failures(findings), *drift_check.drift_failures(drift)]
        for error in (*errors, *find_unsuitable_metrics(counts.words, targets)):
            raise error
        if pinned and sentences:
            name = pinned.partition("\n")[0].removeprefix("# ")
            remedy = "Fix the data, or change the schema."
            raise DataError("; ".join(sentences), f"data.schema ({name})", remedy)

    def _scan(
        self,
        shards: Sequence[Shard],
        features: Sequence[Feature],
        checks: DataChecksConfig,
        targets: TargetSettings,
        uri: str,
    ) -> tuple[CheckCounts, dict[str, WordProfile]]:
        """Scan the shards in a Beam pipeline, whose results are a file for each shard."""
        folder = os.path.join(uri, f".parts-{uuid.uuid4().hex[:8]}")
        train = [shard for shard in shards if shard.split == "train"]
        others = [shard for shard in shards if shard.split != "train"]
        scan = _Scanner(features, checks, targets, folder)
        try:
            with self._make_beam_pipeline() as pipeline:
                rest = pipeline | "Others" >> beam.Create(others) | "ScanOthers" >> beam.Map(scan)
                # Train is searched for the inputs of the other splits.
                search = beam.Map(scan, others=beam.pvalue.AsList(rest))
                _ = pipeline | "Train" >> beam.Create(train) | "ScanTrain" >> search
            return combine_outputs(_read_outputs(map(scan.path, shards)))
        finally:
            # The process holds the index until another object is acquired.
            Shared().acquire(lambda: None)
            if fileio.exists(folder):
                fileio.rmtree(folder)


class _Stored(NamedTuple):
    """A pickled element of an output, in a file because memory has no room for all of them."""

    path: str
    start: int
    size: int

    def load(self) -> Any:
        with fileio.open(self.path, "rb") as file:
            file.seek(self.start)
            return pickle.loads(file.read(self.size))


class _Scanner:
    """Scans shards, and writes the outputs of each to a file; a process builds the index once."""

    def __init__(
        self,
        features: Sequence[Feature],
        checks: DataChecksConfig,
        targets: TargetSettings,
        folder: str,
    ):
        self._features, self._checks, self._targets = features, checks, targets
        self._folder = folder
        self._shared = Shared()

    def path(self, shard: Shard) -> str:
        """Return the file of a shard: name, key and size of each element, then the elements."""
        return os.path.join(self._folder, f"{shard.index:05d}")

    def __call__(self, shard: Shard, others: Sequence[str] = ()) -> str:
        """Scan a shard of train, given the files of the others, or one of the others."""

        def build() -> NearDuplicateIndex | None:
            inputs = _read_outputs(others)["inputs"]
            return shard_scan.build_index(inputs.get(None, ()), self._checks)

        index = self._shared.acquire(build) if shard.split == "train" else None
        entries, content = [], bytearray()
        outputs = shard_scan.scan_shard(shard, index, self._features, self._checks, self._targets)
        for name, key, value in outputs:
            pickled = pickle.dumps(value)
            entries.append((name, key, len(pickled)))
            content += pickled
        write_uri(self.path(shard), pickle.dumps(entries) + content)
        return self.path(shard)


def _read_outputs(paths: Iterable[str]) -> Outputs:
    """Return the outputs in files; the elements are read when they are used."""
    outputs: dict[str, dict[Any, list[_Stored]]] = defaultdict(lambda: defaultdict(list))
    for path in paths:
        with fileio.open(path, "rb") as file:
            entries, start = pickle.load(file), file.tell()
        for name, key, size in entries:
            outputs[name][key].append(_Stored(path, start, size))
            start += size
    loaded = {
        name: {key: map(_Stored.load, parts) for key, parts in by_key.items()}
        for name, by_key in outputs.items()
    }
    return defaultdict(dict, loaded)


def _shards(examples: types.Artifact) -> list[Shard]:
    shards: list[Shard] = []
    for split in artifact_utils.decode_split_names(examples.split_names):
        for path in split_shards(examples_split(examples, split)):
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
