"""The network of a task: its model, and the batches that the model reads. Keras and NumPy only."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from regard.core.ragged import Ragged
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description
from regard.models.tensors import Tensor
from regard.models.trainable_model import TrainableModel

# The SentencePiece model of each text feature, as ``sentencepiece.SentencePieceProcessor``.
Processors = Mapping[str, Any]
# The columns of transformed rows, by name.
Rows = Mapping[str, Ragged]
# The inputs of a model, by name.
Batch = dict[str, np.ndarray]


class BatchDecoder(ABC):
    """Maps a batch to the outputs of its rows, and to the references of each output.

    ``compute`` holds all that runs on the device, so that the Trainer can compile it for its
    backend. The weights of the model may change between calls.

    Attributes:
        inputs: the names of the arrays of a batch that ``compute`` takes, in their order.
    """

    inputs: tuple[str, ...]

    @abstractmethod
    def compute(self, *inputs: Tensor) -> Tensor:
        """Return what ``outputs`` needs, one row for each of the batch, in operations of Keras."""

    @abstractmethod
    def outputs(self, computed: np.ndarray, batch: Batch) -> list[Any]:
        """Return the output of each row.

        Args:
            computed: the result of ``compute``.
            batch: the batch.
        """

    @abstractmethod
    def references(self, batch: Batch) -> list[Any]:
        """Return the reference of each row of a batch."""


class Network(ABC):
    """What a task trains. It imports no TensorFlow, so that Keras may use another backend.

    Attributes:
        variable_axes: The axes of each model input whose size depends on the rows of a batch,
            except the first one, which is the batch.

    Args:
        description: What the task declares about itself.
    """

    variable_axes: Mapping[str, tuple[int, ...]]

    def __init__(self, description: Description):
        self.description = description

    def select_references(self, rows: Rows, numbers: np.ndarray) -> Rows:
        """Reduce transformed rows to the references of training rows.

        Args:
            rows: Transformed rows, one for each training row.
            numbers: The number of the training row in its transformed row, ``[rows]``.
        """
        return rows

    @abstractmethod
    def model_inputs(self, rows: Rows) -> Batch:
        """Convert training rows to the inputs of the model's ``call``, padded with 0."""

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

    @abstractmethod
    def batch_decoder(
        self, model: Any, processors: Processors, settings: Any, search: Any
    ) -> BatchDecoder:
        """Return what decodes batches during a training, for speed with a greedy search.

        Args:
            model: The model, in float32.
            processors: The tokenizer of each text feature.
            settings: The section ``model``.
            search: The section ``search``, whose limits apply; None for a task without one.
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


def dtype_policy(training: TrainingConfig) -> keras.DTypePolicy:
    """Return the policy of a model's layers; ``precision: auto`` is float32.

    Where the training runs, ``auto`` has already been replaced by what the GPU is fast in.
    """
    precision = training.precision
    return keras.DTypePolicy("float32" if precision == "auto" else precision)
