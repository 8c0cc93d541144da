"""What a task exports: a graph, its signatures, and what those mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import tensorflow as tf

from models.trained import TrainedModel

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Served:
    """An exported model before it is written.

    Attributes:
        module: owns all that the signatures need; its ``weights`` are the model's, in its order,
            by which a later training finds them in the SavedModel.
        signatures: by name; ``serving_default`` is one of them. The first dimension of every
            output is the batch.
        contract: how to ask them and what their outputs mean, as plain data; it lies beside the
            SavedModel, so that whoever has that needs nothing else. Its keys:

            - ``task``: the task's name;
            - ``inputs``: of what is asked for an answer, ``name`` and ``kind`` (``text``;
              ``image``, encoded; ``points``, ``[batch, n, 2]``, and ``positions``, ``[batch, n]``,
              each with their numbers as ``<name>_length``);
            - ``answer``: the output that answers, and ``answer_kind`` (``text``, ``number`` or
              ``positions``);
            - ``score``: the output with the answer's log-probability, or None;
            - ``detail``: the signature that tells most of an answer;
            - ``scored``: the signature that gives a given answer its ``score``, or None;
            - ``size``: what rows are put into buckets by: the ``output`` or the ``input`` that
              counts it, what is to be subtracted (``minus``), and its ``unit``; or None;
            - ``looks``: what can be drawn: the outputs with the ``weights``, and with the names
              of their ``rows`` and ``columns``; or None;
            - ``heads``: the ``signature`` that shows where each head of each layer looks while it
              writes a given answer, and its ``looks``, each as above, with weights ``[layers,
              heads, ...]``; or None;
            - ``cut``: the output that counts what was not read of an input, or None;
            - ``signatures``: for each its ``inputs``, as above, where one that is none of the
              model's says what it is ``like``: one of those, or the answer; and its ``outputs``:
              for each, for every dimension after the batch, the output that says how much of it
              is real, or None for all.
    """

    module: tf.Module
    signatures: dict[str, Callable[..., Any]]
    contract: dict[str, Any]


class ServedModule(tf.Module):
    """The base of what owns an exported graph.

    The SavedModel keeps what hangs on it: the variables, and what a task adds, such as tokenizers.
    The model itself does not hang on it: TensorFlow writes Keras's variables beside its own, so
    all weights would be there twice, and every layer would be loaded again wherever it is served.

    Args:
        model: the trained model, in float32.
        name: of the module.
    """

    def __init__(self, model: TrainedModel, name: str):
        super().__init__(name=name)
        object.__setattr__(self, "_model", model)  # past TensorFlow, which tracks what is set
        self.weights = [weight.value for weight in model.weights]


def with_signature(specs: Sequence[tf.TensorSpec]) -> Callable[[F], F]:
    """Makes a function, or a method, a graph of inputs of these kinds.

    Without AutoGraph: below the tasks every loop is one of ``keras.ops``, so that there is nothing
    to rewrite, and looking for it takes longer than making the graph. A condition on a tensor
    raises TypeError.
    """
    return tf.function(input_signature=list(specs), autograph=False)
