"""The graph: which components there are and what they give each other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfx.components import SchemaGen, StatisticsGen, Trainer
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2

from components.corpus_gen import CorpusGen, fingerprint
from components.evaluator import Evaluator, scoring
from components.example_validator import ExampleValidator
from components.files import sha256_file, source_digest
from components.predictor import Predictor
from components.preprocess import Preprocess
from components.pusher import Pusher
from components.registry import PROFILE, Registry
from components.reporter import Reporter
from components.serving_check import ServingCheck
from components.tokenizer_trainer import TokenizerTrainer
from pipeline import keys
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


def create_pipeline(config: Config, workspace: Workspace) -> Pipeline:
    """The TFX pipeline of one configuration.

    What TFX's cache cannot see is in its keys: the data's content as a fingerprint, and our code
    as digests.
    """
    paths = workspace.pipeline(config.name)
    task = config.description
    features = [feature.to_json() for feature in config.features]
    data = {**json.loads(config.section_json("data")), "features": features}
    checks = json.dumps(data.pop("checks"), sort_keys=True)
    content = fingerprint(data, cache=paths.root / "fingerprints.json")
    registry = Path(config.serving.registry or workspace.registry)
    word_vectors = keys.vector_files(config)
    training = keys.training_key(config, content, word_vectors)
    recipe = keys.digest(training, config.section_json("search"))
    production, version = _production(Registry(registry), config, recipe)

    corpus = CorpusGen(
        data=json.dumps(data, sort_keys=True),
        fingerprint=content,
        code=source_digest("components/corpus_gen", "models/tasks/features.py"),
    )
    examples = corpus.outputs["examples"]
    statistics = StatisticsGen(examples=examples, stats_options=_only(task.trained_features))
    schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    validator = ExampleValidator(
        statistics=statistics.outputs["statistics"],
        schema=schema.outputs["schema"],
        examples=examples,
        checks=checks,
        features=json.dumps(features),
        production=_profile(production, version),
        code=source_digest(*_VALIDATED_BY),
    )
    tokenizer = None
    if task.text_features:
        tokenizer = TokenizerTrainer(
            examples=examples,
            config=_with(config.section_json("tokenizer"), words_digest=word_vectors.get("words")),
            features=json.dumps(task.text_features),
            seed=0,  # of the sample; trainings that differ in their seed share a tokenizer
            code=source_digest("components/tokenizer_trainer"),
        )
    preprocess = Preprocess(
        examples=examples,
        schema=schema.outputs["schema"],
        tokenizer=tokenizer.outputs["tokenizer"] if tokenizer else None,
        custom_config={
            "task": config.task,
            "settings": task.preprocessing(json.loads(config.section_json("model"))),
            "code": keys.preprocess_code(config.task),
        },
    )
    # It takes nothing of the validator's, but must not begin with data that has been refused.
    (tokenizer or preprocess).add_upstream_node(validator)
    trainer = Trainer(
        run_fn="components.trainer.run.run_fn",
        examples=preprocess.outputs["transformed_examples"],
        transform_graph=preprocess.outputs["transform_graph"],
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={
            "task": config.task,
            **{name: json.loads(config.section_json(name)) for name in _TRAINED},
            "code": keys.trainer_code(config.task),
            "vectors": word_vectors,
            "checkpoints": str(paths.checkpoints / training),
        },
    )
    model = trainer.outputs["model"]
    aligned = config.evaluation.alignment
    predictor = Predictor(
        examples=examples,
        model=model,
        features=json.dumps(features),
        production=production,
        production_version=version,
        batch_size=config.evaluation.batch_size,
        aligned=aligned.heads_json() if aligned else "",
        likelihood="perplexity" in scoring.wanted_metrics(config.evaluation.model_dump()),
    )
    predictions = predictor.outputs["predictions"]
    evaluator = Evaluator(
        predictions=predictions,
        findings=validator.outputs["findings"],
        config=config.section_json("evaluation"),
    )
    check = ServingCheck(
        model=model,
        predictions=predictions,
        examples=examples,
        tf_serving=json.dumps(config.serving.tf_serving),
        rows=config.serving.check_rows,
    )
    pusher = Pusher(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=check.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        findings=validator.outputs["findings"],
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
    reporter = Reporter(
        about=json.dumps(
            {
                "name": config.name,
                "task": config.task,
                "config": config.model_dump(mode="json"),
                "fingerprint": content,
            },
            sort_keys=True,
        ),
        corpus=corpus.outputs["findings"],
        checks=validator.outputs["findings"],
        model_run=trainer.outputs["model_run"],
        predictions=predictions,
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        serving=check.outputs["blessing"],
        pushed=pusher.outputs["pushed_model"],
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
            *([tokenizer] if tokenizer else []),
            preprocess,
            trainer,
            predictor,
            evaluator,
            check,
            pusher,
            reporter,
        ],
        enable_cache=True,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(str(paths.metadata)),
        beam_pipeline_args=BEAM,
    )


_TRAINED = ("model", "training", "search")
_VALIDATED_BY = (
    "components/corpus_gen",
    "components/drift.py",
    "components/example_validator",
    "components/profiles.py",
    "components/scripts.py",
    "components/words.py",
    "models/tasks/features.py",
    "models/unspaced.py",
)


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


def _profile(production: str, version: str) -> str:
    """The profile of the data of the version in production; empty where none was kept."""
    path = Path(production, PROFILE)
    if not production or not path.is_file():
        return ""
    return json.dumps({"version": version, "profile": str(path), "digest": sha256_file(path)})


def _with(section: str, **more: Any) -> str:
    """A section as JSON with what its values alone do not tell."""
    return json.dumps({**json.loads(section), **more}, sort_keys=True, ensure_ascii=False)


def _only(features: tuple[str, ...]) -> Any:
    """Statistics of what is trained on; where a row came from is not data."""
    from tensorflow_data_validation import StatsOptions

    return StatsOptions(feature_allowlist=list(features))
