"""The graph: the components of a pipeline, and what each of them receives."""

import json
import os
from collections.abc import Callable

from pydantic import JsonValue
from tensorflow_data_validation import StatsOptions
from tfx.components import SchemaGen, StatisticsGen
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline

from regard.components import nodes
from regard.components.evaluator.scoring import required_metrics
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.registry.store import LATEST
from regard.components.trainer.training_key import trainer_code
from regard.models.tags import user_symbols
from regard.pipeline import cache_keys
from regard.pipeline.config import Config
from regard.pipeline.context import PipelineContext


def trainer_sections(config: Config) -> dict[str, JsonValue]:
    """Return the task and the sections that the Trainer receives, as plain values."""
    sections = config.model_dump(mode="json", include={"task", "model", "training", "search"})
    serving = config.serving
    options = {"split_sentences": serving.split_sentences, "int8": serving.quantization == "int8"}
    temperature = getattr(config.data.tags, "temperature", 1.0)
    return {**sections, **options, "tags": config.data.tag_names, "tag_temperature": temperature}


def build_pipeline(
    context: PipelineContext,
    config: Config,
    extra_node: Callable[[nodes.Preprocess], BaseComponent] | None = None,
) -> Pipeline:
    """Return the TFX pipeline of a configuration in a context.

    The parameters of the nodes include what TFX's cache does not see: the content of the data, as a
    fingerprint, and our code, as digests.

    Args:
        context: Where the pipeline runs.
        config: The configuration.
        extra_node: Creates an additional node from Preprocess, whose outputs it reads.
    """
    task = config.description
    # The schedule, Beam and the search do not change the model.
    recorded = config.recorded(exclude={"schedule", "beam", "tune", "tracking"})
    stored = json.dumps([feature.to_json() for feature in config.stored_features])

    corpus = nodes.CorpusGen(
        corpus=context.corpus,
        fingerprint=context.fingerprint,
        run_parameters=context.run_parameters,
    )
    examples = corpus.outputs["examples"]
    # Sketches count distinct texts: exactly up to 16,384, then within about one percent. TFDV's
    # default, the exact count, moves every text of the corpus between workers.
    guidance = config.training.guided_alignment
    columns = [guidance.links if guidance else None, config.data.tag_feature]
    trained = [*task.trained_features, *filter(None, columns)]
    symbols: dict[str, list[str]] = {name: [] for name in task.text_features}
    if config.data.tags:
        tags = user_symbols(config.data.tag_names, config.tokenizer.type)
        symbols[task.text_features[0]] = tags
    options = StatsOptions(feature_allowlist=trained, use_sketch_based_topk_uniques=True)
    statistics = StatisticsGen(examples=examples, stats_options=options)
    schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    validator = nodes.ExampleValidator(
        statistics=statistics.outputs["statistics"],
        schema=schema.outputs["schema"],
        examples=examples,
        checks=config.data.checks.to_json(),
        pinned_schema=cache_keys.pinned_schema(config),
        features=stored,
        targets=TargetSettings.from_sections(config.tokenizer, config.evaluation).to_json(),
        production=context.production_profile,
    )
    augmenter, train_examples = None, examples
    if config.augmentation is not None:
        settings = {
            **config.model_dump(mode="json", include={"task", "augmentation"}),
            **config.data.model_dump(include={"root", "monolingual", "encoding"}),
            "features": json.loads(stored),
            "batch_size": config.evaluation.batch_size,
            "digests": dict(context.word_vectors),  # also of the monolingual texts
        }
        augmenter = nodes.Augmenter(
            examples=examples,
            settings=json.dumps(settings, sort_keys=True),
            models=json.dumps(context.augmentation, sort_keys=True),
            registry=context.registry,
            folder=context.augmentation_folder,
        )
        augmenter.add_upstream_node(validator)
        train_examples = augmenter.outputs["augmented_examples"]
    tokenizer, warm = None, config.training.warm_start
    start: dict[str, str] = {}
    if warm and warm.keep_tokenizer:  # on a cluster the node finds the model
        start = dict(context.start) if context.training_key else {"model": warm.model}
    if task.text_features:
        tokenizer = nodes.TokenizerTrainer(
            examples=train_examples,
            config=config.tokenizer_json,
            word_list_digest=context.word_vectors.get(cache_keys.WORD_LIST, ""),
            features=json.dumps(symbols),
            start=json.dumps(start, sort_keys=True),
            published=os.path.join(context.registry, config.name) if start else "",
            seed=0,  # trainings with different seeds share a tokenizer
        )
    preprocess = nodes.Preprocess(
        examples=train_examples,
        schema=schema.outputs["schema"],
        tokenizer=tokenizer.outputs["tokenizer"] if tokenizer else None,
        custom_config={
            "task": config.task,
            "settings": task.preprocessing_settings(
                config.model, config.training, config.data
            ).model_dump(mode="json"),
        },
        code=cache_keys.preprocess_code(config.task),
    )
    # It reads no output of the validator, but must not start with rejected data.
    (tokenizer or preprocess).add_upstream_node(validator)
    trainer = nodes.Trainer(
        examples=preprocess.outputs["transformed_examples"],
        transform_graph=preprocess.outputs["transform_graph"],
        custom_config={
            **trainer_sections(config),
            "vectors": context.word_vectors,
            "start": context.start,
            "ensemble": context.ensemble,
            **context.checkpoints,
        },
        code=trainer_code(config),
        run_parameters=context.run_parameters,
    )
    model = trainer.outputs["model"]
    alignment = config.evaluation.alignment
    predictor = nodes.Predictor(
        examples=examples,
        model=model,
        features=stored,
        targets=TargetSettings.from_sections(config.tokenizer, config.evaluation).to_json(),
        production=context.production,
        production_version=context.production_version,
        batch_size=config.evaluation.batch_size,
        reference_attention=alignment.heads_json() if alignment else "",
        reference_scores=int("perplexity" in required_metrics(config.evaluation)),
    )
    predictions = predictor.outputs["predictions"]
    evaluator = nodes.Evaluator(
        predictions=predictions,
        findings=validator.outputs["findings"],
        config=config.section_json("evaluation"),
        code=cache_keys.evaluator_code(config),
    )
    check = nodes.ServingCheck(
        model=model,
        predictions=predictions,
        examples=examples,
        tf_serving_versions=json.dumps(config.serving.tf_serving_versions),
        rows=config.serving.check_rows,
    )
    version = context.production_version  # on a cluster, only the node knows its number
    warm_start = {"start": dict(context.start), "training": context.training_key}
    pusher = nodes.Pusher(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=check.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        findings=validator.outputs["findings"],
        corpus=corpus.outputs["findings"],
        registry=context.registry,
        name=config.name,
        record=json.dumps(
            {
                "config": recorded,
                "data_fingerprint": context.fingerprint,
                "recipe": context.recipe,
                "compared_with": "" if version == LATEST else version,
                **({"warm_start": warm_start} if config.training.warm_start else {}),
            },
            sort_keys=True,
        ),
        publish_anyway=int(context.publish_anyway),
        run_parameters=context.run_parameters,
    )
    reporter = nodes.Reporter(
        about=json.dumps(
            {
                "name": config.name,
                "task": config.task,
                "config": recorded,
                "fingerprint": context.fingerprint,
            },
            sort_keys=True,
        ),
        run_parameters=context.run_parameters,
        corpus=corpus.outputs["findings"],
        checks=validator.outputs["findings"],
        augmentation=augmenter.outputs["findings"] if augmenter else None,
        model_run=trainer.outputs["model_run"],
        model=trainer.outputs["model"],
        predictions=predictions,
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        serving=check.outputs["blessing"],
        pushed=pusher.outputs["pushed_model"],
    )
    extra = extra_node(preprocess) if extra_node else None
    before = (corpus, statistics, schema, validator, augmenter, tokenizer, preprocess)
    after = (trainer, predictor, evaluator, check, pusher, reporter, extra)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=context.pipeline_root,
        components=[node for node in (*before, *after) if node is not None],
        enable_cache=context.enable_cache,
        metadata_connection_config=context.metadata
        and metadata.sqlite_metadata_connection_config(context.metadata),
        beam_pipeline_args=list(context.beam_args),
    )
