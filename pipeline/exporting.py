"""A model of the registry for CTranslate2, checked against what it answered in TensorFlow."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import atomic_write, replace_dir
from components.registry import Registry, read_record
from serving import ctranslate2
from serving.saved_model import IN_MEMORY, read_contract

ABOUT = "regard.json"
# Of the logarithm of a probability, a piece; float32 in another order of operations.
TOLERANCE = 1e-3


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        model: which version it is of.
        folder: where it lies.
        size: of all files, in bytes.
        rows: with how many answers it was checked.
        difference: the largest between the logarithms of the probability of an answer there and
            here, divided by its pieces; None where there was no answer to check with.
        arguments: of CTranslate2's ``translate_batch``, nearest to the model's own search.
    """

    model: str
    folder: Path
    size: int
    rows: int
    difference: float | None
    arguments: dict[str, Any]


def to_ctranslate2(
    model: str, registry: Path, folder: Path, quantization: str, *, force: bool = False
) -> Exported:
    """Writes a model for CTranslate2 with its tokenizers; the folder is whole or not there.

    Args:
        model: ``NAME``, ``NAME@VERSION``, or a folder with a SavedModel.
        registry: the registry's folder.
        folder: where to.
        quantization: one of ``serving.ctranslate2.QUANTIZATIONS``.
        force: replace an earlier export that lies there.

    Raises:
        UserError: there is no such model, CTranslate2 cannot express it or is not installed,
            or something lies there already, or the registry does.
        RuntimeError: it gives other probabilities in float32, or none: a mistake of ours.
    """
    version = Registry(registry).resolve(model)
    _check_place(folder, force, version.resolve(), registry.resolve())
    _installed()
    kept = _kept(version)
    found = ctranslate2.obstacles(kept.model)
    if found:
        raise UserError(
            "CTranslate2 cannot run this model: " + "; ".join(f"{key} {why}" for key, why in found),
            where=str(version),
            remedy="Serve it with `regard serve` or TensorFlow Serving, which run any model.",
        )
    pieces = {side: _pieces(kept.tokenizers[side]) for side in ("source", "target")}
    spec = ctranslate2.specification(
        dict(zip(kept.names, kept.weights, strict=True)), kept.model, pieces
    )
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        temporary.chmod(0o755)
        spec.save(str(temporary))
        for side, serialized in kept.tokenizers.items():
            atomic_write(temporary / f"{side}.model", serialized)
        answers = _answers(version)
        difference = _compared(temporary, answers, exact=quantization == "float32")
        record = read_record(version)
        arguments = _arguments(record.get("config", {}).get("search") or {}, answers)
        name = f"{version.parent.name}@{version.name}" if record else str(version)
        about = {
            "model": name,
            "quantization": quantization,
            "checked": {"rows": len(answers), "largest_difference_per_piece": difference},
            "translate_batch": arguments,
        }
        atomic_write(temporary / ABOUT, json.dumps(about, indent=2) + "\n")
        replace_dir(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Exported(name, folder, size, len(answers), difference, arguments)


def _check_place(folder: Path, force: bool, *kept: Path) -> None:
    """Whether the export may lie there: nothing does yet, or an earlier export that is replaced.

    Raises:
        UserError: it may not.
    """
    place, another = folder.resolve(), "Give another folder with --out."
    for path in kept:
        if place == path or place in path.parents or path in place.parents:
            raise UserError(f"the folder is of the registry, or holds {path}", str(folder), another)
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise UserError("there is something already, and no folder", str(folder), another)
    if not any(folder.iterdir()):
        return
    if not force:
        remedy = "--force to replace an earlier export, or --out for another folder."
        raise UserError("there is something already", str(folder), remedy)
    if not ((folder / ABOUT).is_file() and (folder / "model.bin").is_file()):
        raise UserError("what lies there is no export of a model", str(folder), another)


def _installed() -> None:
    try:
        import ctranslate2  # noqa: F401
    except ImportError:
        raise UserError(
            "CTranslate2 is not installed", remedy='Install it: pip install "regard[ctranslate2]".'
        ) from None


def _kept(version: Path) -> Any:
    """The weights and tokenizers of a SavedModel of text to text."""
    contract = read_contract(version)
    if contract["answer_kind"] != "text" or contract["inputs"][0]["kind"] != "text":
        raise UserError(
            f"CTranslate2 runs models from texts to texts, and this is a model of the task "
            f"{contract['task']}",
            where=str(version),
        )
    from components.trainer import kept

    if (found := kept.read(version)) is None:
        raise UserError(
            "the version tells no names of its weights: it is from before they were kept",
            where=str(version),
            remedy="Run its pipeline once more; a finished training is only exported again.",
        )
    return found


def _pieces(serialized: bytes) -> list[str]:
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    return [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]


def _answers(version: Path) -> list[dict[str, Any]]:
    """What lies beside the SavedModel: its answers to some rows, but to empty ones."""
    rows = json.loads((version / IN_MEMORY).read_text(encoding="utf-8"))
    return [row["answer"] for row in rows if row["answer"]["source_length"] > 1]


def _compared(folder: Path, answers: Sequence[Mapping[str, Any]], exact: bool) -> float | None:
    """How far the probabilities of answers are from those that the SavedModel gave them."""
    if not answers:
        return None
    import ctranslate2 as engine

    translator = engine.Translator(str(folder), device="cpu", intra_threads=1)
    found = translator.score_batch(
        [_written(answer, "source") for answer in answers],
        [_written(answer, "target") for answer in answers],
    )
    differences = [
        abs(sum(score.log_probs[: answer["target_length"]]) - answer["score"])
        / answer["target_length"]
        for answer, score in zip(answers, found, strict=True)
    ]
    worst = max(differences) if all(map(math.isfinite, differences)) else math.nan
    if math.isnan(worst) or (exact and worst > TOLERANCE):
        raise RuntimeError(
            f"in CTranslate2 an answer's log-probability differs by {worst:.2g} a piece"
        )
    return worst


def _written(answer: Mapping[str, Any], side: str) -> Sequence[str]:
    """The pieces of a side without the end of the sentence, which CTranslate2 puts there itself."""
    pieces = answer[f"{side}_pieces"][: answer[f"{side}_length"]]
    return pieces[:-1] if pieces and pieces[-1] == "</s>" else pieces


def _arguments(search: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The arguments of ``translate_batch`` that are nearest to a section ``search``.

    Its length penalty is a power of the length n, ours of (5 + n) / 6 (Wu et al. 2016, eq. 14). At
    the mean length of some answers both rise alike: there the exponents are as n and n + 5.
    """
    if not search:
        return {}
    longest = (
        search["max_length_offset"] + search["max_source_length"] * search["max_length_factor"]
    )
    found: dict[str, Any] = {
        "max_input_length": search["max_source_length"] + 1,
        "max_decoding_length": int(longest),
    }
    if search["type"] == "sampling":
        found |= {"sampling_temperature": search["temperature"], "sampling_topp": search["top_p"]}
        return {**found, "beam_size": 1, "sampling_topk": search["top_k"]}
    found["beam_size"] = search.get("beam_size", 1)
    if search.get("length_penalty"):
        lengths = [answer["target_length"] for answer in answers]
        mean = sum(lengths) / len(lengths) if lengths else 20.0
        found["length_penalty"] = round(search["length_penalty"] * mean / (mean + 5), 2)
    for ours, theirs in (
        ("coverage_penalty", "coverage_penalty"),
        ("no_repeat_ngram", "no_repeat_ngram_size"),
        ("patience", "patience"),
    ):
        if search.get(ours):
            found[theirs] = search[ours]
    if search.get("repetition_penalty", 1.0) != 1.0:
        found["repetition_penalty"] = search["repetition_penalty"]
    return found
