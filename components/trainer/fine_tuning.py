"""Fine-tuning: which weights are trained, and low-rank changes of kernels (LoRA)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from regard.components.settings.trainer import NODE
from regard.components.trainer.optimizer_state import unwrap
from regard.core import events
from regard.core.errors import UserError
from regard.core.suggestions import suggest
from regard.models.settings.fine_tuning import LoraConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.network import Network

KEY = "training.freeze"


def set_trainable(model: keras.Model, network: Network, training: TrainingConfig) -> None:
    """Freeze what ``training.freeze`` names, and with ``training.lora`` all that is not adapted.

    Args:
        model: the built model, not compiled yet.
        network: what the task trains.
        training: the section ``training``.

    Raises:
        UserError: a name matches no weight, or no weight remains to be trained.
    """
    for name in training.freeze:
        matches = [weight for weight in model.weights if _matches(name, weight.path)]
        if not matches:
            parts = dict.fromkeys(part for weight in model.weights for part in _parts(weight.path))
            raise UserError(
                f"No weight of the model belongs to {name!r}. {suggest(name, parts)}",
                where=KEY,
                remedy=f"Use these names, or words of them: {', '.join(parts)}.",
            )
        for weight in matches:
            weight.trainable = False
    if training.freeze and not model.trainable_weights:
        remedy = "Freeze fewer parts."
        raise UserError("It freezes all weights, so nothing can be trained.", KEY, remedy)
    if training.lora:
        _freeze_unadapted(model, network, training.lora.rank)


def _freeze_unadapted(model: keras.Model, network: Network, rank: int) -> None:
    """Freeze all weights but the kernels whose changes of this rank are smaller than themselves.

    Raises:
        UserError: there is no such kernel.
    """
    by_token = {id(weight) for weight, *_ in network.vocab_weights(model)}
    for weight in model.trainable_weights:
        is_kernel = _matches("kernel", weight.path) and not _matches("embedding", weight.path)
        is_larger = rank * sum(weight.shape[-2:]) < math.prod(weight.shape[-2:])
        weight.trainable = is_kernel and is_larger and id(weight) not in by_token
    if not model.trainable_weights:
        message = f"No kernel that is not frozen is larger than its change of rank {rank}."
        remedy = "Choose a lower rank, or freeze fewer parts."
        raise UserError(message, "training.lora.rank", remedy)


def _matches(name: str, path: str) -> bool:
    """Whether the names of a path contain the parts of a name, in their order."""
    parts = iter(path.split("/")[1:])
    return all(any(f"_{word}_" in f"_{part}_" for part in parts) for word in name.split("/"))


def _parts(path: str) -> list[str]:
    """The names in a path, without the model and without Keras's counter of its outer layers."""
    outer, *inner = path.split("/")[1:]
    return [outer.rstrip("0123456789").rstrip("_") if inner else outer, *inner]


def report_trained_weights(
    model: keras.Model, network: Network, training: TrainingConfig, start: Mapping[str, Any]
) -> None:
    """Report how many parameters are trained, and frozen ones that are not those of a model.

    Args:
        model: the compiled model.
        network: what the task trains.
        training: the section ``training``.
        start: what ``initialize_weights`` returns.
    """
    if not (training.lora or training.freeze):
        return
    key = "training.lora" if training.lora else KEY
    trained, total = trained_parameters(model), model.count_params()
    text = f"{key}: {trained:,} parameters are trained; the model has {total:,}"
    events.emit("note", node=NODE, text=text)
    vocabularies = start.get("vocabularies", {}).values()
    new = sum(counts["tokens"] - counts["copied"] for counts in vocabularies)
    warning = ""
    if not start:
        warning = "frozen weights keep their initial values, for there is no model to start from"
    elif new and (training.lora or not all(w.trainable for w, *_ in network.vocab_weights(model))):
        warning = f"vectors of {new:,} new tokens are not trained; see warm_start.keep_tokenizer"
    if warning:
        events.emit("warning", node=NODE, text=f"{key}: {warning}")


def trained_parameters(model: keras.Model) -> int:
    """The number of parameters that the optimizer changes."""
    variables = unwrap(model.optimizer)._trainable_variables
    return sum(math.prod(variable.shape) for variable in variables)


class LowRankAdapters:
    """Low-rank changes of kernels, which the optimizer trains in place of the kernels.

    Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", §4.1: W = W_0 + s A B,
    with s = alpha / rank, a Gaussian A, and B = 0 at first. The model holds W, which follows from
    the optimizer's W_0, A and B after every update; the gradients of the factors are those of W
    times the other factor. So the model keeps its structure in evaluations, checkpoints, averages
    and the export, and kernels of any layer can be adapted.

    Args:
        config: rank and alpha.
    """

    def __init__(self, config: LoraConfig):
        self._rank, self._scale = config.rank, config.alpha / config.rank
        self._kernels: list[tuple[Any, ...]] = []  # W, W_0, A and B of each

    @property
    def kernels(self) -> list[Any]:
        """The kernels of the model, in the order of its trainable weights."""
        return [kernel for kernel, *_ in self._kernels]

    def create(self, optimizer: Any, kernels: Sequence[Any]) -> list[Any]:
        """Create the factors as variables of an optimizer, and return them.

        Args:
            optimizer: an optimizer that is not built yet.
            kernels: ``[..., inputs, outputs]``; leading axes have factors of their own.
        """
        for kernel in kernels:
            *lead, inputs, outputs = kernel.shape
            name = kernel.path.replace("/", "_")
            gaussian = keras.initializers.RandomNormal(stddev=inputs**-0.5)
            shapes = kernel.shape, (*lead, inputs, self._rank), (*lead, self._rank, outputs)
            variables = (
                optimizer.add_variable(shape, initializer, name=f"{name}_{kind}")
                for shape, initializer, kind in zip(
                    shapes, ("zeros", gaussian, "zeros"), ("start", "lora_a", "lora_b"), strict=True
                )
            )
            self._kernels.append((kernel, *variables))
        self.start()
        return [factor for *_, a, b in self._kernels for factor in (a, b)]

    def start(self) -> None:
        """Take the model's present kernels as W_0; B must still be 0."""
        for kernel, start, *_ in self._kernels:
            start.assign(ops.copy(kernel))  # JAX would share the array, and donates both

    def gradients(self, gradients: Sequence[Any]) -> list[Any]:
        """Return the gradients of the factors from those of the kernels."""
        result: list[Any] = []
        for gradient, (*_, a, b) in zip(gradients, self._kernels, strict=True):
            if gradient is None:  # the kernel is not used
                result += [None, None]
                continue
            scaled = self._scale * ops.convert_to_tensor(gradient)
            result.append(ops.matmul(scaled, ops.swapaxes(b, -1, -2)))
            result.append(ops.matmul(ops.swapaxes(a, -1, -2), scaled))
        return result

    def merge(self) -> None:
        """Set the model's kernels to W."""
        for kernel, start, a, b in self._kernels:
            kernel.assign(start + self._scale * ops.matmul(a, b))
