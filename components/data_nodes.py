"""The TFX components that prepare data, in the order of the graph.

An argument that is a section of the YAML file, such as ``training``, is the section's model or its
keys as plain values; None stands for the defaults. Arguments are checked when the graph is built,
and one ``UserError`` lists all problems. The executors, which do the work, are in the packages of
the nodes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.proto import transform_pb2
from tfx.types.channel import BaseChannel, Channel
from tfx.types.standard_artifacts import (
    ExampleAnomalies,
    Examples,
    ExampleStatistics,
    Schema,
    TransformGraph,
)
from tfx.utils import json_utils

from regard.components.augmenter.executor import AugmenterExecutor
from regard.components.common.artifact_types import Findings, Tokenizer
from regard.components.common.component import Component
from regard.components.common.node_arguments import NodeArguments, Settings
from regard.components.common.node_code import preprocess_code
from regard.components.corpus_gen.driver import FingerprintDriver
from regard.components.corpus_gen.executor import CorpusGenExecutor
from regard.components.data.config_rules import validate_data
from regard.components.data.sources import Corpus, extra_features
from regard.components.example_validator.executor import ExampleValidatorExecutor
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.preprocess.executor import PreprocessExecutor
from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from regard.components.settings.data_section import checks_class, data_class
from regard.components.settings.tags import TagsConfig
from regard.components.settings.task_keys import find_inapplicable
from regard.components.settings.tokenizer import feature_symbols
from regard.components.tokenizer_trainer.executor import TokenizerTrainerExecutor
from regard.core.features import Feature
from regard.core.text_noise import noisy_features
from regard.models.settings.protect import ProtectConfig
from regard.models.settings.text_noise import TextNoiseConfig


class CorpusGen(Component):
    """Convert files to tf.Examples in the splits train, eval and test.

    It is not one of TFX's ExampleGens, because open-source Kubeflow Pipelines never runs their
    drivers: the cache key is the fingerprint, which the caller or `FingerprintDriver` computes.

    Args:
        data: the section ``data``, or the JSON of a ``Corpus``, whose spans may be resolved.
        task: the name of the task.
        model: the section ``model``, which limits the features of some tasks.
        fingerprint: the digest of the files' content; empty if it is computed when the node runs.
            TFX's local runners compute it before they look for cached outputs.
        run_parameters: the run-time parameters by name; None for a local run.

    Outputs: ``examples`` (standard Examples: the features, ``file`` and ``line``) and
    ``findings`` (``corpus.json``: the fingerprint, rows of each split and span, the first row by
    feature, and what was skipped).
    """

    EXECUTOR = CorpusGenExecutor
    PARAMETERS = {"corpus": str, "fingerprint": str}
    RUN_SECTIONS = ("data",)
    OUTPUTS = {"examples": Examples, "findings": Findings}

    def __init__(
        self,
        data: Settings | str,
        task: str,
        model: Settings | None = None,
        fingerprint: str = "",
        run_parameters: Mapping[str, Any] | None = None,
    ):
        corpus = data if isinstance(data, str) else _corpus_json(data, task, model)
        super().__init__(corpus=corpus, fingerprint=fingerprint, run_parameters=run_parameters)
        if not fingerprint:
            self.driver_class = FingerprintDriver


def _corpus_json(data: Settings, task: str, model: Settings | None) -> str:
    """Return the corpus of a section ``data`` as JSON."""
    arguments = CorpusGen.check_inputs(task)
    description, network = arguments.description, arguments.section("model", model)
    own = data_class(description) if description else DataConfig
    config = arguments.parse("data", type(data) if isinstance(data, DataConfig) else own, data)
    arguments.check()
    corpus = Corpus(config, (*description.row_features(network), *extra_features(config)))
    unused = find_inapplicable(task, {"data": config})
    for problem in (*unused, *validate_data(config, corpus.features)):
        arguments.add(problem.path, problem.message)
    arguments.check()
    return json.dumps(corpus.to_json(), sort_keys=True)


class ExampleValidator(Component):
    """Compare the statistics with the schema, as TFX does, and check the rows themselves.

    Args:
        examples: the examples of the statistics.
        statistics: from StatisticsGen.
        schema: from SchemaGen.
        task: the name of the task.
        checks: the section ``data.checks``.
        model: the section ``model``, which limits the features of some tasks.
        tokenizer: the section ``tokenizer``, whose normalization the checks apply.
        evaluation: the section ``evaluation``, whose metrics must suit the targets.
        extra: features in addition to those of the task; a name stands for a text.
        pinned_schema: a comment with the name of ``data.schema``, and its content; empty without.
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

    def __init__(
        self,
        examples: BaseChannel,
        statistics: BaseChannel,
        schema: BaseChannel,
        task: str,
        checks: Settings | None = None,
        model: Settings | None = None,
        tokenizer: Settings | None = None,
        evaluation: Settings | None = None,
        extra: Sequence[Feature | str] = (),
        pinned_schema: str = "",
        production: str = "",
    ):
        inputs = {"examples": examples, "statistics": statistics, "schema": schema}
        arguments = self.check_inputs(task, **inputs)
        description, network = arguments.description, arguments.section("model", model)
        own = checks_class(description) if description else DataChecksConfig
        kind = type(checks) if isinstance(checks, DataChecksConfig) else own
        rules = arguments.parse("checks", kind, checks)
        texts = arguments.section("tokenizer", tokenizer)
        metrics = arguments.section("evaluation", evaluation)
        arguments.check()
        super().__init__(
            checks=rules.to_json(),
            pinned_schema=pinned_schema,
            features=arguments.features_json(network, extra),
            targets=TargetSettings.from_sections(texts, metrics).to_json(),
            production=production,
            **inputs,
        )


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

    With ``tokenizer.model``, the node reads models instead, and measures their coverage.

    Args:
        examples: standard Examples.
        task: the name of the task.
        tokenizer: the section ``tokenizer``.
        tags: the section ``data.tags``, whose tags are tokens; None: no tags.
        protect: the section ``data.protect``, whose symbols are tokens; None: no protected spans.
        word_list_digest: the digest of ``tokenizer.word_list``; None: it is computed.
        model_digests: the digest of the file of ``tokenizer.model`` of each text feature, which
            the node compares; empty: it does not. None: they are computed.
        start: the result of ``find_warm_start`` whose tokenizers are kept; on a cluster only the
            ``model`` to find. None: new ones are trained.
        published: the registry's folder of the pipeline's model, for ``start``.
        noise: the section ``training.noise``, whose changes the sample receives, too; None: none.
        seed: the seed of the sample, which ``tokenizer.input_sentence_size`` limits.
        splits: the splits to train on.

    Outputs: ``tokenizer`` (``<feature>.model``, ``<feature>.vocab``, ``tokenizer.json``).
    """

    EXECUTOR = TokenizerTrainerExecutor
    _FILES = ("word_list_digest", "model_digests")
    _TEXTS = ("config", "features", "start", "published", "noise", "splits")
    PARAMETERS = {**dict.fromkeys((*_TEXTS, *_FILES), str), "seed": int}
    INPUTS = {"examples": Examples}
    OUTPUTS = {"tokenizer": Tokenizer}

    def __init__(
        self,
        examples: BaseChannel,
        task: str,
        tokenizer: Settings | None = None,
        tags: Settings | None = None,
        protect: Settings | None = None,
        word_list_digest: str | None = None,
        model_digests: Mapping[str, str] | None = None,
        start: Mapping[str, str] | None = None,
        published: str = "",
        noise: Settings | None = None,
        seed: int = 0,
        splits: Sequence[str] = ("train",),
    ):
        arguments = self.check_inputs(task, examples=examples)
        description, config = arguments.description, arguments.section("tokenizer", tokenizer)
        if _are_splits(arguments, splits) and not splits:
            arguments.add(("splits",), "At least one split is needed, such as train.")
        if description is not None and not description.text_features:
            arguments.add(("task",), f"The task {task} has no texts. Remove the component.")
        tag_config = None if tags is None else arguments.parse("tags", TagsConfig, tags)
        changes = None if noise is None else arguments.parse("noise", TextNoiseConfig, noise)
        if word_list_digest is None and config is not None and config.word_list:
            files = {"word_list": config.word_list}
            word_list_digest = arguments.digests(("tokenizer",), files).get("word_list")
        if model_digests is None and config is not None:
            files = config.model_paths(description.text_features)
            model_digests = arguments.digests(("tokenizer", "model"), files)
            if config.model is not None and set(files) != set(description.text_features):
                names = ", ".join(description.text_features)
                message = f"A file for each of {names} is needed, or one path for all of them."
                arguments.add(("tokenizer", "model"), message)
        arguments.check()
        tag_names = tag_config.known if tag_config is not None else ()
        texts, is_protected = description.text_features, protect is not None
        symbols = feature_symbols(texts, tag_names, is_protected, config.type)
        has_noise = changes is not None and changes.tokenizer
        noisy_names = noisy_features(description.features) if has_noise else []
        noise_section = None if changes is None else changes.model_dump(mode="json")
        super().__init__(
            examples=examples,
            config=config.to_json(),
            features=json.dumps(symbols),
            word_list_digest=word_list_digest or "",
            model_digests=json.dumps(dict(model_digests or {}), sort_keys=True),
            start=json.dumps(dict(start or {}), sort_keys=True),
            published=published,
            noise=json.dumps(dict.fromkeys(noisy_names, noise_section)),
            seed=seed,
            splits=json.dumps(list(splits)),
        )


class Preprocess(Component):
    """Build the task's preprocessing as a TensorFlow graph, and transform the examples with it.

    The train split is analyzed. No statistics are computed: StatisticsGen has those of the text,
    and statistics of ids would be meaningless.

    Args:
        examples: standard Examples with a split ``train``.
        schema: their schema.
        task: the name of the task.
        tokenizer: from TokenizerTrainer; None for a task without text.
        model: the section ``model``.
        training: the section ``training``.
        splits: the splits to transform; empty: all.
        tags: the section ``data.tags``; None: no tags.
        protect: the section ``data.protect``; None: no protected spans.

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

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel,
        task: str,
        tokenizer: BaseChannel | None = None,
        model: Settings | None = None,
        training: Settings | None = None,
        splits: Sequence[str] = ("train", "eval"),
        tags: Settings | None = None,
        protect: Settings | None = None,
    ):
        inputs = {"examples": examples, "schema": schema, "tokenizer": tokenizer}
        arguments = self.check_inputs(task, **inputs)
        description, network = arguments.description, arguments.section("model", model)
        learning = arguments.section("training", training)
        tag_config = None if tags is None else arguments.parse("tags", TagsConfig, tags)
        spans = None if protect is None else arguments.parse("protect", ProtectConfig, protect)
        if description is not None and description.text_features and tokenizer is None:
            message = f"The task {task} needs one. Pass TokenizerTrainer.outputs['tokenizer']."
            arguments.add(("tokenizer",), message)
        if _are_splits(arguments, splits) and splits and "train" not in splits:
            arguments.add(("splits",), "The split train is missing. It is analyzed; add it.")
        arguments.check()
        data = DataConfig.model_construct(tags=tag_config, protect=spans)
        settings = description.preprocessing_settings(network, learning, data)
        config = {"task": task, "settings": settings.model_dump(mode="json")}
        transformed = Channel(type=Examples)
        transformed.matching_channel_name = "examples"
        super().__init__(
            preprocessing_fn="regard.components.preprocess.transform_graph.preprocessing_fn",
            custom_config=json_utils.dumps(config),
            splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=list(splits)),
            force_tf_compat_v1=0,
            disable_statistics=1,
            transformed_examples=transformed,
            code=preprocess_code(task),
            **inputs,
        )


def _are_splits(arguments: NodeArguments, splits: object) -> bool:
    """Return whether names of splits are a list; otherwise add a problem.

    The splits of the examples are not known yet.
    """
    message = None
    if isinstance(splits, str):
        message = f"A list is expected; a text was given. Pass [{splits!r}]."
    elif not isinstance(splits, list | tuple):
        message = f"A list of names is expected; {splits!r} was given."
    elif not all(isinstance(name, str) and name for name in splits):
        message = f"Names of splits are expected; {list(splits)!r} was given."
    elif len(set(splits)) < len(splits):
        message = "A split is named twice. Remove one of them."
    if message is not None:
        arguments.add(("splits",), message)
    return message is None
