"""The graph: which components there are and what they give each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tfx.components import SchemaGen, StatisticsGen
from tfx.orchestration.pipeline import Pipeline

from components.corpus_gen import CorpusGen
from components.evaluator import Evaluator, scoring
from components.example_validator import ExampleValidator
from components.files import source_digest
from components.predictor import Predictor
from components.preprocess import Preprocess
from components.pusher import Pusher
from components.reporter import Reporter
from components.serving_check import ServingCheck
from components.tokenizer_trainer import TokenizerTrainer
from components.trainer.component import Trainer
from pipeline import keys, warm_start
from pipeline.place import Place, here

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfx.dsl.components.base.base_component import BaseComponent

    from pipeline.config import Config
    from pipeline.workspace import Workspace

# The sections that the Trainer takes.
TRAINED = ("model", "training", "search")


def create_pipeline(config: Config, workspace: Workspace) -> Pipeline:
    """The TFX pipeline of one configuration, to be run here and now."""
    return pipeline_at(here(config, workspace), config)


def pipeline_at(
    place: Place, config: Config, beside: Callable[[Preprocess], BaseComponent] | None = None
) -> Pipeline:
    """The TFX pipeline of one configuration at a place.

    What TFX's cache cannot see is in its keys: the data's content as a fingerprint, and our code
    as digests.

    Args:
        place: where it runs.
        config: the pipeline's.
        beside: makes one more node of what Preprocess gives, beside the Trainer.
    """
    task = config.description
    # When it is run next, where Beam runs its jobs, and what is searched, makes no other model.
    recorded = config.model_dump(mode="json", exclude={"schedule", "beam", "tune"})
    stored = json.dumps([feature.to_json() for feature in config.stored_features])

    corpus = CorpusGen(
        data=place.data,
        fingerprint=place.fingerprint,
        code=keys.corpus_code(),
        run_parameters=place.run_parameters,
    )
    examples = corpus.outputs["examples"]
    statistics = StatisticsGen(examples=examples, stats_options=_only(task.trained_features))
    schema = SchemaGen(statistics=statistics.outputs["statistics"], infer_feature_shape=True)
    validator = ExampleValidator(
        statistics=statistics.outputs["statistics"],
        schema=schema.outputs["schema"],
        examples=examples,
        checks=json.dumps(json.loads(config.section_json("data"))["checks"], sort_keys=True),
        features=stored,
        production=place.production_profile,
        code=source_digest(*_VALIDATED_BY),
    )
    tokenizer = None
    if task.text_features:
        tokenizer = TokenizerTrainer(
            examples=examples,
            config=_with(
                config.section_json("tokenizer"), words_digest=place.word_vectors.get("words")
            ),
            features=json.dumps(task.text_features),
            seed=0,  # of the sample; trainings that differ in their seed share a tokenizer
            code=keys.tokenizer_code(),
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
        examples=preprocess.outputs["transformed_examples"],
        transform_graph=preprocess.outputs["transform_graph"],
        custom_config={
            "task": config.task,
            **{name: json.loads(config.section_json(name)) for name in TRAINED},
            "code": keys.trainer_code(config.task),
            "vectors": place.word_vectors,
            "start": place.start,
            **place.checkpoints,
        },
        run_parameters=place.run_parameters,
    )
    model = trainer.outputs["model"]
    aligned = config.evaluation.alignment
    predictor = Predictor(
        examples=examples,
        model=model,
        features=stored,
        production=place.production,
        production_version=place.production_version,
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
        corpus=corpus.outputs["findings"],
        registry=place.registry,
        name=config.name,
        record=json.dumps(
            {
                "config": recorded,
                "data_fingerprint": place.fingerprint,
                "recipe": place.recipe,
                "compared_with": place.compared_with,
                **warm_start.record(config, place.start, place.training),
            },
            sort_keys=True,
        ),
        run_parameters=place.run_parameters,
    )
    reporter = Reporter(
        about=json.dumps(
            {
                "name": config.name,
                "task": config.task,
                "config": recorded,
                "fingerprint": place.fingerprint,
            },
            sort_keys=True,
        ),
        run_parameters=place.run_parameters,
        corpus=corpus.outputs["findings"],
        checks=validator.outputs["findings"],
        model_run=trainer.outputs["model_run"],
        predictions=predictions,
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        serving=check.outputs["blessing"],
        pushed=pusher.outputs["pushed_model"],
    )
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=place.artifacts,
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
            *([beside(preprocess)] if beside else []),
        ],
        enable_cache=place.cached,
        metadata_connection_config=place.metadata,
        beam_pipeline_args=list(place.beam),
    )


_VALIDATED_BY = (
    "components/corpus_gen",
    "components/drift.py",
    "components/example_validator",
    "components/normal_form.py",
    "components/parameters.py",
    "components/profiles.py",
    "components/registry/records.py",
    "components/registry/rival.py",
    "components/registry/versions.py",
    "components/scripts.py",
    "components/seen.py",
    "components/words.py",
    "models/tasks/features.py",
    "models/unspaced.py",
)


def _with(section: str, **more: Any) -> str:
    """A section as JSON with what its values alone do not tell."""
    return json.dumps({**json.loads(section), **more}, sort_keys=True, ensure_ascii=False)


def _only(features: tuple[str, ...]) -> Any:
    """Statistics of what is trained on; where a row came from is not data.

    Sketches count distinct texts: exactly up to 16,384, then within about a percent. TFDV's
    default, the exact count, hands every text of the corpus from worker to worker.
    """
    from tensorflow_data_validation import StatsOptions

    return StatsOptions(feature_allowlist=list(features), use_sketch_based_topk_uniques=True)
