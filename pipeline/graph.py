"""The graph: the components of a pipeline, and what each of them receives."""

import json
import os
from pathlib import Path

from pydantic import JsonValue
from tensorflow_data_validation import StatsOptions
from tfx.components import SchemaGen, StatisticsGen
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.pipeline import Pipeline
from tfx.types.channel import BaseChannel

from regard.components import data_nodes, nodes
from regard.components.registry.store import LATEST
from regard.components.settings.data import SPLITS
from regard.components.settings.trainer import RunInputs
from regard.core import modules
from regard.pipeline import cache_keys
from regard.pipeline.config import Config
from regard.pipeline.context import PipelineContext, local_context
from regard.pipeline.metadata_store import connection_config
from regard.pipeline.own_nodes import Extra, connect_own_nodes
from regard.pipeline.tokenizer_models import feature_digests
from regard.pipeline.workspace import Workspace


def build_pipeline(
    config: Config,
    context: PipelineContext | None = None,
    extra: Extra | None = None,
) -> Pipeline:
    """Return the TFX pipeline of a configuration.

    The parameters of the nodes include what TFX's cache does not see: the content of the data, as a
    fingerprint, and the code, as digests. The user's own modules stay importable in this process.

    Args:
        config: The configuration.
        context: What this run adds to the configuration; None: a run on this machine in the
            workspace of ``REGARD_HOME``.
        extra: Receives all nodes by name, those of ``pipeline.nodes`` too, and returns more
            components. It may connect nodes, for example
            ``nodes["Pusher"].inputs["own_blessing"] = gate.outputs["blessing"]``.

    Raises:
        UserError: A node of the user's own cannot be imported, or does not fit.
    """
    modules.add_folder(config.pipeline.folder)
    if context is None:
        context = local_context(config, Workspace.from_environment())
    corpus = _corpus_gen(context, config)
    examples = corpus.outputs["examples"]
    statistics = _statistics_gen(config, examples)
    schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    validator = _example_validator(context, config, examples, statistics, schema)
    augmenter = None
    train_examples = examples
    if config.augmentation is not None:
        augmenter = _augmenter(context, config, examples)
        augmenter.add_upstream_node(validator)
        train_examples = augmenter.outputs["augmented_examples"]
    tokenizer = None
    if config.description.text_features:
        tokenizer = _tokenizer_trainer(context, config, train_examples)
    preprocess = _preprocess(config, train_examples, schema, tokenizer)
    # It reads no output of the validator, but must not start with rejected data.
    (tokenizer or preprocess).add_upstream_node(validator)
    is_rewirable = extra is not None or config.pipeline.extra is not None
    trainer = _trainer(context, config, preprocess, is_rewirable)
    predictor = _predictor(context, config, examples, trainer)
    evaluator = _evaluator(config, predictor, validator)
    check = _serving_check(config, examples, trainer, predictor)
    pusher = _pusher(context, config, corpus, validator, trainer, evaluator, check)
    reporter = _reporter(
        context,
        config,
        corpus=corpus.outputs["findings"],
        checks=validator.outputs["findings"],
        augmentation=augmenter.outputs["findings"] if augmenter else None,
        model_run=trainer.outputs["model_run"],
        model=trainer.outputs["model"],
        predictions=predictor.outputs["predictions"],
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        serving=check.outputs["blessing"],
        pushed=pusher.outputs["pushed_model"],
    )
    before = (corpus, statistics, schema, validator, augmenter, tokenizer, preprocess)
    after = (trainer, predictor, evaluator, check, pusher, reporter)
    components = [node for node in (*before, *after) if node is not None]
    return _assemble(context, config, [*components, *connect_own_nodes(config, components, extra)])


def _assemble(context: PipelineContext, config: Config, components: list[BaseNode]) -> Pipeline:
    connection = None
    if context.folders.metadata is not None:
        connection = connection_config(config.metadata, Path(context.folders.metadata))
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=context.folders.artifacts,
        components=components,
        enable_cache=context.is_local,
        metadata_connection_config=connection,
        beam_pipeline_args=list(config.beam.arguments()),
    )


def _corpus_gen(context: PipelineContext, config: Config) -> data_nodes.CorpusGen:
    return data_nodes.CorpusGen(
        data=context.data.corpus,
        task=config.task,
        fingerprint=context.data.fingerprint,
        run_parameters=context.run_parameters,
    )


def _statistics_gen(config: Config, examples: BaseChannel) -> StatisticsGen:
    guidance = config.training.guided_alignment
    columns = [guidance.links if guidance else None, config.data.tag_feature]
    trained = [*config.description.trained_features, *filter(None, columns)]
    # Sketches count distinct texts: exactly up to 16,384, then within about one percent. TFDV's
    # default, the exact count, moves every text of the corpus between workers.
    options = StatsOptions(feature_allowlist=trained, use_sketch_based_topk_uniques=True)
    return StatisticsGen(examples=examples, stats_options=options)


def _example_validator(
    context: PipelineContext,
    config: Config,
    examples: BaseChannel,
    statistics: StatisticsGen,
    schema: SchemaGen,
) -> data_nodes.ExampleValidator:
    return data_nodes.ExampleValidator(
        statistics=statistics.outputs["statistics"],
        schema=schema.outputs["schema"],
        examples=examples,
        task=config.task,
        checks=config.data.checks,
        model=config.model,
        tokenizer=config.tokenizer,
        evaluation=config.evaluation,
        extra=config.extra_features,
        pinned_schema=cache_keys.pinned_schema(config),
        production=context.production.profile,
    )


def _augmenter(
    context: PipelineContext, config: Config, examples: BaseChannel
) -> data_nodes.Augmenter:
    settings = {
        **config.model_dump(mode="json", include={"task", "augmentation"}),
        **config.data.model_dump(include={"root", "monolingual", "encoding"}),
        "features": [feature.to_json() for feature in config.stored_features],
        "batch_size": config.evaluation.batch_size,
        "digests": dict(context.data.word_vectors),  # also of the monolingual texts
    }
    return data_nodes.Augmenter(
        examples=examples,
        settings=json.dumps(settings, sort_keys=True),
        models=json.dumps(context.models.augmentation, sort_keys=True),
        registry=context.folders.registry,
        folder=context.folders.augmentation,
    )


def _tokenizer_trainer(
    context: PipelineContext, config: Config, examples: BaseChannel
) -> data_nodes.TokenizerTrainer:
    warm_start, noise = config.training.warm_start, config.training.noise
    start: dict[str, str] = {}
    if warm_start and warm_start.keep_tokenizer:
        # On a cluster, the node finds the model.
        start = dict(context.models.start) if context.is_local else {"model": warm_start.model}
    tokenizer = config.trained_tokenizer
    if tokenizer is not None and context.data.tokenizer_model is not None:
        copies = {"model": context.data.tokenizer_model}
        tokenizer = tokenizer.model_copy(update=copies)
    return data_nodes.TokenizerTrainer(
        examples=examples,
        task=config.task,
        tokenizer=tokenizer,
        tags=config.data.tags,
        protect=config.data.protect,
        word_list_digest=context.data.word_vectors.get(cache_keys.WORD_LIST, ""),
        model_digests=feature_digests(config, context.data.word_vectors),
        start=start,
        published=_published_folder(context, config) if start else "",
        noise=noise,
    )


def _preprocess(
    config: Config,
    examples: BaseChannel,
    schema: SchemaGen,
    tokenizer: data_nodes.TokenizerTrainer | None,
) -> data_nodes.Preprocess:
    return data_nodes.Preprocess(
        examples=examples,
        schema=schema.outputs["schema"],
        task=config.task,
        tokenizer=tokenizer.outputs["tokenizer"] if tokenizer else None,
        model=config.model,
        training=config.training,
        splits=SPLITS,
        tags=config.data.tags,
        protect=config.data.protect,
    )


def _trainer(
    context: PipelineContext, config: Config, preprocess: data_nodes.Preprocess, is_rewirable: bool
) -> nodes.Trainer:
    run = {
        "vectors": context.data.word_vectors,
        "start": context.models.start,
        "ensemble": context.models.ensemble,
        "checkpoints": context.folders.checkpoints,
        "is_rewirable": is_rewirable,
    }
    if context.is_local:
        run["checkpoint_key"] = context.keys.checkpoint
    else:  # the node finds the models, and computes the key
        run["published"] = _published_folder(context, config)
    return nodes.Trainer(
        examples=preprocess.outputs["transformed_examples"],
        transform_graph=preprocess.outputs["transform_graph"],
        task=config.task,
        model=config.model,
        training=config.training,
        search=config.search,
        serving=config.serving,
        tags=config.data.tags,
        protect=config.data.protect,
        run=RunInputs.model_validate(run),
        run_parameters=context.run_parameters,
    )


def _predictor(
    context: PipelineContext, config: Config, examples: BaseChannel, trainer: nodes.Trainer
) -> nodes.Predictor:
    return nodes.Predictor(
        examples=examples,
        model=trainer.outputs["model"],
        task=config.task,
        settings=config.model,
        evaluation=config.evaluation,
        extra=config.extra_features,
        production=context.production.folder,
        production_version=context.production.version,
        symbols=config.tokenizer.user_defined_symbols if config.tokenizer else (),
    )


def _evaluator(
    config: Config, predictor: nodes.Predictor, validator: data_nodes.ExampleValidator
) -> nodes.Evaluator:
    return nodes.Evaluator(
        predictions=predictor.outputs["predictions"],
        task=config.task,
        evaluation=config.evaluation,
        findings=validator.outputs["findings"],
    )


def _serving_check(
    config: Config, examples: BaseChannel, trainer: nodes.Trainer, predictor: nodes.Predictor
) -> nodes.ServingCheck:
    return nodes.ServingCheck(
        model=trainer.outputs["model"],
        predictions=predictor.outputs["predictions"],
        examples=examples,
        serving=config.serving,
    )


def _pusher(
    context: PipelineContext,
    config: Config,
    corpus: data_nodes.CorpusGen,
    validator: data_nodes.ExampleValidator,
    trainer: nodes.Trainer,
    evaluator: nodes.Evaluator,
    check: nodes.ServingCheck,
) -> nodes.Pusher:
    version = context.production.version
    record = {
        "config": _published_config(config),
        "data_fingerprint": context.data.fingerprint,
        "recipe": context.keys.recipe,
        # On a cluster, only the node knows its number.
        "compared_with": "" if version == LATEST else version,
    }
    if config.training.warm_start:
        start = dict(context.models.start)
        record["warm_start"] = {"start": start, "training": context.keys.training}
    return nodes.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=check.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        findings=validator.outputs["findings"],
        corpus=corpus.outputs["findings"],
        registry=context.folders.registry,
        name=config.name,
        task=config.task,
        record=record,
        publish_anyway=context.publish_anyway,
        run_parameters=context.run_parameters,
    )


def _reporter(
    context: PipelineContext, config: Config, **artifacts: BaseChannel | None
) -> nodes.Reporter:
    return nodes.Reporter(
        name=config.name,
        task=config.task,
        config=_published_config(config),
        fingerprint=context.data.fingerprint,
        run_parameters=context.run_parameters,
        **artifacts,
    )


def _published_config(config: Config) -> dict[str, JsonValue]:
    """Return the configuration without the sections that do not change the model."""
    excluded = {"schedule", "beam", "tune", "tracking", "metadata"}
    if config.pipeline.extra is None:  # nodes alone cannot change the connections of Regard's
        excluded.add("pipeline")
    return config.recorded(exclude=excluded)


def _published_folder(context: PipelineContext, config: Config) -> str:
    """Return the folder in the registry that the models of this pipeline are pushed to."""
    return os.path.join(context.folders.registry, config.name)
