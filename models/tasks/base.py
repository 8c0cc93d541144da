"""The interface of a task: everything that differs between translation, captioning and others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description
from regard.models.tasks.served_model import ExportedModel, ServedModule
from regard.models.trainable_model import TrainableModel

# The columns of a batch or of a row, and the tokenizers, one per text feature.
Columns = Mapping[str, Any]
Tokenizers = Mapping[str, Any]
# Maps a batch of model inputs to its outputs, and to the references of each output.
DecodeFn = Callable[[Mapping[str, tf.Tensor]], tuple[list[Any], list[list[Any]]]]


class Task(ABC):
    """A task. Raw rows are preprocessed in the Transform graph; the results are transformed rows.

    Attributes:
        served: The class of the exported module.
        fixed_inputs: The model inputs whose dimensions do not depend on the lengths of rows.

    Args:
        description: What the task declares about itself.
    """

    served: type[ServedModule]
    fixed_inputs: tuple[str, ...] = ()

    def __init__(self, description: Description):
        self.description = description

    @abstractmethod
    def preprocess(self, inputs: Columns, tokenizers: Tokenizers, settings: Any) -> dict[str, Any]:
        """Convert raw features to training features; runs in the Transform graph.

        Args:
            inputs: A batch of the raw features, dense or sparse.
            tokenizers: One per text feature.
            settings: A section of the class ``description.preprocessing``.
        """

    @abstractmethod
    def lengths(self, features: Columns) -> Any:
        """Return the lengths by which training rows share batches; in the Transform graph.

        Args:
            features: A batch of transformed rows.

        Returns:
            One length for each training row of a transformed row, and 0 if it is incomplete, that
            is if a side is empty; integers ``[batch, (training rows)]``, dense or ragged.
        """

    def select_references(self, features: Columns, numbers: tf.Tensor) -> Columns:
        """Reduce transformed rows to the references of training rows.

        Args:
            features: A batch of transformed rows, one for each training row.
            numbers: The number of the training row in its transformed row, ``[batch]``.
        """
        return features

    @abstractmethod
    def model_inputs(self, features: Columns) -> dict[str, tf.Tensor]:
        """Convert a batch of training rows to the inputs of the model's ``call``, padded with 0."""

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        """Convert a training row to raw inputs of the exported model.

        A text is ``bytes``, an image the bytes of a file, points an array ``[n, 2]``.
        """
        raise TypeError(f"The task {self.description.name} does not implement raw_inputs().")

    @abstractmethod
    def build(
        self, model: Any, training: TrainingConfig, vocabulary_sizes: Mapping[str, int]
    ) -> TrainableModel:
        """Build the model and its weights.

        Args:
            model: The section ``model``, of the class ``description.model``.
            training: The section ``training``; its precision and its losses matter.
            vocabulary_sizes: The vocabulary size of each text feature.
        """

    def embeddings(self, model: Any, key: str) -> tuple[Any, str]:
        """Return where the word vectors of ``model.pretrained.<key>`` are loaded.

        Returns:
            The embedding layer, and the text feature of its vocabulary.
        """
        raise TypeError(f"The task {self.description.name} does not read word vectors.")

    def vocab_weights(self, model: Any) -> list[tuple[Any, int, str]]:
        """Return the weights with one row per token of a vocabulary.

        Returns:
            For each the variable, its vocabulary axis, and the text feature. Rows after those of
            the vocabulary do not belong to tokens.
        """
        if self.description.text_features:
            raise TypeError(f"The task {self.description.name} does not implement vocab_weights().")
        return []

    @abstractmethod
    def decode_fn(self, model: Any, tokenizers: Tokenizers, settings: Any, search: Any) -> DecodeFn:
        """Return the function that decodes batches during training, for speed with a greedy search.

        Args:
            model: In float32; its weights change between calls.
            tokenizers: One per text feature.
            settings: The section ``model``.
            search: The section ``search``; None for a task without one.
        """

    def served_model(
        self, model: Any, tokenizers: Tokenizers, settings: Any, search: Any, **options: Any
    ) -> ExportedModel:
        """Return what is exported.

        Args:
            model: The trained model, in float32.
            tokenizers: One per text feature.
            settings: The section ``model``.
            search: The section ``search``; None for a task without one.
            options: Further options of the exported module, such as ``split_sentences``.
        """
        module = self.served(self.description, model, tokenizers, settings, search, **options)
        return module.served_model()


def flat_values(column: Any) -> tf.Tensor:
    """Return all values of a dense or sparse raw feature; ``[batch]`` with one value per row."""
    values = column.values if isinstance(column, tf.SparseTensor) else column
    return tf.reshape(values, [-1])


def to_ragged(column: Any) -> tf.RaggedTensor:
    """Return a raw feature as ragged; it is dense if all rows have the same number of values."""
    if isinstance(column, tf.RaggedTensor):
        return column
    if isinstance(column, tf.SparseTensor):
        return tf.RaggedTensor.from_sparse(column)
    return tf.RaggedTensor.from_tensor(column)


def dtype_policy(training: TrainingConfig) -> keras.DTypePolicy:
    """Return the policy of a model's layers; ``precision: auto`` is float32.

    Where the training runs, ``auto`` has already been replaced by what the GPU is fast in.
    """
    precision = training.precision
    return keras.DTypePolicy("float32" if precision == "auto" else precision)
