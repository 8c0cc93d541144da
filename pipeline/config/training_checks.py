"""Conflicts within the section ``training``."""

import importlib.util
import json
from collections.abc import Iterator
from typing import Any

from regard.components.evaluator.external_metrics import metric_specs
from regard.models.metrics import METRICS, metrics_for, missing_tokenizer_package, supports
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.fine_tuning import PRODUCTION
from regard.models.settings.networks import TransformerDecoderConfig
from regard.models.settings.text_noise import TextNoiseConfig
from regard.models.settings.validation_errors import unknown
from regard.pipeline.config.config import Config


def validate_training(config: Config) -> Iterator[Problem]:
    """Yield conflicts within ``training``, each at the key that has to change."""
    training = config.training
    problems: list[tuple[str, str]] = []
    if training.batch_tokens == "auto":
        problems += [("batch_tokens", f"auto {text}") for text in _auto_batch_problems(config)]
    if training.ensemble:
        problems += _ensemble_problems(config)
    if training.subword_sampling:
        problems += [("subword_sampling", text) for text in _subword_sampling_problems(config)]
    if training.noise:
        problems += [("noise", text) for text in _noise_problems(config)]
    if training.backend == "jax":
        problems += _jax_problems(config)
    for key, message in problems:
        yield Problem(("training", *key.split(".")), message)
    if training.guided_alignment:
        yield from _guided_alignment_problems(config, ("training", "guided_alignment"))
    if message := missing_tokenizer_package(training.validation_tokenize):
        yield Problem(("training", "validation_tokenize"), message)
    if stop := training.early_stopping:
        yield from validate_metric(stop.metric, config, ("training", "early_stopping", "metric"))


def validate_metric(name: str, config: Config, path: KeyPath) -> Iterator[Problem]:
    """Yield why a metric cannot be computed in evaluations during training."""
    if name == "loss":
        return
    kind = config.description.output_kind
    specs = metric_specs(config.evaluation)
    # During training only outputs and references of a row are available.
    if supports(name, kind, specs) and specs[name].needs_columns:
        yield Problem(path, f"{name} is computed on the test split only; use loss, for example")
    elif not supports(name, kind, specs):
        choices = [metric for metric in metrics_for(kind) if not METRICS[metric].needs_columns]
        yield Problem(path, unknown(name, ["loss", *choices]))


def _jax_problems(config: Config) -> Iterator[tuple[str, str]]:
    # On a cluster, the image of the Trainer has JAX.
    if config.kubeflow is None and importlib.util.find_spec("jax") is None:
        yield "backend", 'JAX is not installed: pip install "regard[jax]", or "regard[jax-cuda]"'
    if config.training.devices == "workers" and config.training.deterministic:
        yield "deterministic", "is not possible on JAX with devices: workers; use one or all"
    if config.training.jit_compile:
        yield "jit_compile", "has no effect on JAX, which always compiles; remove it"


def _auto_batch_problems(config: Config) -> Iterator[str]:
    training = config.training
    if training.devices == "workers":
        yield "measures a single machine; use a number, or devices: one or all"
    if training.jit_compile:
        yield "tries many shapes, each of which XLA would compile; use a number, or no jit_compile"
    if training.deterministic or config.tune:
        yield "depends on measurements, also in deterministic trainings and in tune; use a number"


def _ensemble_problems(config: Config) -> Iterator[tuple[str, str]]:
    training = config.training
    alignment = config.evaluation.alignment
    if len(set(training.ensemble)) < len(training.ensemble):
        yield "ensemble", "a model is listed twice and would count twice; remove one"
    if training.warm_start and training.warm_start.model == PRODUCTION:
        yield "warm_start.model", "production will be an ensemble; name a version of one model"
    if alignment and alignment.layer is not None:
        yield "ensemble", "an ensemble has no heads; remove it, or evaluation.alignment.layer"


def _subword_sampling_problems(config: Config) -> Iterator[str]:
    tokenizer = json.loads(config.tokenizer_json) or {}
    kind = tokenizer.get("type")
    has_symbols = config.data.tags or config.data.protect
    if kind not in ("bpe", "unigram"):
        yield f"needs a bpe or unigram tokenizer; a text has one segmentation of type {kind}"
    elif kind == "unigram" and (has_symbols or tokenizer["user_defined_symbols"]):
        yield "splits tags and user-defined symbols of type unigram; remove it, or use bpe"
    else:
        yield from _changed_token_problems(config)


def _changed_token_problems(config: Config) -> Iterator[str]:
    """Yield what cannot work with sources whose tokens change in every epoch."""
    if getattr(config.model.decoder, "pointer_generator", False):
        yield "a pointer-generator copies the tokens of the source; remove one of them"
    elif config.training.guided_alignment:
        yield "guided_alignment supervises the tokens of the tokenizer; remove one of them"
    elif config.training.jit_compile:
        yield "changes the lengths, for which XLA compiles; remove it, or jit_compile"


def _changes_case(noise: TextNoiseConfig | None) -> bool:
    return noise is not None and (noise.upper_case > 0 or noise.title_case > 0)


def _noise_problems(config: Config) -> Iterator[str]:
    tokenizer = json.loads(config.tokenizer_json) or {}
    folds_case = tokenizer.get("normalization", "").endswith("_cf")
    if folds_case and _changes_case(config.training.noise):
        message = "upper_case and title_case change nothing, because tokenizer.normalization folds "
        yield f"{message}case; remove them"
    elif tokenizer.get("type") == "word":
        yield "needs a bpe, unigram or char tokenizer; type word does not know misspelled words"
    else:
        yield from _changed_token_problems(config)


def _guided_alignment_problems(config: Config, path: KeyPath) -> Iterator[Problem]:
    """Check that there are links, and attention that they can supervise."""
    guidance: Any = config.training.guided_alignment
    extra = config.data.extra
    if guidance.links not in extra:
        yield Problem((*path, "links"), unknown(guidance.links, extra, "a column of data.extra"))
    attention = config.model.attention
    if attention is None:
        yield Problem(path, "the model has no attention; remove it")
    elif getattr(attention.alignment, "has_zeros", True):
        message = f"{attention.alignment.type} attention has weights of zero, which cannot be "
        yield Problem(
            path, f"{message}supervised; remove it, or use model.attention.alignment: soft"
        )
    if guidance.layer is not None and config.training.penalties.active():
        yield Problem((*path, "layer"), "training.penalties need the last layer's mean; use null")
    yield from validate_head(guidance, config, path)


def validate_head(selection: Any, config: Config, path: KeyPath) -> Iterator[Problem]:
    """Check a selection of one layer and head of the attention of a decoder.

    Args:
        selection: A section with the keys ``layer`` and ``head``.
        config: The configuration.
        path: The key of the section.
    """
    decoder = getattr(config.model, "decoder", None)
    for name in ("layer", "head"):
        if (number := getattr(selection, name)) is None:
            continue
        if not isinstance(decoder, TransformerDecoderConfig):
            yield Problem((*path, name), "only a transformer decoder has layers of heads; use null")
        elif selection.layer is None:
            yield Problem((*path, name), f"needs {'.'.join(map(str, path))}.layer too")
        elif number > (maximum := getattr(decoder, f"{name}s")):
            yield Problem((*path, name), f"must be 1 to {maximum}, model.decoder.{name}s")
