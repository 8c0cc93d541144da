"""The context in which a graph runs: its folders, its data, and the models that it starts from.

On one machine everything is known when the graph is built, and is part of TFX's cache keys: the
content of the data and of the word vectors, and the version in production. On a cluster
(``regard.pipeline.runners.kubeflow``) the nodes look it up themselves in each run.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import Corpus, Span, find_files
from regard.components.data.spans import resolve_spans
from regard.components.registry.starting_models import find_ensemble, find_teachers, find_warm_start
from regard.components.registry.store import Registry
from regard.components.settings.data import SPLITS
from regard.core import owned_folders
from regard.core.errors import UserError
from regard.core.files import sha256_file
from regard.core.storage import refuse_pattern
from regard.pipeline import cache_keys, datasets
from regard.pipeline.config import Config
from regard.pipeline.workspace import VARIABLE, Workspace
from regard.serving.contract import PROFILE


@dataclasses.dataclass(frozen=True)
class PipelineContext:
    """What a graph needs to know about the place where it runs.

    Attributes:
        pipeline_root: TFX's pipeline root.
        registry: The folder of the published models.
        corpus: The JSON of the corpus, for CorpusGen.
        checkpoints: The parameters of the Trainer for its checkpoints.
        beam_args: Beam's command line arguments.
        enable_cache: Whether TFX reuses the outputs of finished nodes.
        metadata: The SQLite file of ML Metadata; None if the runner has its own.
        fingerprint: The digest of the data; empty if only CorpusGen can compute it.
        word_vectors: The digest of each file of words or word vectors, by its use.
        production: The folder of the version in production, or of its versions.
        production_version: Its number; ``LATEST`` if the node looks it up; empty without one.
        production_profile: The JSON of its data profile, as ExampleValidator receives it.
        start: The model that the training starts from, see ``find_warm_start``; may be empty.
        ensemble: The other models of the exported ensemble, see ``find_ensemble``.
        augmentation: The models that change the train split, see ``find_teachers``.
        augmentation_folder: Where their finished work is stored.
        training_key: The key of the training, whatever model it starts from.
        recipe: A digest of everything that determines the model; empty if it is not known.
        run_parameters: Values that a run may override, by name.
        publish_anyway: Whether a model that the gate rejects is published as well.
    """

    pipeline_root: str
    registry: str
    corpus: str
    checkpoints: Mapping[str, str]
    beam_args: Sequence[str]
    enable_cache: bool = True
    metadata: Any = None
    fingerprint: str = ""
    word_vectors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    production: str = ""
    production_version: str = ""
    production_profile: str = ""
    start: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ensemble: Sequence[Mapping[str, str]] = ()
    augmentation: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    augmentation_folder: str = ""
    training_key: str = ""
    recipe: str = ""
    run_parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    publish_anyway: bool = False


def local_context(
    config: Config, workspace: Workspace, publish_anyway: bool = False
) -> PipelineContext:
    """Return the context of this machine, and create the pipeline's folder.

    Args:
        config: The configuration.
        workspace: The folder of pipelines and registry.
        publish_anyway: Whether a model that the gate rejects is published as well.

    Raises:
        UserError: A file of data or of word vectors is missing.
    """
    paths = workspace.pipeline(config.name)
    corpus = resolve_spans(config.corpus)
    content = fingerprint(corpus, cache=paths.root / "fingerprints.json")
    word_vectors = cache_keys.vector_digests(config)
    registry = Registry(config.serving.registry or workspace.registry)
    # Another test split is decoded and evaluated, not trained on.
    # Unless rows that are similar to test rows are dropped.
    is_compared = {"overlap", "near_overlap"} & config.data.checks.row_changes().keys()
    splits = SPLITS if is_compared else ("train", "eval")
    trained = fingerprint(corpus, cache=paths.root / "fingerprints.json", splits=splits)
    augmentation = find_teachers(config.augmentation, registry, config.task)
    models = [model["digest"] for model in augmentation.values()]
    training_key = cache_keys.training_key(config, trained, word_vectors, models)
    start = find_warm_start(config.training, registry, config.name, training_key)
    ensemble = find_ensemble(config.training, registry, config.task)
    with_start = cache_keys.digest(training_key, start.get("digest", ""))
    # The same weights, but other outputs: the model is compared with production.
    serving = [config.serving.quantization, "sentences" * config.serving.split_sentences]
    members = [*filter(None, serving), *(member["digest"] for member in ensemble)]
    recipe = cache_keys.digest(with_start, config.section_json("search"), *members)
    production, version = _production_baseline(registry, config, recipe)
    owned_folders.create(paths.artifacts, owned_folders.ARTIFACTS)
    return PipelineContext(
        pipeline_root=str(paths.artifacts),
        registry=str(registry.root),
        corpus=json.dumps(corpus.to_json(), sort_keys=True),
        checkpoints={"checkpoints": str(paths.checkpoints), "checkpoint_key": with_start},
        beam_args=config.beam.arguments(),
        metadata=str(paths.metadata),
        fingerprint=content,
        word_vectors=word_vectors,
        production=production,
        production_version=version,
        production_profile=_production_profile(production, version),
        start=start,
        ensemble=ensemble,
        augmentation=augmentation,
        augmentation_folder=str(workspace.augmentation),
        training_key=training_key,
        recipe=recipe,
        publish_anyway=publish_anyway,
    )


def check_start(config: Config, workspace: Workspace) -> None:
    """Check the folders that a run writes, and the registry, before anything slow starts.

    Raises:
        UserError: A folder is not writable or its path would be read as a pattern, the name
            belongs to a model of another task, a model of a warm start, of an ensemble or of the
            augmentation does not exist, or a file of word vectors or of monolingual texts cannot
            be read.
    """
    refuse_pattern(workspace.home, VARIABLE)
    registry = Registry(config.serving.registry or workspace.registry)
    refuse_pattern(registry.root, "serving.registry")
    for folder in (workspace.pipeline(config.name).root, registry.root / config.name):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
            remedy = "Set REGARD_HOME, or serving.registry for the models, to a writable folder."
            raise UserError(f"The folder {existing} is not writable.", str(folder), remedy)
    if registry.mirror is not None:
        registry.mirror.check_writable(config.name)
    newest = registry.latest(config.name)
    task = newest and registry.record(config.name, newest).config.get("task", config.task)
    if newest and task != config.task:
        message = f"The name belongs to a model for {task} in the registry, not {config.task}."
        raise UserError(message, "name", "Choose another name, or another serving.registry.")
    find_warm_start(config.training, registry, config.name)
    find_ensemble(config.training, registry, config.task)
    find_teachers(config.augmentation, registry, config.task)
    cache_keys.vector_digests(config)


def resolve_data(
    config: Config, notes: list[str] | None = None, spans: Sequence[Mapping[str, Any]] | None = None
) -> Corpus:
    """Return the corpus of a configuration with the spans of the run; every file exists.

    Args:
        config: The configuration.
        notes: Receives a sentence for each span that is skipped.
        spans: The spans of an earlier run; None: the spans that are available now.

    Raises:
        UserError: A file is missing. The remedy names the command that downloads or generates it.
    """
    cache_keys.pinned_schema(config)
    corpus = config.corpus
    if spans:
        corpus = dataclasses.replace(corpus, spans=tuple(map(Span.from_json, spans)))
    try:
        corpus = resolve_spans(corpus, notes)
        find_files(corpus)
    except UserError as error:
        root = Path(config.data.root)
        verb, _ = datasets.DATASETS.get(root.name, ("", ""))
        if not verb or root.is_dir():
            raise
        remedy = f"Run `regard data {verb} {root.name}`."
        raise UserError(f"The folder {root} does not exist.", "data.root", remedy) from error
    return corpus


def _production_baseline(registry: Registry, config: Config, recipe: str) -> tuple[str, str]:
    """Return folder and number of the version to compare with; empty without one.

    A version of this very recipe is the result of this run: the comparison that it was published
    with still holds, and a second run finds everything in the cache.
    """
    name = config.name
    if config.evaluation.production is None:
        return "", ""
    versions = {str(number): number for number in registry.versions(name)}
    version = registry.latest(name)
    while version is not None:
        record = registry.record(name, version)
        if record.recipe != recipe:
            return str(registry.complete(registry.path(name, version))), str(version)
        earlier = versions.get(record.compared_with or "")
        # Versions are compared with older ones; anything else might be an endless chain.
        version = earlier if earlier is not None and earlier < version else None
    return "", ""


def _production_profile(production: str, version: str) -> str:
    """Return the profile of the production version's data as JSON; empty without one."""
    path = Path(production, PROFILE)
    if not production or not path.is_file():
        return ""
    return json.dumps({"version": version, "profile": str(path), "digest": sha256_file(path)})
