"""Export models to CTranslate2, verified with stored outputs."""

import dataclasses
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.components.registry.publish import check_content
from regard.components.registry.records import read_record
from regard.components.registry.store import Registry, size_of
from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import atomic_write, replace_dir, write_json
from regard.serving.contract import IN_MEMORY, answer_kind, read_contract, text_inputs
from regard.serving.export import ctranslate2

# The names of all files of an export.
_EXPORTED = re.compile(
    rf"{re.escape(ctranslate2.INFO_FILE)}|config\.json|model\.bin|\w+_vocabulary\.(json|txt)|\w+\.model"
)
# Allowed difference of the log-probability of a token: float32 in another order of operations.
TOLERANCE = 1e-3
TOLERANCE_QUANTIZED = 0.1  # 0.01 in models of Multi30k


@dataclasses.dataclass(frozen=True)
class Export:
    """A converted model.

    Attributes:
        model: the version in the registry.
        folder: the output folder.
        size: the size of all files, in bytes.
        rows: how many stored outputs were compared.
        difference: the largest difference of the log-probability of an output, divided by its
            tokens; None without stored outputs.
        arguments: arguments of ``translate_batch`` that approximate the model's own search.
        first_tokens: pairs of the token that a source begins with and the token that
            ``target_prefix`` of ``translate_batch`` must then have, see
            `ctranslate2.target_prefixes`; empty for most models.
    """

    model: str
    folder: Path
    size: int
    rows: int
    difference: float | None
    arguments: dict[str, Any]
    first_tokens: list[tuple[str, str]]


def to_ctranslate2(
    model: str, registry: Path, folder: Path, quantization: str, *, force: bool = False
) -> Export:
    """Write a model and its tokenizers for CTranslate2; the folder is replaced atomically.

    Args:
        model: ``NAME``, ``NAME@VERSION``, or a folder with a SavedModel.
        registry: the registry's folder.
        folder: the output folder.
        quantization: the type of the weights, for example ``int8``.
        force: whether to replace an earlier export.

    Raises:
        UserError: there is no such model, CTranslate2 does not support it or is not installed,
            the folder cannot be used, or the quantization changes the probabilities too much.
        RuntimeError: CTranslate2 computes other probabilities, which is a bug.
    """
    from regard.components.trainer.export import RebuiltModel
    from regard.components.trainer.vocabulary_mapping import read_vocabulary

    version = Registry(registry).resolve(model)
    record = read_record(version)
    _check_supported(version, record.config.get("model"))  # before anything large is read
    _validate_folder(folder, force, version.resolve(), registry.resolve())
    check_engine(quantization)
    check_content(version)
    trained = RebuiltModel(version, model)
    settings = trained.config.model_settings
    _check_supported(version, settings)
    tokenizers = trained.serialized
    vocabularies = {side: read_vocabulary(tokenizers[side]) for side in tokenizers}
    first_tokens = ctranslate2.first_token_pairs(settings, vocabularies)
    weights = {weight.path: np.asarray(weight) for weight in trained.model.weights}
    spec = ctranslate2.create_specification(weights, settings, vocabularies)
    spec.validate()
    ctranslate2.quantize(spec, quantization)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        (temporary := Path(work, "export")).mkdir()
        spec.save(str(temporary))
        for side, serialized in tokenizers.items():
            atomic_write(temporary / f"{side}.model", serialized)
        outputs = _stored_outputs(version)
        difference = _compare_scores(temporary, outputs, first_tokens, quantization)
        search = record.config.get("search") or {}
        arguments = _search_arguments(search, outputs, int(bool(first_tokens)))
        name = f"{version.parent.name}@{version.name}" if record.model_fields_set else str(version)
        verified = {"rows": len(outputs), "largest_difference_per_token": difference}
        info = {"model": name, "quantization": quantization, "verified": verified}
        usage = {"translate_batch": arguments, "first_tokens": first_tokens}
        write_json(temporary / ctranslate2.INFO_FILE, {**info, **usage})
        _validate_folder(folder, force)  # it may have changed meanwhile
        replace_dir(temporary, folder, ctranslate2.INFO_FILE)
    return Export(name, folder, size_of(folder), len(outputs), difference, arguments, first_tokens)


def _validate_folder(folder: Path, force: bool, *protected: Path) -> None:
    """Check that the folder is empty, or holds an earlier export that may be replaced.

    Raises:
        UserError: the folder cannot be used.
    """
    path, remedy = folder.resolve(), "Give another folder with --out."
    for other in protected:
        if path == other or path in other.parents or other in path.parents:
            raise UserError(f"The folder contains or is part of {other}.", str(folder), remedy)
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise UserError("The path exists and is not a folder.", str(folder), remedy)
    if not any(folder.iterdir()):
        return
    if not force:
        remedy = "Use --force to replace an earlier export, or --out for another folder."
        raise UserError("The folder is not empty.", str(folder), remedy)
    if not all((folder / name).is_file() for name in (ctranslate2.INFO_FILE, "model.bin")):
        raise UserError("The folder does not contain an exported model.", str(folder), remedy)
    for path in sorted(folder.iterdir()):
        if not _EXPORTED.fullmatch(path.name):
            message = "The folder of the exported model contains a file that is not part of it."
            remedy = "Move the file to another place, or give another folder with --out."
            raise UserError(message, str(path), remedy)


def check_engine(quantization: str) -> None:
    """Check that CTranslate2 is installed, and that it computes 16-bit integers here if required.

    Otherwise it would convert them to its own 8-bit integers, whose products overflow on some
    processors; see `ctranslate2.quantize`.

    Raises:
        UserError: it is not, or does not.
    """
    try:
        import ctranslate2 as engine
    except ImportError:
        remedy = 'Install it with: pip install "regard[ctranslate2]"'
        raise EnvironmentFault("CTranslate2 is not installed.", remedy=remedy) from None
    if quantization == "int16" and "int16" not in engine.get_supported_compute_types("cpu"):
        message = "CTranslate2 computes with 16-bit integers on processors of Intel only."
        remedy = "Use int8 or float32 on this processor."
        raise EnvironmentFault(message, "int16", remedy)


def check_text_to_text(version: Path) -> None:
    """Check that a model has a task from texts to texts, and no protected spans.

    Raises:
        UserError: it has another one, or spans.
    """
    contract = read_contract(version)
    first = contract["inputs"][0]["name"]
    if not answer_kind(contract).is_text or first not in text_inputs(contract):
        message = f"Only text-to-text models can be converted; the task is {contract['task']}."
        raise UserError(message, str(version))
    if contract.get("confidence"):
        message = "Only TensorFlow computes the confidence of a model."
        remedy = "Use another engine with a model that was trained without serving.confidence."
        raise UserError(message, str(version), remedy)
    if contract.get("protect"):
        message = "The graph of TensorFlow protects spans (data.protect), a conversion would not."
        raise UserError(message, str(version), "Serve the model with TensorFlow.")


def _check_supported(version: Path, settings: Mapping[str, Any] | None) -> None:
    """Check the task and, if it is known, the section ``model``."""
    check_text_to_text(version)
    if settings and (unsupported := ctranslate2.find_unsupported(settings)):
        reasons = "; ".join(f"{key} {reason}" for key, reason in unsupported)
        remedy = "Use `regard serve` or TensorFlow Serving, which run every model."
        raise UserError(f"CTranslate2 cannot run this model: {reasons}", str(version), remedy)


def _stored_outputs(version: Path) -> list[dict[str, Any]]:
    """Return the outputs stored with the SavedModel, except those for empty inputs."""
    rows = json.loads((version / IN_MEMORY).read_text(encoding="utf-8"))
    return [row["answer"] for row in rows if row["answer"]["source_length"] > 1]


def _compare_scores(
    folder: Path,
    outputs: Sequence[Mapping[str, Any]],
    first_tokens: Sequence[tuple[str, str]],
    quantization: str,
) -> float | None:
    """Return the largest difference per token between the scores of both engines."""
    if not outputs:
        return None
    import ctranslate2 as engine

    translator = engine.Translator(str(folder), device="cpu", intra_threads=1)
    sources = [_tokens(output, "source") for output in outputs]
    targets = [_tokens(output, "target") for output in outputs]
    prefixes = ctranslate2.target_prefixes(sources, first_tokens)
    scores = translator.score_batch(
        sources, [[*prefix, *target] for prefix, target in zip(prefixes, targets, strict=True)]
    )
    differences = []
    for output, prefix, score in zip(outputs, prefixes, scores, strict=True):
        length = output["target_length"]
        rated = sum(score.log_probs[len(prefix) :][:length])  # a prefix has the probability 1
        differences.append(abs(rated - output["score"]) / length)
    largest = max(differences) if all(map(math.isfinite, differences)) else math.nan
    problem = f"The log-probability of a token differs by {largest:.2g} in CTranslate2."
    if quantization == "float32" and not largest <= TOLERANCE:
        raise RuntimeError(problem)
    if not largest <= TOLERANCE_QUANTIZED:
        problem += f" At most {TOLERANCE_QUANTIZED} is allowed with {quantization}."
        remedy = f"Use another quantization than {quantization}, for example float32, or serve"
        remedy += " with TensorFlow, which stores 8-bit matrices if serving.quantization is int8."
        raise UserError(problem, remedy=remedy)
    return largest


def _tokens(output: Mapping[str, Any], side: str) -> Sequence[str]:
    """Return the tokens of a side without the end of sentence, which CTranslate2 adds."""
    tokens = output[f"{side}_pieces"][: output[f"{side}_length"]]
    return tokens[:-1] if tokens and tokens[-1] == "</s>" else tokens


def _search_arguments(
    search: Mapping[str, Any], outputs: Sequence[Mapping[str, Any]], prefix_length: int
) -> dict[str, Any]:
    """Return the arguments of ``translate_batch`` that approximate a section ``search``.

    CTranslate2's length penalty is a power of the length n, ours of (k + n) / (k + 1), where k is
    ``length_offset`` (5 in Wu et al. 2016, eq. 14). The exponents are chosen so that both have the
    same slope at the mean output length. CTranslate2 counts the tokens of a prefix, too.
    """
    if not search:
        return {}
    arguments: dict[str, Any] = {
        "max_input_length": search["max_source_length"] + 1,
        "max_decoding_length": prefix_length
        + int(
            search["max_length_offset"] + search["max_source_length"] * search["max_length_factor"]
        ),
        "min_decoding_length": 0,  # by default 1, so that no output is empty
    }
    if "temperature" in search:
        return {
            **arguments,
            "sampling_temperature": search["temperature"],
            "sampling_topp": search["top_p"],
            "beam_size": 1,
            "sampling_topk": search["top_k"],
            "num_hypotheses": search["samples"],
        }
    lengths = [output["target_length"] for output in outputs]
    mean = sum(lengths) / len(lengths) if lengths else 20.0
    arguments["beam_size"] = search.get("beam_size", 1)
    slope = (mean + prefix_length) / (mean + search.get("length_offset", 5.0))
    arguments["length_penalty"] = round(search.get("length_penalty", 0.0) * slope, 2)
    keys = ("coverage_penalty", "no_repeat_ngram_size", "patience")
    # CTranslate2's default patience is 1.
    values = {key: search.get(key) for key in keys}
    return {**arguments, **{k: x for k, x in values.items() if x and not isinstance(x, str)}}
