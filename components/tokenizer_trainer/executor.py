"""TokenizerTrainer's executor: a Beam pipeline samples sentences, SentencePiece trains on them."""

import itertools
import json
import os
import uuid
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import apache_beam as beam
from tfx import types
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from regard.components.common.artifact_files import examples_split, split_shards, write_uri
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.data.example_rows import read_rows
from regard.components.registry.starting_models import find_warm_start
from regard.components.registry.store import Registry
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer import sampling
from regard.components.tokenizer_trainer.coverage import measure_coverage
from regard.components.tokenizer_trainer.given_models import GivenModel, read_given_model
from regard.components.tokenizer_trainer.sentencepiece_training import (
    TrainedTokenizer,
    VocabularySizeError,
    list_tokens,
    parse_model,
    train_tokenizer,
)
from regard.components.trainer.vocabulary_mapping import read_stored_tokenizers
from regard.core import events
from regard.core.errors import DataError
from regard.core.features import Feature
from regard.core.formatting import format_count
from regard.core.kinds import TEXT
from regard.models.settings.text_noise import TextNoiseConfig
from regard.models.settings.training import TrainingConfig
from regard.models.vocabulary import BOS, EOS, PAD, UNK

NODE = "TokenizerTrainer"
_READ_ERRORS = (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile)
# The maximum number of sentences that measure the coverage of a given model.
_COVERAGE_SENTENCES = 20_000
# The share of unknown text from which on there is a warning, and an error.
_MANY_UNKNOWN, _MAX_UNKNOWN = 0.01, 0.5
# The features of a tokenizer.
Group = tuple[str, ...]


class TokenizerTrainerExecutor(base_beam_executor.BaseBeamExecutor):
    """Writes the models and ``tokenizer.json``."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Train a model for each feature, or one for all of them; or use models that exist.

        These are the models of ``tokenizer.model``, or those of a warm start.

        Raises:
            UserError: there is no text, the vocabulary size does not suit it, or models that
                exist cannot be read or do not suit this pipeline.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        config = TokenizerConfig.model_validate_json(exec_properties["config"])
        features = json.loads(exec_properties["features"])
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        tokenizer = artifact_utils.get_single_instance(output_dict["tokenizer"])
        start = _find_start(exec_properties)
        tokenizers = _read_start_tokenizers(start, config, features) if start else {}
        given_models = _read_given_models(config, features, exec_properties)
        tokenizers |= {feature: list_tokens(model.proto) for feature, model in given_models.items()}
        groups = [tuple(features)] if config.shared else [(feature,) for feature in features]
        limit = config.input_sentence_size
        if given_models:  # the coverage of each feature is measured
            groups, limit = [(feature,) for feature in features], min(limit, _COVERAGE_SENTENCES)
        # All workers see the artifact's folder, and a killed run's sample is removed with it.
        folder = os.path.join(tokenizer.uri, f".sample-{uuid.uuid4().hex[:8]}")
        fileio.makedirs(folder)
        try:
            events.emit("progress", node=NODE, text="sampling sentences")
            sampler = sampling.FileSampler(groups, limit, exec_properties["seed"], folder)
            self._sample(examples, json.loads(exec_properties["splits"]), sampler)
            samples = {
                group: sampling.join_samples(folder, number, limit)
                for number, group in enumerate(groups)
            }
            noise = {
                feature: TextNoiseConfig.model_validate(section)
                for feature, section in json.loads(exec_properties.get("noise") or "{}").items()
            }
            trained = _train(samples, config, features, tokenizers, noise)
            for feature, model in given_models.items():
                _check_coverage(feature, model, samples[(feature,)])
        finally:
            fileio.rmtree(folder)
        for group, result in trained.items():
            for feature in group:
                _write_model(tokenizer, feature, result)
        _write_description(tokenizer.uri, config, samples, trained, given_models)
        for group, result in trained.items():
            if not tokenizers:
                _report(" and ".join(group), result, samples[group].counts, config)

    def _sample(
        self, examples: types.Artifact, splits: Sequence[str], sampler: sampling.FileSampler
    ) -> None:
        """Sample every file of some splits."""
        shards = []
        texts = [Feature(name, TEXT) for group in sampler.groups for name in group]
        for split in splits:
            files = split_shards(examples_split(examples, split))
            next(read_rows(files[0], texts), None)  # a missing feature is an error
            shards += files
        with self._make_beam_pipeline() as pipeline:
            numbered = list(enumerate(shards))
            inputs = pipeline | "Files" >> beam.Create(numbered, reshuffle=len(numbered) > 1)
            _ = inputs | "Sample" >> beam.Map(sampler)


def _find_start(exec_properties: Properties) -> dict[str, str]:
    """Return the warm start whose tokenizers are kept; empty without one."""
    start: dict[str, str] = json.loads(exec_properties["start"])
    if not start or "path" in start:
        return start
    published = Path(exec_properties["published"])
    training = TrainingConfig.model_validate({"warm_start": start})
    return find_warm_start(training, Registry(published.parent), published.name)


def _read_start_tokenizers(
    start: Mapping[str, str], config: TokenizerConfig, symbols: Mapping[str, list[str]]
) -> dict[str, TrainedTokenizer]:
    """Return the tokenizer of each feature of the model to start from."""
    key, model = "training.warm_start.keep_tokenizer", start["model"]
    remedy = "Change tokenizer, tags or protect, name another model, or use keep_tokenizer: false."

    def error(message: str) -> DataError:
        return DataError(f"{model}: {message}", key, remedy)

    try:
        stored = read_stored_tokenizers(Path(start["path"]))
        tokenizers = {feature: list_tokens(stored[feature]) for feature in symbols}
    except _READ_ERRORS as problem:
        raise error(f"it has no readable tokenizers for this task: {problem}") from problem
    if config.shared and len({tokenizer.proto for tokenizer in tokenizers.values()}) > 1:
        raise error("tokenizer.shared is true here and false there")
    for feature, tokenizer in tokenizers.items():
        spec = parse_model(tokenizer.proto).trainer_spec
        if (kind := spec.ModelType.Name(spec.model_type).lower()) != config.type:
            raise error(f"tokenizer.type is {config.type} here and {kind} there")
        tokens = {token for token, _ in tokenizer.tokens}
        if missing := {*symbols[feature], *config.user_defined_symbols} - tokens:
            raise error(f"its {feature} tokenizer has no token {min(missing)}")
        events.emit("note", node=NODE, text=f"{feature}: {len(tokens):,} tokens of {model}")
    return tokenizers


def _read_given_models(
    config: TokenizerConfig, symbols: Mapping[str, list[str]], exec_properties: Properties
) -> dict[str, GivenModel]:
    """Return the model of ``tokenizer.model`` of each feature; empty without it."""
    digests = json.loads(exec_properties["model_digests"])
    paths = config.model_paths(list(symbols))
    models = {}
    for feature, path in paths.items():
        # One file has the symbols of all its features.
        names = [name for name in paths if paths[name] == path]
        texts = dict.fromkeys(itertools.chain.from_iterable(symbols[name] for name in names))
        model = read_given_model(path, config, tuple(texts), "tokenizer.model")
        if digests.get(feature, model.digest) != model.digest:
            message = f"The file {path} has changed since this run began."
            raise DataError(message, "tokenizer.model", "Start the run again.")
        models[feature] = model
    return models


def _check_coverage(feature: str, model: GivenModel, sample: sampling.CorpusSample) -> None:
    """Report how much of the train split a model does not know.

    Raises:
        DataError: more than half of it is unknown.
    """
    coverage = measure_coverage(model.proto, sample)
    text = f"{feature}: {model.describe()}; {coverage.describe()}"
    if max(coverage.unknown_share, coverage.unknown_character_share) > _MAX_UNKNOWN:
        message = f"{text}. The model is probably for another language."
        raise DataError(message, "tokenizer.model", "Use another file, or train a tokenizer.")
    events.emit("note", node=NODE, text=text)
    if max(coverage.unknown_share, coverage.byte_share) > _MANY_UNKNOWN:
        missing = f"{coverage.unknown_share:.1%} of tokens are unknown"
        if coverage.byte_share > _MANY_UNKNOWN:
            missing = f"{coverage.byte_share:.1%} of tokens are single bytes"
        text = f"{feature}: {missing}; {model.name} lacks characters of the train split"
        events.emit("warning", node=NODE, text=text)


def _train(
    samples: Mapping[Group, sampling.CorpusSample],
    config: TokenizerConfig,
    symbols: Mapping[str, list[str]],
    tokenizers: Mapping[str, TrainedTokenizer],
    noise: Mapping[str, TextNoiseConfig],
) -> dict[Group, TrainedTokenizer]:
    trained: dict[Group, TrainedTokenizer] = {}
    errors: dict[str, VocabularySizeError] = {}
    for number, (group, sample) in enumerate(samples.items()):
        name = " and ".join(group)
        if not sample.counts.used:
            raise _no_text(name, sample.counts)
        if tokenizers:
            trained[group] = tokenizers[group[0]]
            continue
        text = f"{config.type} tokens of {name} from {sample.counts.used:,} sentences"
        events.emit("progress", node=NODE, text=text, fraction=number / len(samples))
        group_symbols: list[str] = []
        for feature in group:
            group_symbols += [text for text in symbols[feature] if text not in group_symbols]
        has_joiners = sample.counts.joined > 0
        sentences: Iterable[bytes] = sample
        if changes := [noise[feature] for feature in group if feature in noise]:
            fixed = (*config.user_defined_symbols, *group_symbols)
            sentences = sampling.NoisySentences(sample, changes[0], fixed, seed=0)
        try:
            trained[group] = train_tokenizer(sentences, config, group_symbols, has_joiners)
        except VocabularySizeError as error:
            errors[name] = error
    if errors:
        raise _size_error(errors, config.vocab_size)
    return trained


def _write_model(tokenizer: types.Artifact, feature: str, model: TrainedTokenizer) -> None:
    write_uri(os.path.join(tokenizer.uri, f"{feature}.model"), model.proto)
    rows = "".join(f"{token}\t{score:g}\n" for token, score in model.tokens)
    write_uri(os.path.join(tokenizer.uri, f"{feature}.vocab"), rows)
    tokenizer.set_int_custom_property(f"{feature}_tokens", len(model.tokens))


def _write_description(
    uri: str,
    config: TokenizerConfig,
    samples: Mapping[Group, sampling.CorpusSample],
    trained: Mapping[Group, TrainedTokenizer],
    given_models: Mapping[str, GivenModel],
) -> None:
    content = {
        "type": config.type,
        "shared": config.shared,
        "ids": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
        "features": {
            feature: {
                "file": f"{feature}.model",
                "type": config.type,
                "tokens": len(model.tokens),
                "sentences": samples[group].counts.used,
                "too_long": samples[group].counts.too_long,
                **_origin(given_models.get(feature)),
            }
            for group, model in trained.items()
            for feature in group
        },
    }
    write_uri(os.path.join(uri, "tokenizer.json"), json.dumps(content, indent=2))


def _origin(model: GivenModel | None) -> dict[str, dict[str, str]]:
    """Return where a model comes from that was not trained."""
    return {"origin": {"file": model.name, "sha256": model.digest}} if model else {}


def _no_text(name: str, counts: sampling.SentenceCounts) -> DataError:
    rows = format_count(counts.read, "row")
    reasons = f"{counts.empty:,} empty, {counts.too_long:,} over {sampling.MAX_BYTES:,} bytes"
    return DataError(
        f"{name}: the train split has no text ({rows}: {reasons})",
        remedy="Check data.train, and data.columns if the files have columns. Split texts into "
        "sentences, one per line.",
    )


def _size_error(errors: Mapping[str, VocabularySizeError], size: int) -> DataError:
    # Of two sides one can have too much text for the size and the other too little.
    is_too_large = any(error.is_too_large for error in errors.values())
    limits = {n: e.limit for n, e in errors.items() if e.is_too_large == is_too_large}
    bound = "most" if is_too_large else "least"
    listed = ", ".join(f"{name} at {bound} {limit}" for name, limit in limits.items())
    if is_too_large:
        return DataError(
            f"tokenizer.vocab_size: {size} is more than this corpus allows ({listed})",
            remedy=f"Set tokenizer.vocab_size to {min(limits.values())} or less, or "
            "tokenizer.vocab_limit to soft, which uses as many tokens as possible.",
        )
    return DataError(
        f"tokenizer.vocab_size: {size} is less than the characters need ({listed})",
        remedy=f"Set tokenizer.vocab_size to {max(limits.values())} or more, or lower "
        "tokenizer.character_coverage, which leaves out rare characters.",
    )


def _report(
    name: str, model: TrainedTokenizer, counts: sampling.SentenceCounts, config: TokenizerConfig
) -> None:
    sentences = format_count(counts.used, "sentence")
    text = f"{name}: {len(model.tokens):,} tokens from {sentences}"
    if len(model.tokens) < config.vocab_size:
        text += f" (the corpus does not allow {config.vocab_size:,})"
    events.emit("note", node=NODE, text=text)
    if counts.too_long:
        lines = format_count(counts.too_long, "line")
        verb = "was" if counts.too_long == 1 else "were"
        text = f"{name}: {lines} of more than {sampling.MAX_BYTES:,} bytes {verb} skipped"
        events.emit("warning", node=NODE, text=text)
