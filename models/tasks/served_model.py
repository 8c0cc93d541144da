"""The result of an export: a graph, its signatures, and a contract that describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import tensorflow as tf

from regard.models.trainable_model import TrainableModel

F = TypeVar("F", bound=Callable[..., Any])

# The lengths of an output's dimensions after the batch, by the output that has them; see
# ``ServedModel.contract``.
OutputLengths = dict[str, list[str | None]]


@dataclass(frozen=True)
class ServedModel:
    """An exported model before it is written.

    Attributes:
        module: Owns everything that the signatures need. Its ``weights`` are those of the model in
            the model's order, by which a warm start finds them in the SavedModel.
        signatures: By name, with ``serving_default``. The first dimension of every output is the
            batch.
        contract: What the signatures take and return, as plain data. It is written into the
            SavedModel, so that clients need nothing else. Its keys:

            - ``task``: the name of the task;
            - ``inputs``: ``name`` and ``kind`` of each input (``text``; ``image``, encoded;
              ``points``, ``[batch, n, 2]``, and ``positions``, ``[batch, n]``, each with its
              lengths as ``<name>_length``);
            - ``answer``: the name of the main output, and ``answer_kind`` (``text``, ``number`` or
              ``positions``);
            - ``score``: the output with its log-probability, or None;
            - ``detail``: the signature with the most outputs;
            - ``scored``: the signature that computes the ``score`` of a given output, or None;
            - ``size``: the length of a row: the ``output`` or ``input`` that contains it, the
              number to subtract (``minus``), and its ``unit``; or None;
            - ``looks``: the attention that can be drawn: the outputs with the ``weights`` and with
              the labels of its ``rows`` and ``columns``; or None;
            - ``heads``: the ``signature`` that returns the attention of each head of each layer
              for a given output, and its ``looks``, each as above, with weights ``[layers,
              heads, ...]``; or None;
            - ``cut``: the output that counts the truncated tokens of an input, or None;
            - ``signatures``: for each its ``inputs`` as above (one that is not an input of the
              model says which input or output it is ``like``) and its ``outputs``: for every
              dimension after the batch the output with its length, or None if all of it is used.
    """

    module: tf.Module
    signatures: dict[str, Callable[..., Any]]
    contract: dict[str, Any]


class ServedModule(tf.Module):
    """Base class of the modules that own an exported graph.

    The SavedModel contains what is attached to the module: the variables, and what a task adds,
    such as tokenizers. The model itself is not attached: TensorFlow would write Keras's variables a
    second time, and restore every layer wherever the model is served.

    Args:
        model: The trained model, in float32.
        name: The name of the module.
    """

    def __init__(self, model: TrainableModel, name: str):
        super().__init__(name=name)
        object.__setattr__(self, "_model", model)  # TensorFlow would track an ordinary attribute
        self.weights = [weight.value for weight in model.weights]


def with_signature(specs: Sequence[tf.TensorSpec]) -> Callable[[F], F]:
    """Return a decorator that makes a function or method a graph with inputs of these specs.

    AutoGraph is off: below the tasks every loop is one of ``keras.ops``, and analyzing the source
    would take longer than tracing. A Python condition on a tensor raises TypeError.
    """
    return tf.function(input_signature=list(specs), autograph=False)
