"""The place where a graph runs: what the graph has to know of it, and when that is known.

On this machine everything is known while the graph is made, and is a part of TFX's cache keys: the
content of the data, of the files of words and vectors, and the version in production. On a cluster
(``pipeline.kubeflow.place``) the nodes look for themselves, each time they run.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.corpus_gen import fingerprint
from components.corpus_gen.spans import settled
from components.files import sha256_file
from components.registry import PROFILE, Registry
from components.registry.rival import LATEST
from pipeline import keys, warm_start

if TYPE_CHECKING:
    from pipeline.config import Config
    from pipeline.workspace import Workspace


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a graph runs.

    Attributes:
        artifacts: TFX's pipeline root.
        registry: the folder of the served models.
        data: what CorpusGen takes.
        checkpoints: what the Trainer is told of its checkpoints' folder.
        beam: arguments of Beam.
        cached: whether a node whose inputs are the same is left out.
        metadata: the connection to ML Metadata; None where somebody else keeps it.
        fingerprint: of the data; empty where only CorpusGen can take it.
        word_vectors: the digests of the files of words and vectors.
        production: as ``Predictor`` takes it.
        production_version: as ``Predictor`` takes it.
        production_profile: of the data of that version, as ``ExampleValidator`` takes it.
        start: the model that the training starts from, as `warm_start.find` gives it; else empty.
        training: what the training is known by, whatever it starts from; see `warm_start.record`.
        recipe: a digest of all that makes the model; empty where it is not known.
        run_parameters: what a run may set anew, by name.
    """

    artifacts: str
    registry: str
    data: str
    checkpoints: Mapping[str, Any]
    beam: Sequence[str]
    cached: bool = True
    metadata: Any = None
    fingerprint: str = ""
    word_vectors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    production: str = ""
    production_version: str = ""
    production_profile: str = ""
    start: Mapping[str, str] = dataclasses.field(default_factory=dict)
    training: str = ""
    recipe: str = ""
    run_parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def compared_with(self) -> str:
        """The version to compare with; empty where there is none, or only a node knows it."""
        return "" if self.production_version == LATEST else self.production_version


def here(config: Config, workspace: Workspace) -> Place:
    """This machine, with everything looked up; makes the pipeline's folder.

    Raises:
        UserError: a file of data or of words is not there.
    """
    from tfx.orchestration import metadata

    paths = workspace.pipeline(config.name)
    data = settled(corpus_data(config))
    content = fingerprint(data, cache=paths.root / "fingerprints.json")
    word_vectors = keys.vector_files(config)
    registry = Path(config.serving.registry or workspace.registry)
    own = keys.training_key(config, content, word_vectors)
    start = warm_start.find(config, Registry(registry), own)
    training = keys.digest(own, start.get("digest", ""))  # whatever it is called
    recipe = keys.digest(training, config.section_json("search"))
    production, version = _production(Registry(registry), config, recipe)
    os.makedirs(paths.root, exist_ok=True)
    return Place(
        artifacts=str(paths.artifacts),
        registry=str(registry),
        data=json.dumps(data, sort_keys=True),
        checkpoints={"checkpoints": str(paths.checkpoints / training)},
        beam=config.beam.arguments(),
        metadata=metadata.sqlite_metadata_connection_config(str(paths.metadata)),
        fingerprint=content,
        word_vectors=word_vectors,
        production=production,
        production_version=version,
        production_profile=_profile(production, version),
        start=start,
        training=own,
        recipe=recipe,
    )


def corpus_data(config: Config) -> dict[str, Any]:
    """The section ``data`` as CorpusGen takes it: with the task's features, without the checks."""
    data = json.loads(config.section_json("data"))
    del data["checks"]
    data["features"] = [feature.to_json() for feature in config.features]
    return data


def _production(registry: Registry, config: Config, recipe: str) -> tuple[str, str]:
    """Folder and number of the version to compare with; empty where there is none.

    A version made by this very recipe is no rival but this run's own result: the comparison it
    was pushed with stands, and a second run finds everything in the cache.
    """
    name = config.name
    if config.evaluation.production is None:
        return "", ""
    versions = {str(number): number for number in registry.versions(name)}
    version = registry.latest(name)
    while version is not None:
        record = registry.record(name, version)
        if record.get("recipe") != recipe:
            return str(registry.path(name, version)), str(version)
        before = versions.get(record.get("compared_with") or "")
        # A version was compared with an older one; anything else is no lineage, and has no end.
        version = before if before is not None and before < version else None
    return "", ""


def _profile(production: str, version: str) -> str:
    """The profile of the data of the version in production; empty where none was kept."""
    path = Path(production, PROFILE)
    if not production or not path.is_file():
        return ""
    return json.dumps({"version": version, "profile": str(path), "digest": sha256_file(path)})
