"""The TFX components of a pipeline: what each node takes and produces, in the order of the graph.

Their executors, which do the work, are in the packages of the nodes.
"""

from collections.abc import Mapping
from typing import Any

from tfx.proto import trainer_pb2, transform_pb2
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import (
    ExampleAnomalies,
    Examples,
    ExampleStatistics,
    InfraBlessing,
    Model,
    ModelBlessing,
    ModelEvaluation,
    ModelRun,
    PushedModel,
    Schema,
    TransformGraph,
)
from tfx.utils import json_utils

from regard.components.augmenter.executor import AugmenterExecutor
from regard.components.common.artifact_types import Findings, Predictions, Report, Tokenizer
from regard.components.common.component import Component
from regard.components.corpus_gen.driver import FingerprintDriver
from regard.components.corpus_gen.executor import CorpusGenExecutor
from regard.components.evaluator.executor import EvaluatorExecutor
from regard.components.example_validator.executor import ExampleValidatorExecutor
from regard.components.predictor.executor import PredictorExecutor
from regard.components.preprocess.executor import PreprocessExecutor
from regard.components.pusher.executor import PusherExecutor
from regard.components.reporter.executor import ReporterExecutor
from regard.components.serving_check.executor import ServingCheckExecutor
from regard.components.settings.trainer import CONFIG, RUN
from regard.components.tokenizer_trainer.executor import TokenizerTrainerExecutor
from regard.components.trainer.executor import TrainerExecutor


class CorpusGen(Component):
    """Convert files to tf.Examples in the splits train, eval and test.

    It is not one of TFX's ExampleGens, because open-source Kubeflow Pipelines never runs their
    drivers: the cache key is the fingerprint, which the caller or `FingerprintDriver` computes.

    Args:
        corpus: JSON of the ``Corpus``, with absolute paths.
        fingerprint: the digest of the files' content; empty if it is computed when the node runs.
            TFX's local runners compute it before they look for cached outputs.

    Outputs: ``examples`` (standard Examples: the features, ``file`` and ``line``) and
    ``findings`` (``corpus.json``: the fingerprint, rows of each split and span, the first row by
    feature, and what was skipped).
    """

    EXECUTOR = CorpusGenExecutor
    PARAMETERS = {"corpus": str, "fingerprint": str}
    RUN_SECTIONS = ("data",)
    OUTPUTS = {"examples": Examples, "findings": Findings}

    def __init__(self, fingerprint: str = "", **arguments: Any):
        super().__init__(fingerprint=fingerprint, **arguments)
        if not fingerprint:
            self.driver_class = FingerprintDriver


class ExampleValidator(Component):
    """Compare the statistics with the schema, as TFX does, and check the rows themselves.

    Args:
        statistics: from StatisticsGen.
        schema: from SchemaGen.
        examples: the examples of the statistics.
        checks: JSON of ``data.checks``.
        pinned_schema: a comment with the name of ``data.schema``, and its content; empty without.
        features: JSON list of the features.
        targets: JSON of ``TargetSettings``.
        production: JSON with the ``version`` in production, the path of its ``profile``, and the
            ``digest`` of that file, for the cache; or with ``latest`` as ``version`` and the folder
            of all ``versions``, of which the newest is used; empty if there is none.

    Outputs: ``anomalies`` (as TFX's) and ``findings``: ``checks.json`` (count, share and first
    examples of every check, with file and line; lengths; drift), ``profile.json`` (words and
    lengths of the training split) and ``target_overlap.json`` (hashes of references of the other
    splits that the training split contains).
    """

    EXECUTOR = ExampleValidatorExecutor
    _TEXTS = ("checks", "pinned_schema", "features", "targets", "production")
    PARAMETERS = dict.fromkeys(_TEXTS, str)
    INPUTS = {"statistics": ExampleStatistics, "schema": Schema, "examples": Examples}
    OUTPUTS = {"anomalies": ExampleAnomalies, "findings": Findings}


class Augmenter(Component):
    """Change the train split with published models; the other splits are copied.

    Each model runs as a Beam pipeline. The parts that it has finished are kept in a folder that
    outlives the run, under a key of the model, the rows and the code.

    Args:
        examples: standard Examples with a split ``train``.
        settings: JSON with the section ``augmentation`` (as JSON), the ``task``, the ``features``,
            the ``batch_size``, ``root`` and ``monolingual`` of the section ``data``, and the
            digests of these files.
        models: JSON of the result of ``find_teachers``; without models, the node looks
            them up.
        registry: the registry's folder.
        folder: the folder for finished parts.

    Outputs: ``augmented_examples``, and ``findings`` (``augmentation.json``: the models, and a
    sentence on each step).
    """

    EXECUTOR = AugmenterExecutor
    PARAMETERS = {"settings": str, "models": str, "registry": str, "folder": str}
    INPUTS = {"examples": Examples}
    OUTPUTS = {"augmented_examples": Examples, "findings": Findings}


class TokenizerTrainer(Component):
    """Train one SentencePiece model for each text feature, or one for all, on the train split.

    Args:
        examples: standard Examples with a split ``train``.
        config: the section ``tokenizer`` as JSON.
        features: the symbols of the vocabulary of each text feature, as a JSON object, in addition
            to those of ``config``.
        word_list_digest: the digest of ``tokenizer.word_list``, for the cache; empty without one.
        start: the result of ``find_warm_start`` whose tokenizers are kept, as a JSON object; on a
            cluster only the ``model`` to find. Empty: new ones are trained.
        published: the registry's folder of the pipeline's model.
        seed: the seed of the sample, which ``tokenizer.input_sentence_size`` limits.

    Outputs: ``tokenizer`` (``<feature>.model``, ``<feature>.vocab``, ``tokenizer.json``).
    """

    EXECUTOR = TokenizerTrainerExecutor
    _TEXTS = ("config", "features", "word_list_digest", "start", "published")
    PARAMETERS = {**dict.fromkeys(_TEXTS, str), "seed": int}
    INPUTS = {"examples": Examples}
    OUTPUTS = {"tokenizer": Tokenizer}


class Preprocess(Component):
    """Build the task's preprocessing as a TensorFlow graph, and transform the examples with it.

    The train split is analyzed; all splits are transformed. No statistics are computed:
    StatisticsGen has those of the text, and statistics of ids would be meaningless.

    Args:
        examples: standard Examples with a split ``train``.
        schema: their schema.
        tokenizer: from TokenizerTrainer; None for a task without text.
        custom_config: ``task``, and ``settings``, what its preprocessing depends on apart from the
            examples.
        code: the digest of the preprocessing code, for the cache.

    Outputs: ``transform_graph`` (with the tokenizer, if there is one, in its folder
    ``tokenizer``) and ``transformed_examples``.
    """

    EXECUTOR = PreprocessExecutor
    PARAMETERS = {
        "preprocessing_fn": str,
        "custom_config": str,
        "splits_config": transform_pb2.SplitsConfig,
        "force_tf_compat_v1": int,
        "disable_statistics": int,
    }
    INPUTS = {"examples": Examples, "schema": Schema}
    OPTIONAL_INPUTS = {"tokenizer": Tokenizer}
    OUTPUTS = {"transform_graph": TransformGraph, "transformed_examples": Examples}

    def __init__(self, custom_config: Mapping[str, object], **arguments: Any):
        transformed = Channel(type=Examples)
        transformed.matching_channel_name = "examples"
        super().__init__(
            preprocessing_fn="regard.components.preprocess.transform_graph.preprocessing_fn",
            custom_config=json_utils.dumps(dict(custom_config)),
            splits_config=transform_pb2.SplitsConfig(analyze=["train"]),
            force_tf_compat_v1=0,
            disable_statistics=1,
            transformed_examples=transformed,
            **arguments,
        )


class Trainer(Component):
    """Trains and exports the model with ``regard.components.trainer.run_fn``.

    Args:
        examples: the transformed examples; the model is trained on the split ``train`` and
            evaluated on ``eval``.
        transform_graph: the Transform graph, with the tokenizers.
        config: a ``TrainerConfig`` as plain JSON values.
        run: a ``RunInputs`` as plain JSON values.
        code: the digest of the code that trains, for the cache.
        run_parameters: the run-time parameters by name; None for a local run.

    Outputs: ``model`` and ``model_run``.
    """

    EXECUTOR = TrainerExecutor
    PARAMETERS = {
        "train_args": trainer_pb2.TrainArgs,
        "eval_args": trainer_pb2.EvalArgs,
        "run_fn": str,
        "custom_config": str,
    }
    RUN_SECTIONS = ("training",)
    INPUTS = {"examples": Examples, "transform_graph": TransformGraph}
    OUTPUTS = {"model": Model, "model_run": ModelRun}

    def __init__(self, config: Mapping[str, object], run: Mapping[str, object], **arguments: Any):
        super().__init__(
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            # TFX's executor, which `TrainerExecutor` extends, imports it and calls it.
            run_fn="regard.components.trainer.run_fn.run_fn",
            custom_config=json_utils.dumps({CONFIG: dict(config), RUN: dict(run)}),
            **arguments,
        )


class Predictor(Component):
    """Decodes a split once with each model, and keeps all outputs.

    A Beam pipeline runs for each model, whose workers load the SavedModel and share the batches.

    Args:
        examples: standard Examples with the features of the task.
        model: the exported model of the Trainer.
        split: the split of the examples that is decoded.
        features: a JSON list of the fields of the task's features.
        production: the folder of the version in production; empty if there is none.
        production_version: its number. With ``latest``, ``production`` is the folder of all
            versions, and the newest is chosen when the node runs.
        batch_size: the number of rows in a batch.
        reference_attention: JSON with the ``layer`` and the ``head`` whose attention for the
            reference of each row is kept; null selects the model's default. Empty: none is kept.
        reference_scores: 1 to keep the log-probability of each row's reference, otherwise 0.
    """

    EXECUTOR = PredictorExecutor
    PARAMETERS = {
        "split": str,
        "features": str,
        "production": str,
        "production_version": str,
        "batch_size": int,
        "reference_attention": str,
        "reference_scores": int,
    }
    INPUTS = {"examples": Examples, "model": Model}
    OUTPUTS = {"predictions": Predictions}

    def __init__(self, split: str = "test", **arguments: Any):
        super().__init__(split=split, **arguments)


class Evaluator(Component):
    """Computes the metrics, and blesses the model or gives the reasons against it.

    Args:
        predictions: the predictions of the Predictor.
        findings: the findings of the ExampleValidator, with the words and the overlapping
            references of the training split; None: there are no slices by unknown words or
            overlap.
        config: the ``evaluation`` section as JSON.
    """

    EXECUTOR = EvaluatorExecutor
    PARAMETERS = {"config": str}
    INPUTS = {"predictions": Predictions}
    OPTIONAL_INPUTS = {"findings": Findings}
    OUTPUTS = {"evaluation": ModelEvaluation, "blessing": ModelBlessing}


class ServingCheck(Component):
    """Checks that the exported model works alone, as in TensorFlow Serving.

    Args:
        model: the exported model of the Trainer.
        predictions: the Predictor's predictions of the model.
        examples: the examples of the predictions, which contain the images.
        tf_serving_versions: a JSON list of versions of TensorFlow Serving whose operations the
            model may use.
        rows: the number of real rows to check.
    """

    EXECUTOR = ServingCheckExecutor
    PARAMETERS = {"tf_serving_versions": str, "rows": int}
    INPUTS = {"model": Model, "predictions": Predictions, "examples": Examples}
    OUTPUTS = {"blessing": InfraBlessing}


class Pusher(Component):
    """Copies a blessed and checked model to the next version of the registry.

    Args:
        model: the exported model of the Trainer.
        model_blessing: the decision of the Evaluator.
        infra_blessing: the result of the ServingCheck.
        registry: the registry's folder.
        name: the model's name.
        record: JSON fields for the version's record, such as the configuration.
        evaluation: the metrics of the Evaluator, for the record.
        findings: the findings of the ExampleValidator; the profile of the training split is
            stored with the version.
        corpus: the findings of CorpusGen; fingerprint, rows and spans are recorded.
        publish_anyway: 1 if a model that the gate rejects is published as well.
    """

    EXECUTOR = PusherExecutor
    PARAMETERS = {"registry": str, "name": str, "record": str, "publish_anyway": int}
    RUN_SECTIONS = ("data", "training")
    INPUTS = {
        "model": Model,
        "model_blessing": ModelBlessing,
        "infra_blessing": InfraBlessing,
        "evaluation": ModelEvaluation,
        "findings": Findings,
        "corpus": Findings,
    }
    OUTPUTS = {"pushed_model": PushedModel}


class Reporter(Component):
    """Writes the report of a run, ``report.html``.

    Its inputs have the names in `run_facts.ARTIFACTS`.

    Args:
        about: JSON with ``name``, ``task``, ``config`` and the data's ``fingerprint``.
    """

    EXECUTOR = ReporterExecutor
    PARAMETERS = {"about": str}
    RUN_SECTIONS = ("data", "training")
    INPUTS = {
        "corpus": Findings,
        "checks": Findings,
        "model_run": ModelRun,
        "model": Model,
        "predictions": Predictions,
        "evaluation": ModelEvaluation,
        "blessing": ModelBlessing,
        "serving": InfraBlessing,
        "pushed": PushedModel,
    }
    OPTIONAL_INPUTS = {"augmentation": Findings}
    OUTPUTS = {"report": Report}
