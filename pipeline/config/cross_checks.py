"""Combinations of settings that cannot work, reported before anything runs."""

import math
import shutil
from collections.abc import Iterator

from regard.components.data.config_rules import validate_data
from regard.components.evaluator.external_metrics import metric_specs
from regard.components.evaluator.slices import (
    FILE,
    LENGTH,
    OOV,
    OVERLAP_NAMES,
    PATTERN,
    TARGET_OVERLAP,
    length_names,
    share_names,
)
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.task_keys import find_inapplicable, with_default
from regard.components.settings.tokenizer import TokenizerConfig
from regard.core.storage import is_uri
from regard.core.suggestions import suggest
from regard.models.metrics import (
    METRICS,
    MetricSpec,
    metrics_for,
    missing_tokenizer_package,
    needs_attention,
    suits_changed_inputs,
    supports,
)
from regard.models.metrics.baselines import BASELINES
from regard.models.protected_spans import protection_symbols
from regard.models.settings.base import KeyPath, Problem, find_problems
from regard.models.settings.validation_errors import show, unknown
from regard.models.tags import user_symbols
from regard.pipeline.config.augmentation_checks import validate_augmentation
from regard.pipeline.config.beam import validate_beam
from regard.pipeline.config.config import ALL_NODES, TUNER, Config
from regard.pipeline.config.kubeflow_checks import input_paths, validate_kubeflow
from regard.pipeline.config.own_nodes import validate_own_nodes
from regard.pipeline.config.protection_checks import validate_protection
from regard.pipeline.config.schedule import validate_schedule
from regard.pipeline.config.tracking import validate_tracking
from regard.pipeline.config.training_checks import validate_head, validate_training
from regard.pipeline.config.tune_checks import validate_tuning

_SPECIAL = {"<pad>", "<unk>", "<s>", "</s>"}
_BYTES = {f"<0x{byte:02X}>" for byte in range(256)}  # of SentencePiece
_SLICES: KeyPath = ("evaluation", "slices")


def validate(config: Config) -> Iterator[Problem]:
    """Yield conflicts between sections, each at the key that most likely has to change."""
    problems = list(_validate(config))
    yield from problems
    if config.tune is not None and not problems:
        yield from validate_tuning(config, _validate)


def _validate(config: Config) -> Iterator[Problem]:
    """Validate everything except the section ``tune``."""
    inapplicable = list(find_inapplicable(config.task, vars(config)))
    yield from inapplicable
    sections = {problem.path[:-1] for problem in inapplicable}
    for problem in inapplicable:
        name = str(problem.path[0])
        section = with_default(config.task, getattr(config, name), problem.path)
        config = config.model_copy(update={name: section})
    for problem in _validate_applicable(config):
        if problem.path not in sections:  # its problem may be that the key is missing
            yield problem


def _validate_applicable(config: Config) -> Iterator[Problem]:
    """Validate a configuration without keys that do not apply to its task."""
    yield from find_problems(config)
    yield from validate_data(config.data, config.features)
    if config.tokenizer is not None:
        yield from _tokenizer(config)
        yield from _given_tokenizers(config)
    if config.data.tags is not None:
        yield from _tags(config)
    if config.data.protect is not None:
        yield from validate_protection(config)
    yield from config.description.validate(config)
    yield from validate_augmentation(config)
    yield from validate_training(config)
    yield from _evaluation(config)
    yield from validate_beam(config.beam)
    if config.schedule is not None:
        yield from validate_schedule(config.schedule, config.data)
    yield from validate_own_nodes(config.pipeline, config.regard_nodes, (*ALL_NODES, TUNER))
    yield from validate_kubeflow(config)
    yield from validate_tracking(config.tracking)
    yield from _uris(config)


def _uris(config: Config) -> Iterator[Problem]:
    """Yield the URIs of keys that need local paths."""
    paths = [
        *input_paths(config),
        (("data", "schema"), config.data.schema or ""),
        (("metadata", "sqlite"), config.metadata.sqlite or ""),
    ]
    if (mysql := config.metadata.mysql) is not None:
        paths += [(("metadata", "mysql", key), path) for key, path in mysql.tls_files().items()]
    for key, value in paths:
        # Without Kubeflow, a run copies the files of these keys to its machine.
        is_copied = key[0] == "data" and key[1] not in ("schema", "monolingual")
        may_be_uri = is_copied and not config.kubeflow
        if may_be_uri or not is_uri(value):
            continue
        place = "volume of kubeflow.volumes" if config.kubeflow else "local folder"
        yield Problem(key, f"{show(value)} is a URI; copy it to a {place}")


def _tags(config: Config) -> Iterator[Problem]:
    """Check the names of tags, and that nothing counts the words of a source with a tag."""
    path: KeyPath = ("data", "tags")
    symbols = {f"<{tag}>" for tag in config.data.tag_names}
    for symbol in sorted(symbols & (_SPECIAL | _BYTES)):
        yield Problem(path, f"{symbol} is a built-in symbol; use another name")
    reason = "the tag would be a word of the source, which the links do not count; remove it"
    if config.training.guided_alignment:
        yield Problem(("training", "guided_alignment"), f"{reason}, or data.tags")
    if config.evaluation.alignment:
        yield Problem(("evaluation", "alignment"), f"{reason}, or data.tags")
    if config.serving.split_sentences:
        message = "only the first sentence of a text would have its tag; remove it, or data.tags"
        yield Problem(("serving", "split_sentences"), message)


def _tokenizer(config: Config) -> Iterator[Problem]:
    tokenizer: TokenizerConfig = config.tokenizer
    symbols = tokenizer.user_defined_symbols
    tags = user_symbols(config.data.tag_names, tokenizer.type)
    path = ("tokenizer", "user_defined_symbols")
    spans = protection_symbols() if config.data.protect else []
    for symbol in sorted(set(symbols) & {*_SPECIAL, *_BYTES, *tags}):
        kind = "tag of data.tags" if symbol in tags else "built-in symbol"
        yield Problem(path, f"{symbol} is a {kind}; remove it")
    tag = getattr(config.augmentation and config.augmentation.back_translation, "tag", None)
    if tag in _SPECIAL | _BYTES:
        where: KeyPath = ("augmentation", "back_translation", "tag")
        yield Problem(where, f"{tag} is a built-in symbol; use another tag")
    fixed = len(_SPECIAL) + len({*symbols, *tags, *spans}) + len(_BYTES) * tokenizer.byte_fallback
    if tokenizer.vocab_size <= fixed and tokenizer.model is None:
        message = f"must exceed {fixed}, the number of special, user-defined and byte symbols"
        yield Problem(("tokenizer", "vocab_size"), message)


def _given_tokenizers(config: Config) -> Iterator[Problem]:
    """Check that ``tokenizer.model`` names the texts of the task, and nothing else replaces it."""
    path, model = ("tokenizer", "model"), config.tokenizer.model
    features = config.description.text_features
    if isinstance(model, dict):
        for name in model:
            if name not in features:
                yield Problem((*path, name), unknown(name, features, "a text of this task"))
        for name in features:
            if name not in model:
                yield Problem(path, f"has no file for {name}; add it, or use one path for all")
    warm_start = config.training.warm_start
    if model is not None and warm_start and warm_start.keep_tokenizer:
        message = "keeps the tokenizer of the model to start from; use false, or remove "
        key = ("training", "warm_start", "keep_tokenizer")
        yield Problem(key, f"{message}tokenizer.model")


def _evaluation(config: Config) -> Iterator[Problem]:
    evaluation = config.evaluation
    metrics = evaluation.metrics
    path: KeyPath = ("evaluation", "metrics")
    kind = config.description.output_kind
    specs = metric_specs(evaluation)
    if not metrics:
        yield Problem(path, f"must name at least one of {', '.join(metrics_for(kind, specs))}")
        return
    used = list(_used_metrics(evaluation))
    invalid = [(path, metric) for path, metric, _ in used if not supports(metric, kind, specs)]
    if invalid:  # later messages would only follow from these
        choices = metrics_for(kind, specs)
        yield from (Problem(path, unknown(metric, choices)) for path, metric in invalid)
        return
    for path, metric, threshold in used:
        if metric not in metrics:
            yield Problem(path, f"{metric} is not computed; add it to evaluation.metrics")
        if threshold is not None and (limits := _exceeded_limits(specs[metric], threshold)):
            yield Problem(path, f"{metric} {limits}, so {threshold:g} is not possible")
    for name, external in evaluation.external.items():
        if name == "loss" or name in METRICS:
            yield Problem(("evaluation", "external", name), "is a metric already; use another name")
        elif config.kubeflow is None and shutil.which(external.command[0]) is None:
            path = ("evaluation", "external", name, "command")
            yield Problem(path, f"there is no program {external.command[0]}")
    yield from _baselines(config)
    if message := missing_tokenizer_package(evaluation.tokenize):
        yield Problem(("evaluation", "tokenize"), message)
    yield from _validate_slices(config)
    yield from _drift(config)
    yield from _alignment(config)
    yield from _robustness(config)


def _baselines(config: Config) -> Iterator[Problem]:
    """Check that baselines suit the task, and that a metric can be computed for them."""
    evaluation = config.evaluation
    path: KeyPath = ("evaluation", "baselines")
    for index, name in enumerate(evaluation.baselines):
        baseline = BASELINES[name]
        is_suitable = config.description.output_kind in baseline.output_kinds
        has_inputs = _reads_text(config) or not baseline.reads_text
        if not (is_suitable and has_inputs):
            yield Problem((*path, index), f"{name} does not apply to this task; remove it")
    without = all(needs_attention(m) or m == "perplexity" for m in evaluation.metrics)
    if evaluation.baselines and without:
        message = (
            "no metric of evaluation.metrics can be computed for a baseline; add one, or use []"
        )
        yield Problem(path, message)


def _reads_text(config: Config) -> bool:
    return any(f.role == "input" and f.kind.is_text for f in config.features)


def _alignment(config: Config) -> Iterator[Problem]:
    """Check AER, its gold links, and the layer and head whose attention is measured."""
    alignment = config.evaluation.alignment
    metrics = config.evaluation.metrics
    path: KeyPath = ("evaluation", "alignment")
    if alignment is None:
        if "aer" in metrics:
            path = ("evaluation", "metrics", metrics.index("aer"))
            yield Problem(path, "aer needs evaluation.alignment, the column of the gold links")
        return
    extra = [feature.name for feature in config.features if feature.role == "extra"]
    if "aer" not in metrics:
        yield Problem(path, "is used by aer only; add aer to evaluation.metrics")
    elif alignment.gold not in extra:
        yield Problem((*path, "gold"), unknown(alignment.gold, extra, "a column of data.extra"))
    yield from validate_head(alignment, config, path)


def _robustness(config: Config) -> Iterator[Problem]:
    """Check that a metric measures the loss, and that changed inputs may be too long."""
    robustness = config.evaluation.robustness
    if robustness is None:
        return
    path: KeyPath = ("evaluation", "robustness")
    choices = [metric for metric in config.evaluation.metrics if suits_changed_inputs(metric)]
    if not choices:
        yield Problem(path, "needs a metric of outputs alone; add one to evaluation.metrics")
    elif getattr(config.search, "long_source", None) == "refuse":
        message = (
            "ends the run if a changed input of evaluation.robustness is too long; use truncate"
        )
        yield Problem(("search", "long_source"), message)
    elif robustness.metric is not None and robustness.metric not in choices:
        yield Problem((*path, "metric"), unknown(robustness.metric, choices))


def _drift(config: Config) -> Iterator[Problem]:
    """Check that drift checks which fail a run have something to compare with."""
    for name, check in config.data.checks.drift_checks.items():
        if check.action == "fail" and config.evaluation.production is None:
            path = ("data", "checks", name, "action")
            yield Problem(path, "nothing is compared if evaluation.production is null; use warn")


def _used_metrics(evaluation: EvaluationConfig) -> Iterator[tuple[KeyPath, str, float | None]]:
    """Yield every metric of the section with its key and its threshold."""
    for index, metric in enumerate(evaluation.metrics):
        yield ("evaluation", "metrics", index), metric, None
    if evaluation.production is not None:
        yield ("evaluation", "production", "metric"), evaluation.production.metric, None
    for metric, threshold in evaluation.thresholds.items():
        yield ("evaluation", "thresholds", metric), metric, threshold
    for name, thresholds in evaluation.slices.thresholds.items():
        for metric, threshold in thresholds.items():
            yield ("evaluation", "slices", "thresholds", name, metric), metric, threshold


def _exceeded_limits(metric: MetricSpec, threshold: float) -> str:
    """Return the limits of a metric if they exclude a threshold, or the empty string."""
    low = -math.inf if metric.low is None else metric.low
    high = math.inf if metric.high is None else metric.high
    if low <= threshold <= high:
        return ""
    return f"is at least {low:g}" if high == math.inf else f"ranges from {low:g} to {high:g}"


def _validate_slices(config: Config) -> Iterator[Problem]:
    """Yield the problems of ``evaluation.slices`` and of all references to slices."""
    evaluation = config.evaluation
    slices = evaluation.slices
    yield from _validate_slice_features(config)
    references: list[tuple[KeyPath, str]]
    references = [((*_SLICES, "thresholds", name), name) for name in slices.thresholds]
    if evaluation.production is not None:
        path: KeyPath = ("evaluation", "production", "slices")
        references += [((*path, i), name) for i, name in enumerate(evaluation.production.slices)]
    names = _slice_names(config)
    for path, name in references:
        if message := _slice_error(name, names):
            yield Problem(path, message)


def _validate_slice_features(config: Config) -> Iterator[Problem]:
    """Slices need text features with one value per row."""
    slices = config.evaluation.slices
    texts = [f.name for f in config.stored_features if f.kind.is_text and not f.multiple]
    texts.append(FILE)
    references: list[tuple[KeyPath, str]] = []
    for index, name in enumerate(slices.by):
        path = (*_SLICES, "by", index)
        references.append((path, name))
        if name in slices.by[:index]:
            yield Problem(path, f"{show(name)} is given twice")
        if name in (LENGTH, OOV, PATTERN, TARGET_OVERLAP):
            yield Problem(path, f"{name} is a built-in kind of slices; rename the column")
    for name, pattern in slices.patterns.items():
        references.append(((*_SLICES, "patterns", name, "feature"), pattern.feature))
    for path, name in references:
        if name not in texts:
            message = f"{unknown(name, texts, 'a text feature')}; data.extra can add columns"
            yield Problem(path, message)


def _slice_names(config: Config) -> dict[str, list[str]]:
    """Return the names of slices by kind; empty for features, whose values are not known yet."""
    slices = config.evaluation.slices
    checks = config.data.checks
    text_roles = {feature.role for feature in config.stored_features if feature.kind.is_text}
    names: dict[str, list[str]] = {name: [] for name in slices.by}
    if slices.patterns:
        names[PATTERN] = list(slices.patterns)
    if config.description.has_input_length:
        names[LENGTH] = length_names(config.evaluation.length_buckets)
    if slices.oov and "input" in text_roles:
        names[OOV] = share_names(slices.oov)
    if slices.target_overlap and checks.target_overlap and "reference" in text_roles:
        names[TARGET_OVERLAP] = list(OVERLAP_NAMES)
    return names


def _slice_error(name: str, names: dict[str, list[str]]) -> str:
    """Return why no slice can have a name, or the empty string."""
    kind, separator, _ = name.partition("=")
    titles = [f"{kind}={value}" for value in names.get(kind, [])]
    if kind not in names:
        remedy = "evaluation.slices.by adds features"
        if kind == TARGET_OVERLAP:
            remedy = "it needs data.checks.target_overlap and evaluation.slices.target_overlap"
        return f"there is no slice {show(name)}. {suggest(name, names)}; {remedy}"
    if separator and titles and name not in titles:
        return f"there is no slice {show(name)}. {suggest(name, titles)}"
    return ""
