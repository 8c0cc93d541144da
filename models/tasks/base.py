"""What a task does; everything else in Regard is the same for all tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from models.tasks.description import Description
from models.tasks.served import Served
from models.trained import TrainedModel

# A batch of model inputs → the answers to it, and for each the references.
Answering = Callable[[Mapping[str, tf.Tensor]], tuple[list[Any], list[list[Any]]]]


class Task(ABC):
    """The seam that a new use of attention implements, in one folder.

    A raw row is preprocessed inside the Transform graph; what comes out is a transformed row.
    Sections of the YAML are given as plain mappings.

    Attributes:
        description: what the task says of itself without TensorFlow.
    """

    description: Description

    @property
    def several(self) -> bool:
        """Whether a transformed row makes several rows to train on (see ``spread``)."""
        return self.description.reference.several

    @abstractmethod
    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Raw features → the features that are trained on; runs inside the Transform graph.

        Args:
            inputs: a batch of the raw features, dense or sparse.
            tokenizers: one a text feature.
            settings: what ``description.preprocessing`` gave.
        """

    def spread(self, features: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        """One transformed row → the rows that are trained on, stacked: ``[n, ...]`` or ragged."""
        raise TypeError(f"the task {self.description.name} does not say how rows are spread")

    @abstractmethod
    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The length of one row to train on, by which rows are put into buckets; int32."""

    @abstractmethod
    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Whether a row can be trained on at all (no side is empty); bool."""

    @abstractmethod
    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """One row to train on → what the model's ``call`` takes, before padding with zeros."""

    def asked(
        self, features: Mapping[str, tf.Tensor], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """One row to train on → raw inputs of the exported model that give it back.

        A text is ``bytes``, an image the bytes of a file, points an array ``[n, 2]``.
        """
        raise TypeError(f"the task {self.description.name} does not say how a row is asked")

    @abstractmethod
    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> TrainedModel:
        """The model, with its weights made.

        Args:
            model: the section ``model``.
            training: the section ``training``; its ``precision`` and its losses matter.
            pieces: the size of each text feature's vocabulary.
        """

    def embeddings(self, model: Any, key: str) -> tuple[Any, str]:
        """Where the word vectors of ``model.pretrained.<key>`` go.

        Returns:
            The embedding layer, and the text feature whose pieces it has vectors for.
        """
        raise TypeError(f"the task {self.description.name} reads no word vectors")

    def by_piece(self, model: Any) -> list[tuple[Any, int, str]]:
        """The weights that have a row for each piece of a vocabulary.

        Returns:
            Of each the variable, which of its axes counts the pieces, and their text feature. What
            such an axis has beyond the pieces is not the vocabulary's.
        """
        if self.description.text_features:
            raise TypeError(f"the task {self.description.name} does not say which rows are pieces")
        return []

    @abstractmethod
    def answering(
        self, model: Any, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Answering:
        """What answers batches of model inputs while training, quickly rather than best.

        Args:
            model: in float32; its weights change between two calls.
            tokenizers: one a text feature.
            config: the sections ``model`` and ``search``.
        """

    @abstractmethod
    def served(
        self, model: Any, tokenizers: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Served:
        """What is exported.

        Args:
            model: trained, in float32.
            tokenizers: one a text feature.
            config: the sections ``model`` and ``search``.
        """


def policy_of(training: Mapping[str, Any]) -> keras.DTypePolicy:
    """The policy of a model's layers, by ``training.precision``.

    ``auto`` is float32 here: what a GPU is fast in is known where a training runs.
    """
    precision = training["precision"]
    return keras.DTypePolicy("float32" if precision == "auto" else precision)
