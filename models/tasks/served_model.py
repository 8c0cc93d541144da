"""The result of an export: a graph, its signatures, and a contract that describes them."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from regard.core.characters import BLANK
from regard.core.kinds import KINDS
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.description import Description
from regard.models.tasks.example_inputs import parse_inputs
from regard.models.tasks.search_outputs import create_search
from regard.models.trainable_model import TrainableModel

F = TypeVar("F", bound=Callable[..., Any])

# The lengths of an output's dimensions after the batch, by the output that has them; see
# ``ExportedModel.contract``.
OutputLengths = dict[str, list[str | None]]
# The signature for TFX's BulkInferrer, InfraValidator and Evaluator.
EXAMPLES_SIGNATURE = "serving_examples"
# The columns of a training row, by name.
Row = Mapping[str, np.ndarray]

_MIN_QUANTIZED = 1024  # numbers of a matrix that is stored as integers


@dataclass(frozen=True)
class ExportedModel:
    """An exported model before it is written.

    Attributes:
        module: Owns everything that the signatures need. Its ``weights`` are those of the model in
            the model's order, by which a warm start finds them in the SavedModel.
        signatures: By name, with ``serving_default``, and ``serving_examples``, which has its
            outputs for serialized tf.Examples; one text for each row is ``[batch, 1]`` there. The
            first dimension of every output is the batch.
        contract: What the signatures take and return, as plain data. It is written into the
            SavedModel, so that clients need nothing else. Its keys:

            - ``task``: the name of the task, and ``about``: a sentence about its models;
            - ``inputs``: ``name`` and ``kind`` of each input (``text``; ``image``, encoded;
              ``points``, ``[batch, n, dimensions]``, with ``dimensions`` if they are not 2, and
              ``positions``, ``[batch, n]``, each with its lengths as ``<name>_length``);
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
            - ``cut``: the output that counts the truncated tokens of an input, of a very long one
              at least, or None;
            - ``confidence``: the ``output`` with the probability that an output is good, the
              ``metric`` of a row and its lowest ``good`` value, the ``histogram`` of the confidence
              on the eval split in bins of equal widths, and the limit of the drift from it,
              ``max_drift``; or None;
            - ``tags``: the tags that a text may begin with, as ``<de> A dog runs.``; the model was
              trained with one of them before every text. Empty: none;
            - ``protect``: the section ``data.protect``, or None;
            - ``blank``: the regular expression of a whole text without a visible character, whose
              output is empty;
            - ``signatures``: for each its ``inputs`` as above (one that is not an input of the
              model says which input or output it is ``like``, or has a ``default``) and its
              ``outputs``: for every dimension after the batch the output with its length, or None
              if all of it is used. ``serving_examples`` is not among them.
    """

    module: tf.Module
    signatures: dict[str, Callable[..., Any]]
    contract: Any


@dataclass(frozen=True)
class ExportedSignature:
    """A signature of an exported model.

    Attributes:
        function: Takes the tensors of all inputs, and returns the outputs by name.
        inputs: The inputs, as in ``ExportedModel.contract``.
        outputs: The outputs, as in ``ExportedModel.contract``.
    """

    function: Callable[..., dict[str, tf.Tensor]]
    inputs: list[dict[str, Any]]
    outputs: OutputLengths


class ServedModule(tf.Module):
    """Base class of the modules that own an exported graph.

    The SavedModel contains what is attached to the module: the variables, and what a task adds,
    such as tokenizers. The model itself is not attached: TensorFlow would write Keras's variables a
    second time, and restore every layer wherever the model is served.

    Args:
        description: The description of the task.
        model: The trained model, in float32.
        tokenizers: One per text feature (``tensorflow_text``).
        settings: The section ``model``.
        search: The section ``search``; None for a task without one.
        split_sentences: Whether long texts are predicted sentence by sentence.
        int8: Whether matrices are stored as 8-bit integers. Every run computes them in float32.
        tags: The tags that begin the sources.
        protect: The section ``data.protect``; None without protected spans.

    Attributes:
        weights: The weights in the model's order; of a quantized one the integers.
        scales: The factors of each quantized weight, by its number.
        tokenizer_names: The tokenizers to export; empty: all. Of a shared one, copies would be
            stored.
    """

    tokenizer_names: tuple[str, ...] = ()

    def __init__(
        self,
        description: Description,
        model: TrainableModel,
        tokenizers: Mapping[str, Any],
        settings: Any,
        search: Any,
        split_sentences: bool = False,
        int8: bool = False,
        tags: Sequence[str] = (),
        protect: ProtectConfig | None = None,
    ):
        super().__init__()
        object.__setattr__(self, "_model", model)  # TensorFlow would track an ordinary attribute
        weights, self.scales = [weight.value for weight in model.weights], {}
        for number, weight in enumerate(weights if int8 else ()):
            if len(weight.shape) > 1 and np.prod(weight.shape) >= _MIN_QUANTIZED:
                integers, scales = quantize(weight.numpy())
                weights[number] = tf.Variable(integers, trainable=False)
                self.scales[str(number)] = tf.Variable(scales, trainable=False)
        self.weights = weights
        names = self.tokenizer_names or tokenizers
        self.tokenizers = {name: tokenizers[name] for name in names}
        self._description, self._settings, self._search_settings = description, settings, search
        self.split_sentences, self.tags, self.protect = split_sentences, tuple(tags), protect
        self._search: Any = create_search(search) if search is not None else None

    @property
    def _inputs(self) -> list[dict[str, Any]]:
        """The inputs of the model, as in the contract."""
        inputs = [feature for feature in self._description.features if feature.role == "input"]
        return [{"name": feature.name, "kind": feature.kind.name} for feature in inputs]

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures by name."""
        raise NotImplementedError

    def contract(self) -> dict[str, Any]:
        """Return the entries of the contract that depend on the task."""
        raise NotImplementedError

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        """Convert a training row to raw inputs of the exported model.

        A text is ``bytes``, an image the bytes of a file, points an array ``[n, dimensions]``.
        """
        raise NotImplementedError

    def served_model(self) -> ExportedModel:
        """Return the graphs of all signatures, and the contract that describes them."""
        signatures = self.signatures()
        contract = {
            "task": self._description.name,
            "about": self._description.about,
            "inputs": self._inputs,
            "answer": self._description.output,
            "answer_kind": self._description.output_kind.name,
            "score": "score",
            "detail": "align",
            "scored": "score",
            "heads": None,
            "cut": None,
            "confidence": None,
            "tags": list(self.tags),
            "protect": self.protect.model_dump(mode="json") if self.protect else None,
            "blank": BLANK,
            **self.contract(),
            "signatures": {
                name: {"inputs": signature.inputs, "outputs": signature.outputs}
                for name, signature in signatures.items()
            },
        }
        functions = {}
        for name, signature in signatures.items():
            specs = [spec for entry in signature.inputs for spec in _specs(**entry)]
            functions[name] = with_signature(specs)(self._with_float_weights(signature.function))
        default, inputs = functions["serving_default"], signatures["serving_default"].inputs

        @with_signature([tf.TensorSpec([None], tf.string, "examples")])
        def predict_examples(examples: tf.Tensor) -> dict[str, tf.Tensor]:
            outputs = default(*parse_inputs(examples, inputs))
            return {name: _as_column_of_texts(value) for name, value in outputs.items()}

        functions[EXAMPLES_SIGNATURE] = predict_examples
        return ExportedModel(self, functions, contract)

    def _with_float_weights(self, function: F) -> F:
        """Return a function in whose graph the quantized weights are multiplied by their scales."""
        if not self.scales:
            return function

        @functools.wraps(function)
        def call(*inputs: Any, **named_inputs: Any) -> Any:
            values = [
                (self._model.weights[int(i)], tf.cast(self.weights[int(i)], tf.float32) * scale)
                for i, scale in self.scales.items()
            ]
            with keras.StatelessScope(values):
                return function(*inputs, **named_inputs)

        return call  # type: ignore[return-value]


def _as_column_of_texts(output: tf.Tensor) -> tf.Tensor:
    """Return texts ``[batch]`` as ``[batch, 1]``; BulkInferrer of tfx-bsl 1.21 needs it."""
    is_text = output.dtype == tf.string and output.shape.rank == 1
    return output[:, None] if is_text else output


def quantize(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 8-bit integers and float32 scales whose product is the weight, rounded.

    Each index of the longest axis has a scale of its own, an output channel or a token for example.
    """
    others = tuple(axis for axis in range(weight.ndim) if axis != np.argmax(weight.shape))
    scales = np.max(np.abs(weight), axis=others, keepdims=True).astype(np.float32) / 127
    scales = np.where(scales > 0, scales, np.float32(1))
    return np.round(weight / scales).astype(np.int8), scales


def _specs(name: str, kind: str, dimensions: int = 2, **description: str) -> list[tf.TensorSpec]:
    """Return the tensors of an input of the contract."""
    dtype, text = KINDS[kind].tensor or ("", "")
    axes = text.strip("[]").split(", ")
    shape = [dimensions if axis == "dimensions" else None for axis in axes]
    specs = [tf.TensorSpec(shape, dtype, name)]
    if KINDS[kind].has_length:
        specs.append(tf.TensorSpec([None], tf.int32, f"{name}_length"))
    return specs


def with_signature(specs: Sequence[tf.TensorSpec]) -> Callable[[F], F]:
    """Return a decorator that makes a function or method a graph with inputs of these specs.

    AutoGraph is off: below the tasks every loop is one of ``keras.ops``, and analyzing the source
    would take longer than tracing. A Python condition on a tensor raises TypeError.
    """
    return tf.function(input_signature=list(specs), autograph=False)
