"""The context in which a graph runs: its folders, its data, and the models that it starts from.

On one machine everything is known when the graph is built, and is part of TFX's cache keys: the
content of the data and of the word vectors, and the version in production. On a cluster
(``regard.pipeline.runners.kubeflow``) the nodes look it up themselves in each run.
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common.code_digest import remembered_digests
from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import Corpus, Span, find_files
from regard.components.data.spans import resolve_spans
from regard.components.registry.starting_models import find_ensemble, find_teachers, find_warm_start
from regard.components.registry.store import Registry
from regard.components.settings.data import SPLITS
from regard.components.tokenizer_trainer.given_models import GivenModel
from regard.core import owned_folders
from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.core.files import sha256_file
from regard.core.modules import importable
from regard.core.storage import refuse_pattern
from regard.pipeline import cache_keys, datasets
from regard.pipeline.config import Config
from regard.pipeline.metadata_store import metadata_store
from regard.pipeline.tokenizer_models import check_tokenizer_models, store_tokenizer_models
from regard.pipeline.workspace import VARIABLE, Workspace
from regard.serving.contract import PROFILE


@dataclasses.dataclass(frozen=True)
class RunFolders:
    """The folders and files of a run.

    Attributes:
        artifacts: TFX's pipeline root.
        registry: The folder of the published models.
        checkpoints: The folder of the trainings' checkpoints.
        augmentation: The folder of the finished work of models that change the train split.
        metadata: The pipeline's SQLite file of ML Metadata, unless the configuration names another
            database; None on a cluster, which has its own.
    """

    artifacts: str
    registry: str
    checkpoints: str
    augmentation: str
    metadata: str | None = None


@dataclasses.dataclass(frozen=True)
class RunData:
    """The data of a run.

    Attributes:
        corpus: The JSON of the corpus, for CorpusGen.
        fingerprint: The digest of the data; empty if only CorpusGen can compute it.
        word_vectors: The digest of each file of words, word vectors or tokenizers, by its use.
        tokenizer_model: Where copies of the files of ``tokenizer.model`` are, as in this key; None
            if the node reads the files themselves, or trains tokenizers.
    """

    corpus: str
    fingerprint: str = ""
    word_vectors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tokenizer_model: str | dict[str, str] | None = None


@dataclasses.dataclass(frozen=True)
class StartingModels:
    """The published models that a run reads.

    Attributes:
        start: The model that the training starts from, see ``find_warm_start``; may be empty.
        ensemble: The other models of the exported ensemble, see ``find_ensemble``.
        augmentation: The models that change the train split, see ``find_teachers``.
    """

    start: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ensemble: Sequence[Mapping[str, str]] = ()
    augmentation: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ProductionBaseline:
    """The version in production that the model is compared with; empty without one.

    Attributes:
        folder: The folder of the version, or of the model's versions.
        version: Its number; ``LATEST`` if the node looks it up.
        profile: The JSON of its data profile, as ExampleValidator receives it.
    """

    folder: str = ""
    version: str = ""
    profile: str = ""


@dataclasses.dataclass(frozen=True)
class ModelKeys:
    """Digests of what determines the model; empty on a cluster, where nodes compute them.

    Attributes:
        training: The key of the training, whatever model it starts from.
        checkpoint: The key of the training from its model. If code of the user's own may connect
            other data, the Trainer adds a digest of its files.
        recipe: The key of the exported model, with its search and its ensemble.
    """

    training: str = ""
    checkpoint: str = ""
    recipe: str = ""


@dataclasses.dataclass(frozen=True)
class PipelineContext:
    """What a run adds to the settings of the configuration.

    Attributes:
        folders: Where the run reads and writes.
        data: What it reads.
        models: The published models that it reads.
        production: The version that it compares its model with.
        keys: Digests of what determines the model.
        run_parameters: Values that a run on a cluster may override, by name.
        publish_anyway: Whether a model that the gate rejects is published as well.
    """

    folders: RunFolders
    data: RunData
    models: StartingModels = StartingModels()
    production: ProductionBaseline = ProductionBaseline()
    keys: ModelKeys = ModelKeys()
    run_parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    publish_anyway: bool = False

    @property
    def is_local(self) -> bool:
        """Whether the graph runs on this machine, and data and models are known already."""
        return self.folders.metadata is not None


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
    registry = Registry(config.serving.registry or workspace.registry)
    corpus = resolve_spans(config.corpus)
    fingerprints = paths.root / "fingerprints.json"
    word_vectors = cache_keys.vector_digests(config)
    data = RunData(
        corpus=json.dumps(corpus.to_json(), sort_keys=True),
        fingerprint=fingerprint(corpus, cache=fingerprints),
        word_vectors=word_vectors,
        tokenizer_model=store_tokenizer_models(config, word_vectors, paths.tokenizers),
    )
    trained = fingerprint(corpus, cache=fingerprints, splits=_trained_splits(config))
    augmentation = find_teachers(config.augmentation, registry, config.task, config.data.tag_names)
    teachers = [model["digest"] for model in augmentation.values()]
    digests = remembered_digests(paths.root / "code_digests.json")
    with importable(config.pipeline.folder), digests:
        training_key = cache_keys.training_key(config, trained, data.word_vectors, teachers)
        rewiring_key = cache_keys.rewiring_key(config)
    models = StartingModels(
        start=find_warm_start(config.training, registry, config.name, training_key),
        ensemble=find_ensemble(config.training, registry, config.task),
        augmentation=augmentation,
    )
    keys = _model_keys(config, training_key, models, rewiring_key)
    artifacts = metadata_store(config.metadata, paths).artifacts
    owned_folders.create(artifacts, owned_folders.ARTIFACTS)
    return PipelineContext(
        folders=RunFolders(
            artifacts=str(artifacts),
            registry=str(registry.root),
            checkpoints=str(paths.checkpoints),
            augmentation=str(workspace.augmentation),
            metadata=str(paths.metadata),
        ),
        data=data,
        models=models,
        production=_production_baseline(registry, config, keys.recipe),
        keys=keys,
        publish_anyway=publish_anyway,
    )


def _trained_splits(config: Config) -> Sequence[str]:
    """Return the splits that the trained weights depend on.

    The test split is decoded and evaluated, not trained on. But rows of the other splits that are
    similar to its rows may be dropped.
    """
    is_compared = {"overlap", "near_overlap"} & config.data.checks.row_changes().keys()
    return SPLITS if is_compared else ("train", "eval")


def _model_keys(
    config: Config, training_key: str, models: StartingModels, rewiring_key: str
) -> ModelKeys:
    checkpoint = cache_keys.digest(training_key, models.start.get("digest", ""))
    # Not other weights, but other outputs: the model is compared with production.
    outputs = [config.section_json("search")]
    outputs.append(json.dumps(config.serving.for_trainer(), sort_keys=True))
    outputs += [member["digest"] for member in models.ensemble]
    # Only the Trainer knows which data it is connected with, see `RunInputs.is_rewirable`.
    outputs += [rewiring_key] if rewiring_key else []
    recipe = cache_keys.digest(checkpoint, *outputs)
    return ModelKeys(training=training_key, checkpoint=checkpoint, recipe=recipe)


def check_start(config: Config, workspace: Workspace) -> dict[str, GivenModel]:
    """Check the folders that a run writes, and the registry, before anything slow starts.

    Returns:
        The models of ``tokenizer.model`` by their keys, as `check_tokenizer_models`.

    Raises:
        UserError: A folder is not writable or its path would be read as a pattern, the name
            belongs to a model of another task, a model of a warm start, of an ensemble or of the
            augmentation does not exist, a file of words, vectors, monolingual texts or a tokenizer
            cannot be used, or the shared database of ML Metadata cannot be used.
    """
    refuse_pattern(workspace.home, VARIABLE)
    registry = Registry(config.serving.registry or workspace.registry)
    refuse_pattern(registry.root, "serving.registry")
    for folder in (workspace.pipeline(config.name).root, registry.root / config.name):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
            remedy = "Set REGARD_HOME, or serving.registry for the models, to a writable folder."
            raise EnvironmentFault(f"The folder {existing} is not writable.", str(folder), remedy)
    if registry.mirror is not None:
        registry.mirror.check_writable(config.name)
    newest = registry.latest(config.name)
    task = newest and registry.record(config.name, newest).config.get("task", config.task)
    if newest and task != config.task:
        message = f"The name belongs to a model for {task} in the registry, not {config.task}."
        raise UserError(message, "name", "Choose another name, or another serving.registry.")
    with _located(config):
        find_warm_start(config.training, registry, config.name)
        find_ensemble(config.training, registry, config.task)
        find_teachers(config.augmentation, registry, config.task, config.data.tag_names)
    tokenizers = check_tokenizer_models(config)
    cache_keys.vector_digests(config)
    if config.metadata.address:
        with _located(config):
            metadata_store(config.metadata, workspace.pipeline(config.name)).check()
    return tokenizers


@contextlib.contextmanager
def _located(config: Config) -> Iterator[None]:
    """Give the errors of the block, which name a key, its file and line."""
    try:
        yield
    except UserError as error:
        where = config.locate(error.where)
        raise error.with_texts(error.message, where, error.remedy) from error


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
    corpus = config.corpus
    if spans:
        corpus = dataclasses.replace(corpus, spans=tuple(map(Span.from_json, spans)))
    try:
        cache_keys.pinned_schema(config)
        corpus = resolve_spans(corpus, notes)
        find_files(corpus)
    except UserError as error:
        root = Path(config.data.root)
        verb, _ = datasets.DATASETS.get(root.name, ("", ""))
        if not verb or root.is_dir():
            where = config.locate(error.where)
            raise error.with_texts(error.message, where, error.remedy) from error
        remedy = f"Run `regard data {verb} {root.name}`."
        where = config.locate("data.root")
        raise NotFoundError(f"The folder {root} does not exist.", where, remedy) from error
    return corpus


def _production_baseline(registry: Registry, config: Config, recipe: str) -> ProductionBaseline:
    """Return the version to compare with.

    A version of this very recipe is the result of this run: the comparison that it was published
    with still holds, and a second run finds everything in the cache.
    """
    name = config.name
    if config.evaluation.production is None:
        return ProductionBaseline()
    versions = {str(number): number for number in registry.versions(name)}
    version = registry.latest(name)
    while version is not None:
        record = registry.record(name, version)
        if record.recipe != recipe:
            folder = registry.complete(registry.path(name, version))
            return ProductionBaseline(
                folder=str(folder),
                version=str(version),
                profile=_production_profile(folder, version),
            )
        earlier = versions.get(record.compared_with or "")
        # Versions are compared with older ones; anything else might be an endless chain.
        version = earlier if earlier is not None and earlier < version else None
    return ProductionBaseline()


def _production_profile(folder: Path, version: int) -> str:
    """Return the profile of the production version's data as JSON; empty without one."""
    path = folder / PROFILE
    if not path.is_file():
        return ""
    return json.dumps({"version": str(version), "profile": str(path), "digest": sha256_file(path)})
