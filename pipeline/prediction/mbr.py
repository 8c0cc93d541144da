"""Minimum Bayes risk decoding with any model that draws samples, outside of its graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.registry.records import VersionRecord
from regard.core.errors import UserError
from regard.models.mbr import UTILITIES, choose_sample
from regard.pipeline.prediction.models import N_BEST, open_model
from regard.serving.contract import DEFAULT_SIGNATURE, Contract, answer_kind
from regard.serving.saved_model import InputRow, Model, Prediction

# With the probabilities of a training with label smoothing, samples of temperature 1 are too
# random: on Multi30k their choice is worse than the output of a beam search.
_SAMPLES, _TEMPERATURE = 32, 0.5
_SHARPENING = {"temperature", "top_k", "top_p"}


def sampling_search(utility: str, search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the search that draws the samples.

    Args:
        utility: a key of `UTILITIES`.
        search: the options that the user has given.

    Raises:
        UserError: the utility is unknown, or there are no two samples to choose from.
    """
    if utility not in UTILITIES:
        raise UserError(f"There is no utility {utility!r}.", "--mbr", f"Use {UTILITIES[0]}.")
    options = {"type": "sampling", "samples": _SAMPLES, **search}
    if not _SHARPENING.intersection(options):
        options["temperature"] = _TEMPERATURE
    if options["type"] != "sampling" or "n_best" in options:
        raise UserError("Minimum Bayes risk decoding needs samples.", "--mbr", "Use --samples N.")
    if options["samples"] < 2:
        message = f"There is nothing to choose from {options['samples']} samples."
        raise UserError(message, "--samples", "Use at least 2.")
    return options


def open_sampled(
    text: str,
    registry: Path,
    utility: str,
    search: Mapping[str, Any] | None = None,
    server: str | None = None,
) -> tuple[Model, VersionRecord]:
    """Load a model whose outputs are chosen among its samples; see ``open_model``.

    Args:
        text: the model.
        registry: the registry's folder.
        utility: a key of `UTILITIES`.
        search: options of the samples.
        server: the address of a server, which cannot draw other samples than its model.

    Raises:
        UserError: there is no such model, or it has no samples to choose from.
    """
    options = sampling_search(utility, search or {})
    model, record = open_model(text, registry, server, options)
    return MbrModel(model), record


class MbrModel:
    """A model whose output for a row is the sample with the highest expected utility.

    Its predictions have the outputs of the default signature: the text, its log-probability, and
    perhaps the number of truncated tokens of the input. The detail signature adds the tokens and
    the attention of the chosen text, which the model computes again, if it scores texts.

    Args:
        model: a model with the signature of all samples.

    Raises:
        UserError: the outputs of the model are no texts.
    """

    def __init__(self, model: Model):
        if not answer_kind(model.contract).is_text or N_BEST not in model.contract["signatures"]:
            message = f"A model for {model.contract['task']} writes no texts to choose from."
            raise UserError(message, "--mbr")
        self._model = model
        self.contract = _sampled_contract(model.contract)

    def predict(self, name: str, rows: Sequence[InputRow]) -> list[Prediction]:
        """Return the chosen sample of each row; other signatures are those of the model."""
        if name not in (DEFAULT_SIGNATURE, self.contract["detail"]):
            return self._model.predict(name, rows)
        samples = self._model.predict(N_BEST, rows)
        chosen = [self._choose(prediction) for prediction in samples]
        return chosen if name == DEFAULT_SIGNATURE else self._with_details(rows, chosen)

    def _choose(self, prediction: Prediction) -> Prediction:
        outputs = dict(prediction.outputs)
        best = choose_sample(outputs["hypotheses"])
        outputs[self.contract["answer"]] = outputs["hypotheses"][best]
        outputs[str(self.contract["score"])] = outputs["log_probabilities"][best].item()
        names = self.contract["signatures"][DEFAULT_SIGNATURE]["outputs"]
        return Prediction({name: outputs[name] for name in names}, self.contract)

    def _with_details(
        self, rows: Sequence[InputRow], chosen: Sequence[Prediction]
    ) -> list[Prediction]:
        """Return the predictions with the tokens and the attention of their texts."""
        scored = str(self.contract["scored"])
        names = self.contract["signatures"][self.contract["detail"]]["outputs"]
        target = _target_name(self.contract)
        texts = [
            {**row, target: prediction.hypothesis}
            for row, prediction in zip(rows, chosen, strict=True)
        ]
        details = self._model.predict(scored, texts)
        return [
            Prediction(
                {name: {**detail.outputs, **prediction.outputs}[name] for name in names},
                self.contract,
            )
            for prediction, detail in zip(chosen, details, strict=True)
        ]


def _target_name(contract: Contract) -> str:
    """Return the input of the signature that scores texts which has the text."""
    inputs = {entry["name"] for entry in contract["inputs"]}
    scored = contract["signatures"][str(contract["scored"])]["inputs"]
    return next(entry["name"] for entry in scored if entry["name"] not in inputs)


def _sampled_contract(contract: Contract) -> Contract:
    """Return the contract of a model whose outputs are chosen samples, without a confidence."""
    names = [contract["answer"], contract["score"], contract["cut"]]
    scored, detail = contract["scored"], contract["detail"]
    default = contract["signatures"][DEFAULT_SIGNATURE]["inputs"]
    signatures = {name: entry for name, entry in contract["signatures"].items() if name == scored}
    signatures[DEFAULT_SIGNATURE] = {
        "inputs": default,
        "outputs": {name: [] for name in names if name is not None},
    }
    changes: Any = {"confidence": None, "heads": None, "signatures": signatures}
    if scored is None or detail == DEFAULT_SIGNATURE:
        return {**contract, **changes, "size": None, "looks": None, "detail": DEFAULT_SIGNATURE}
    known = {*signatures[scored]["outputs"], *signatures[DEFAULT_SIGNATURE]["outputs"]}
    outputs = contract["signatures"][detail]["outputs"]
    signatures[detail] = {
        "inputs": default,
        "outputs": {name: axes for name, axes in outputs.items() if name in known},
    }
    return {**contract, **changes}
