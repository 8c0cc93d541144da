"""The TFX components that train, evaluate and publish a model, in the order of the graph.

An argument that is a section of the YAML file, such as ``training``, is the section's model or its
keys as plain values; None stands for the defaults. Arguments are checked when the graph is built,
and one ``UserError`` lists all problems. The executors, which do the work, are in the packages of
the nodes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.proto import trainer_pb2
from tfx.types.channel import BaseChannel
from tfx.types.standard_artifacts import (
    Examples,
    InfraBlessing,
    Model,
    ModelBlessing,
    ModelEvaluation,
    ModelRun,
    PushedModel,
    TransformGraph,
)
from tfx.utils import json_utils

from regard.components.common.artifact_types import Findings, Predictions, Report
from regard.components.common.component import Component
from regard.components.common.node_arguments import NodeArguments, Settings
from regard.components.common.node_code import evaluator_code
from regard.components.evaluator.executor import EvaluatorExecutor
from regard.components.evaluator.external_metrics import metric_specs
from regard.components.evaluator.scoring import required_metrics
from regard.components.predictor.executor import PredictorExecutor
from regard.components.pusher.executor import PusherExecutor
from regard.components.reporter.executor import ReporterExecutor
from regard.components.serving_check.executor import ServingCheckExecutor
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.serving import ServingConfig
from regard.components.settings.trainer import CONFIG, RUN, RunInputs, TrainerConfig
from regard.components.trainer.executor import RUN_FN, TrainerExecutor
from regard.components.trainer.training_key import trainer_code
from regard.core.features import Feature
from regard.core.suggestions import suggest
from regard.models.metrics import metrics_for, supports

RunParameters = Mapping[str, Any]


class Trainer(Component):
    """Train and export a model.

    Args:
        examples: the transformed examples; the model is trained on the split ``train`` and
            evaluated on ``eval``.
        transform_graph: the Transform graph, with the tokenizers.
        task: the name of the task.
        model: the section ``model``.
        training: the section ``training``.
        search: the section ``search``.
        checkpoints: where a killed training resumes; empty: a folder next to the node's outputs.
        serving: the section ``serving``, whose keys about the export are used.
        tags, protect: the sections ``data.tags`` and ``data.protect``; None: without them.
        published: the folder that models of this pipeline are published to, REGISTRY/NAME, in
            which ``training.warm_start`` and ``training.ensemble`` are found when the node runs.
        run: what our own graph knows about a run; replaces ``checkpoints`` and ``published``.
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

    def __init__(
        self,
        examples: BaseChannel,
        transform_graph: BaseChannel,
        task: str,
        model: Settings | None = None,
        training: Settings | None = None,
        search: Settings | None = None,
        checkpoints: str = "",
        serving: Settings | None = None,
        tags: Settings | None = None,
        protect: Settings | None = None,
        published: str = "",
        run: RunInputs | None = None,
        run_parameters: RunParameters | None = None,
    ):
        inputs = {"examples": examples, "transform_graph": transform_graph}
        arguments = self.check_inputs(task, **inputs)
        config = arguments.trainer_config(model, training, search, serving, tags, protect)
        if run is None and config is not None:
            run = _run_inputs(arguments, config, checkpoints, published)
        config, run = arguments.check(config), arguments.check(run)
        custom = {CONFIG: config.to_plain_values(), RUN: run.model_dump(mode="json")}
        super().__init__(
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
            # TFX's executor, which `TrainerExecutor` extends, imports it and calls it.
            run_fn=(config.training.run_fn or RUN_FN).replace(":", "."),
            custom_config=json_utils.dumps(custom),
            code=trainer_code(config),
            run_parameters=run_parameters,
            **inputs,
        )


def _run_inputs(
    arguments: NodeArguments, config: TrainerConfig, checkpoints: str, published: str
) -> RunInputs:
    """Return what a run adds to the settings; the Trainer finds models when it runs."""
    training = config.training
    if (training.warm_start or training.ensemble) and not published:
        key = "warm_start" if training.warm_start else "ensemble"
        message = "It needs the argument `published`, the folder REGISTRY/NAME of published models."
        arguments.add(("training", key), message)
    pretrained = getattr(config.model, "pretrained", None)
    files = pretrained.files() if pretrained else {}
    return RunInputs(
        checkpoints=checkpoints,
        published=published,
        vectors=arguments.digests(("model", "pretrained"), files),
    )


class Predictor(Component):
    """Decode a split once with each model, and keep all outputs.

    A Beam pipeline runs for each model, whose workers load the SavedModel and share the batches.

    Args:
        examples: standard Examples with the features of the task.
        model: the exported model of the Trainer.
        task: the name of the task.
        split: the split of the examples that is decoded.
        settings: the section ``model`` of the exported model, which limits the features of some
            tasks.
        evaluation: the section ``evaluation``: the batch size, and what metrics need.
        extra: features in addition to those of the task, for slices; a name stands for a text.
        production: the folder of the version in production; empty if there is none.
        production_version: its number. With ``latest``, ``production`` is the folder of all
            versions, and the newest is chosen when the node runs.
        symbols: strings that ``evaluation.robustness`` does not change, in addition to tags: the
            ``user_defined_symbols`` of the tokenizer.

    Outputs: ``predictions``.
    """

    EXECUTOR = PredictorExecutor
    _TEXTS = ("split", "features", "production", "production_version", "reference_attention")
    PARAMETERS = {
        **dict.fromkeys((*_TEXTS, "robustness", "symbols"), str),
        **dict.fromkeys(("batch_size", "reference_scores"), int),
    }
    INPUTS = {"examples": Examples, "model": Model}
    OUTPUTS = {"predictions": Predictions}

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        task: str,
        split: str = "test",
        settings: Settings | None = None,
        evaluation: Settings | None = None,
        extra: Sequence[Feature | str] = (),
        production: str = "",
        production_version: str = "",
        symbols: Sequence[str] = (),
    ):
        inputs = {"examples": examples, "model": model}
        arguments = self.check_inputs(task, **inputs)
        section = arguments.section("model", settings)
        config = arguments.section("evaluation", evaluation)
        arguments.check()
        alignment = config.alignment
        super().__init__(
            split=split,
            features=arguments.features_json(section, extra),
            production=production,
            production_version=production_version,
            batch_size=config.batch_size,
            # What selects the attention for the reference of each row that is kept.
            reference_attention=alignment.heads_json() if alignment else "",
            reference_scores=int("perplexity" in required_metrics(config)),
            robustness=config.robustness.to_json() if config.robustness else "",
            symbols=json.dumps(list(symbols)),
            **inputs,
        )


class Evaluator(Component):
    """Compute the metrics, and bless the model or give the reasons against it.

    Args:
        predictions: the predictions of the Predictor.
        task: the name of the task.
        evaluation: the section ``evaluation``.
        findings: the findings of the ExampleValidator, with the words and the overlapping
            references of the training split; None: there are no slices by unknown words or
            overlap.

    Outputs: ``evaluation`` and ``blessing``.
    """

    EXECUTOR = EvaluatorExecutor
    PARAMETERS = {"config": str}
    INPUTS = {"predictions": Predictions}
    OPTIONAL_INPUTS = {"findings": Findings}
    OUTPUTS = {"evaluation": ModelEvaluation, "blessing": ModelBlessing}

    def __init__(
        self,
        predictions: BaseChannel,
        task: str,
        evaluation: Settings | None = None,
        findings: BaseChannel | None = None,
    ):
        inputs = {"predictions": predictions, "findings": findings}
        arguments = self.check_inputs(task, **inputs)
        config: EvaluationConfig | None = arguments.section("evaluation", evaluation)
        if config is not None:
            kind, specs = arguments.description.output_kind, metric_specs(config)
            for name in dict.fromkeys([*config.metrics, *config.thresholds]):
                if not supports(name, kind, specs):
                    choices = suggest(name, metrics_for(kind, specs))
                    message = f"{name!r} is not a metric of the task {task}. {choices}."
                    arguments.add(("evaluation", "metrics"), message)
        config = arguments.check(config)
        super().__init__(config=config.to_json(), code=evaluator_code(config), **inputs)


class ServingCheck(Component):
    """Check that the exported model works alone, as in TensorFlow Serving.

    Args:
        model: the exported model of the Trainer.
        predictions: the Predictor's predictions of the model.
        examples: the examples of the predictions, which contain the images.
        serving: the section ``serving``: versions of TensorFlow Serving whose operations the model
            may use, and the number of real rows to check.

    Outputs: ``blessing``.
    """

    EXECUTOR = ServingCheckExecutor
    PARAMETERS = {"tf_serving_versions": str, "rows": int}
    INPUTS = {"model": Model, "predictions": Predictions, "examples": Examples}
    OUTPUTS = {"blessing": InfraBlessing}

    def __init__(
        self,
        model: BaseChannel,
        predictions: BaseChannel,
        examples: BaseChannel,
        serving: Settings | None = None,
    ):
        inputs = {"model": model, "predictions": predictions, "examples": examples}
        arguments = self.check_inputs(**inputs)
        config = arguments.parse("serving", ServingConfig, serving)
        arguments.check()
        super().__init__(
            tf_serving_versions=json.dumps(config.tf_serving_versions),
            rows=config.check_rows,
            **inputs,
        )


class Pusher(Component):
    """Copy a blessed and checked model to the next version of the registry.

    Args:
        model: the exported model of the Trainer.
        model_blessing: the decision of the Evaluator.
        registry: the registry's folder.
        name: the model's name.
        task: the name of the task.
        infra_blessing: the result of the ServingCheck; None: the model is not checked.
        evaluation: the metrics of the Evaluator, for the record.
        findings: the findings of the ExampleValidator; the profile of the training split is
            stored with the version.
        corpus: the findings of CorpusGen; fingerprint, rows and spans are recorded.
        own_blessing: a second blessing that the model needs; its property ``reason`` is reported.
        record: fields for the version's record, such as the configuration.
        publish_anyway: whether a model that the gate rejects is published as well.
        run_parameters: the run-time parameters by name; None for a local run.

    Outputs: ``pushed_model``.
    """

    EXECUTOR = PusherExecutor
    PARAMETERS = {"registry": str, "name": str, "record": str, "publish_anyway": int}
    RUN_SECTIONS = ("data", "training")
    INPUTS = {"model": Model, "model_blessing": ModelBlessing}
    OPTIONAL_INPUTS = {
        "infra_blessing": InfraBlessing,
        "evaluation": ModelEvaluation,
        "findings": Findings,
        "corpus": Findings,
        "own_blessing": ModelBlessing,
    }
    OUTPUTS = {"pushed_model": PushedModel}

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        registry: str,
        name: str,
        task: str,
        infra_blessing: BaseChannel | None = None,
        evaluation: BaseChannel | None = None,
        findings: BaseChannel | None = None,
        corpus: BaseChannel | None = None,
        own_blessing: BaseChannel | None = None,
        record: Mapping[str, Any] | None = None,
        publish_anyway: bool = False,
        run_parameters: RunParameters | None = None,
    ):
        inputs = {
            "model": model,
            "model_blessing": model_blessing,
            "infra_blessing": infra_blessing,
            "evaluation": evaluation,
            "findings": findings,
            "corpus": corpus,
            "own_blessing": own_blessing,
        }
        self.check_inputs(task, **inputs).check()
        fields = {"config": {"name": name, "task": task}, **(record or {})}
        super().__init__(
            registry=registry,
            name=name,
            record=json.dumps(fields, sort_keys=True),
            publish_anyway=int(publish_anyway),
            run_parameters=run_parameters,
            **inputs,
        )


class Reporter(Component):
    """Write the report of a run, ``report.html``.

    Args:
        name: the name of the pipeline.
        task: the name of the task.
        config: the configuration as plain values, for the report; None: it is not shown.
        fingerprint: the digest of the data.
        run_parameters: the run-time parameters by name; None for a local run.
        artifacts: ``model_run`` and ``model`` of the Trainer, ``predictions`` of the Predictor,
            ``evaluation`` and ``blessing`` of the Evaluator, ``corpus``, ``checks`` and
            ``augmentation`` (``findings`` of CorpusGen, ExampleValidator and Augmenter),
            ``serving`` (``blessing`` of the ServingCheck) and ``pushed`` (``pushed_model`` of the
            Pusher). The report omits sections without their artifact.

    Outputs: ``report``.
    """

    EXECUTOR = ReporterExecutor
    PARAMETERS = {"about": str}
    RUN_SECTIONS = ("data", "training")
    OPTIONAL_INPUTS = {
        "corpus": Findings,
        "checks": Findings,
        "augmentation": Findings,
        "model_run": ModelRun,
        "model": Model,
        "predictions": Predictions,
        "evaluation": ModelEvaluation,
        "blessing": ModelBlessing,
        "serving": InfraBlessing,
        "pushed": PushedModel,
    }
    OUTPUTS = {"report": Report}

    def __init__(
        self,
        name: str,
        task: str,
        config: Mapping[str, Any] | None = None,
        fingerprint: str = "",
        run_parameters: RunParameters | None = None,
        **artifacts: BaseChannel | None,
    ):
        self.check_inputs(task, **artifacts).check()
        names = {"name": name, "task": task}
        about = {**names, "config": config or names, "fingerprint": fingerprint}
        super().__init__(
            about=json.dumps(about, sort_keys=True), run_parameters=run_parameters, **artifacts
        )
