"""What a task says of itself; everything else in Regard is the same for all tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import keras
import tensorflow as tf


class Task(Protocol):
    """The seam that a new use of attention implements, in one file.

    Attributes:
        name: as in the YAML.
        features: the columns of the raw data, in order.
        text_features: those of them that a tokenizer is trained for.
        inputs: the features that the served model takes.
        reference: the feature that holds the right answer.
    """

    name: str
    features: tuple[str, ...]
    text_features: tuple[str, ...]
    inputs: tuple[str, ...]
    reference: str

    def preprocess(
        self, inputs: Mapping[str, Any], tokenizers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Raw columns → the features that are trained on; runs inside the Transform graph."""

    def length(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The length of one transformed row, by which rows are put into buckets; int32."""

    def is_complete(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Whether a transformed row can be trained on at all (no side is empty); bool."""

    def model_inputs(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """One transformed row → what the model's ``call`` takes, before padding."""

    def build(
        self, model: Mapping[str, Any], training: Mapping[str, Any], pieces: Mapping[str, int]
    ) -> keras.Model:
        """The model, with its weights made.

        Args:
            model: the YAML's section ``model``.
            training: the YAML's section ``training``; its ``precision`` and its losses matter.
            pieces: the size of each text feature's vocabulary.
        """

    def validation(
        self, model: keras.Model, tokenizers: Mapping[str, Any], search: Mapping[str, Any]
    ) -> Callable[[Mapping[str, tf.Tensor]], tuple[list[str], list[str]]]:
        """What decodes a batch of model inputs while training: hypotheses and references, as text.

        Args:
            model: in float32; its weights change between two calls.
            tokenizers: one a text feature.
            search: the YAML's section ``search``, whose greatest lengths hold; the search
                itself is a quick one.
        """

    def served(
        self, model: keras.Model, tokenizers: Mapping[str, Any], search: Mapping[str, Any]
    ) -> tuple[tf.Module, dict[str, Callable[..., Any]]]:
        """What is exported: a module that owns all it needs, and its signatures."""
