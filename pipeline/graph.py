"""The graph: which components there are and what they give each other."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfx.components import SchemaGen, StatisticsGen, Trainer
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2

from components.corpus_gen import CorpusGen, fingerprint
from components.errors import UserError
from components.evaluator import Evaluator
from components.example_validator import ExampleValidator
from components.files import sha256_file, source_digest
from components.predictor import Predictor
from components.preprocess import Preprocess
from components.pusher import Pusher
from components.registry import Registry
from components.serving_check import ServingCheck
from components.tokenizer_trainer import TokenizerTrainer
from components.trainer import vectors
from models import tasks
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from pipeline.config import Config

# In this process and without a server: Beam's default runner first tries to download another.
# The image is never used, but without a name for it TFX packs its own source for every node.
BEAM = [
    "--runner=FnApiRunner",
    "--direct_running_mode=in_memory",
    "--sdk_container_image=unused",
]
PREPROCESS_CODE = ("models/tasks", "components/preprocess")
TRAINER_CODE = (
    "models/attention",
    "models/decoders",
    "models/encoders",
    "models/layers",
    "models/ensemble.py",
    "models/losses.py",
    "models/metrics.py",
    "models/noise.py",
    "models/reinforce.py",
    "models/schedules.py",
    "models/search",
    "models/seq2seq.py",
    "models/serialization.py",
    "models/tasks",
    "models/vocabulary.py",
    "components/trainer",
)
LIBRARIES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")


def create_pipeline(config: Config, workspace: Workspace) -> Pipeline:
    """The TFX pipeline of one configuration.

    What TFX's cache cannot see is in its keys: the data's content as a fingerprint, and our code
    as digests.
    """
    paths = workspace.pipeline(config.name)
    task = tasks.get(config.task)
    features = json.dumps(task.text_features)
    data = {**json.loads(config.section_json("data")), "features": list(task.features)}
    checks = json.dumps(data.pop("checks"), sort_keys=True)
    content = fingerprint(data, cache=paths.root / "fingerprints.json")
    registry = Path(config.serving.registry or workspace.registry)
    word_vectors = _vectors(config)
    training = _training_key(config, content, word_vectors)
    recipe = _digest(training, config.section_json("search"))
    production, version = _production(Registry(registry), config, recipe)

    corpus = CorpusGen(
        data=json.dumps(data, sort_keys=True),
        fingerprint=content,
        code=source_digest("components/corpus_gen"),
    )
    examples = corpus.outputs["examples"]
    statistics = StatisticsGen(examples=examples, stats_options=_only(task.features))
    schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    validator = ExampleValidator(
        statistics=statistics.outputs["statistics"],
        schema=schema.outputs["schema"],
        examples=examples,
        checks=checks,
        features=features,
        code=source_digest("components/example_validator", "components/corpus_gen"),
    )
    tokenizer = TokenizerTrainer(
        examples=examples,
        config=config.section_json("tokenizer"),
        features=features,
        seed=0,  # of the sample; trainings that differ in their seed share a tokenizer
        code=source_digest("components/tokenizer_trainer"),
    )
    # It takes nothing of the validator's, but must not begin with data that has been refused.
    tokenizer.add_upstream_node(validator)
    preprocess = Preprocess(
        examples=examples,
        schema=schema.outputs["schema"],
        tokenizer=tokenizer.outputs["tokenizer"],
        custom_config={"task": config.task, "code": source_digest(*PREPROCESS_CODE)},
    )
    trainer = Trainer(
        run_fn="components.trainer.run.run_fn",
        examples=preprocess.outputs["transformed_examples"],
        transform_graph=preprocess.outputs["transform_graph"],
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={
            "task": config.task,
            **{name: json.loads(config.section_json(name)) for name in _TRAINED},
            "code": source_digest(*TRAINER_CODE),
            "vectors": word_vectors,
            "checkpoints": str(paths.checkpoints / training),
        },
    )
    model = trainer.outputs["model"]
    predictor = Predictor(
        examples=examples,
        model=model,
        task=config.task,
        production=production,
        production_version=version,
        batch_size=config.evaluation.batch_size,
    )
    predictions = predictor.outputs["predictions"]
    evaluator = Evaluator(predictions=predictions, config=config.section_json("evaluation"))
    check = ServingCheck(
        model=model,
        predictions=predictions,
        tf_serving=json.dumps(config.serving.tf_serving),
        rows=config.serving.check_rows,
    )
    pusher = Pusher(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=check.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        registry=str(registry),
        name=config.name,
        record=json.dumps(
            {
                "config": config.model_dump(mode="json"),
                "data_fingerprint": content,
                "recipe": recipe,
                "compared_with": version,
            },
            sort_keys=True,
        ),
    )
    os.makedirs(paths.root, exist_ok=True)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=str(paths.artifacts),
        components=[
            corpus,
            statistics,
            schema,
            validator,
            tokenizer,
            preprocess,
            trainer,
            predictor,
            evaluator,
            check,
            pusher,
        ],
        enable_cache=True,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(str(paths.metadata)),
        beam_pipeline_args=BEAM,
    )


_TRAINED = ("model", "training", "search")


# What the rows of the splits depend on beside the files' content.
_ROWS = ("format", "columns", "header", "split", "encoding_errors", "bad_rows")


def _training_key(config: Config, content: str, word_vectors: dict[str, str]) -> str:
    """A digest of all that the trained weights depend on: data, settings, code, libraries.

    Checkpoints live under it, so that an interrupted training finds its own and no other.
    """
    data, training = (json.loads(config.section_json(name)) for name in ("data", "training"))
    training.pop("checkpoint_seconds")
    return _digest(
        content,
        config.task,
        json.dumps([data[key] for key in _ROWS], sort_keys=True),
        config.section_json("tokenizer"),
        config.section_json("model"),
        json.dumps(word_vectors, sort_keys=True),
        json.dumps(training, sort_keys=True),
        *_decoded_by(config),
        source_digest(*PREPROCESS_CODE, *TRAINER_CODE, "components/tokenizer_trainer"),
        *(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES),
    )


def _decoded_by(config: Config) -> list[str]:
    """What decides about the weights beside, where they are judged by their decoded answers."""
    stop, search = config.training.early_stop, config.search
    if stop is None or stop.metric != "bleu":
        return []
    scorer = importlib.metadata.version("sacrebleu")
    return [f"{search.max_length_factor} {search.max_length_offset}", f"sacrebleu {scorer}"]


def _vectors(config: Config) -> dict[str, str]:
    """The content of each file of pretrained word vectors, as a digest.

    Raises:
        UserError: a file cannot be read, or begins with a vector of another depth.
    """
    pretrained = config.model.pretrained
    found = {}
    for side, path in (pretrained.files() if pretrained else {}).items():
        try:
            found[side] = sha256_file(path)
            reason = "" if any(vectors.read(path, config.model.embedding)) else "there are none"
        except OSError as error:
            reason = str(error.strerror)
        if reason:
            raise UserError(
                f"the word vectors cannot be read: {reason}",
                where=path,
                remedy=f"Give another file as model.pretrained.{side}, or null.",
            )
    return found


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()[:16]


def _production(registry: Registry, config: Config, recipe: str) -> tuple[str, str]:
    """Folder and number of the version to compare with; empty where there is none.

    A version made by this very recipe is no rival but this run's own result: the comparison it
    was pushed with stands, and a second run finds everything in the cache.
    """
    name = config.name
    if config.evaluation.production is None:
        return "", ""
    versions = {str(number) for number in registry.versions(name)}
    version = str(registry.latest(name) or "")
    while version and registry.record(name, int(version)).get("recipe") == recipe:
        version = str(registry.record(name, int(version)).get("compared_with", ""))
        version = version if version in versions else ""
    return (str(registry.path(name, int(version))), version) if version else ("", "")


def _only(features: tuple[str, ...]) -> Any:
    """Statistics of the task's columns; where a row came from is not data."""
    from tensorflow_data_validation import StatsOptions

    return StatsOptions(feature_allowlist=list(features))
