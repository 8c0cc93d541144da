"""Models of other tasks than translation, with next to nothing inside: for what serves any task."""

import math
from typing import Any

import tensorflow as tf

from regard.core.features import Feature
from regard.core.kinds import IMAGE, NUMBER, POINTS, POSITIONS, TEXT

SIMILARITY = [
    Feature("first", TEXT),
    Feature("second", TEXT),
    Feature("similarity", NUMBER, role="reference", low=0, high=1),
]
SORTING = [
    Feature("points", POINTS, min_points=2),
    Feature("order", POSITIONS, role="reference"),
    Feature("width", NUMBER, role="extra", optional=True),
]
CAPTIONING = [
    Feature("image", IMAGE),
    Feature("caption", TEXT, role="reference", multiple=True),
]


class Matcher(tf.Module):
    """Two texts → the share of the first one's letters that stand at the same place in both."""

    def contract(self) -> dict[str, Any]:
        inputs = [{"name": "first", "kind": "text"}, {"name": "second", "kind": "text"}]
        return {
            "task": "similarity",
            "inputs": inputs,
            "answer": "similarity",
            "answer_kind": "number",
            "score": None,
            "detail": "serving_default",
            "scored": None,
            "size": None,
            "looks": None,
            "heads": None,
            "cut": None,
            "signatures": {"serving_default": {"inputs": inputs, "outputs": {"similarity": []}}},
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.match}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="first"),
            tf.TensorSpec([None], tf.string, name="second"),
        ]
    )
    def match(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        letters = tf.strings.unicode_split(tf.concat([first, second], 0), "UTF-8").to_tensor("")
        letters, others = tf.split(letters, 2)
        is_letter = letters != ""
        same = tf.reduce_sum(tf.cast((letters == others) & is_letter, tf.float32), axis=1)
        length = tf.reduce_sum(tf.cast(is_letter, tf.float32), axis=1)
        return {"similarity": same / tf.maximum(length, 1.0)}


class Finder(tf.Module):
    """A passage and a question → the first word, or all of the first three words."""

    def contract(self) -> dict[str, Any]:
        inputs = [{"name": "passage", "kind": "text"}, {"name": "question", "kind": "text"}]
        best: dict[str, Any] = {name: [] for name in ("answer", "begin", "end", "score")}
        names = ("hypotheses", "lengths", "log_probabilities", "scores", "begins", "ends")
        return {
            "task": "span",
            "inputs": inputs,
            "answer": "answer",
            "answer_kind": "text",
            "score": "score",
            "detail": "serving_default",
            "scored": None,
            "size": None,
            "looks": None,
            "heads": None,
            "cut": None,
            "signatures": {
                "serving_default": {"inputs": inputs, "outputs": best},
                "nbest": {"inputs": inputs, "outputs": {name: [None] for name in names}},
            },
        }

    def signatures(self) -> dict[str, Any]:
        texts = [tf.TensorSpec([None], tf.string, name=name) for name in ("passage", "question")]
        functions = {"serving_default": self.find, "nbest": self.list_words}
        return {name: tf.function(function, texts) for name, function in functions.items()}

    def find(self, passage: tf.Tensor, question: tf.Tensor) -> dict[str, tf.Tensor]:
        words = self.list_words(passage, question)
        names = {"answer": "hypotheses", "begin": "begins", "end": "ends", "score": "scores"}
        return {name: words[key][:, 0] for name, key in names.items()}

    def list_words(self, passage: tf.Tensor, question: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.strings.split(passage).to_tensor("", shape=[None, 3])
        words = tf.where(question[:, None] == "", "", words)
        sizes = tf.strings.length(words, "UTF8_CHAR")
        begins = tf.cumsum(sizes + 1, axis=1, exclusive=True)
        scores = tf.where(sizes > 0, tf.constant([[-1.0, -2.0, -3.0]]), -1e9)
        scores = tf.where(question[:, None] == "", math.nan, scores)
        return {
            "hypotheses": words,
            "lengths": tf.minimum(sizes, 1),
            "log_probabilities": scores,
            "scores": scores,
            "begins": begins,
            "ends": begins + sizes,
        }


class Sorter(tf.Module):
    """Points → their positions from left to right; each step looks at the point it names."""

    def __init__(self, min_points: int = 0):
        super().__init__(name="sorter")
        self._min_points = min_points

    def contract(self) -> dict[str, Any]:
        inputs = [{"name": "points", "kind": "points"}]
        answer: dict[str, Any] = {"order": ["order_length"], "order_length": [], "score": []}
        detail = {**answer, "pointing": ["order_length", "order_length"]}
        return {
            "task": "pointer",
            "inputs": inputs,
            "answer": "order",
            "answer_kind": "positions",
            "score": "score",
            "detail": "align",
            "scored": None,
            "size": {"input": "points", "unit": "points"},
            "looks": {"rows": "order", "columns": "points", "weights": "pointing"},
            "heads": None,
            "cut": None,
            "signatures": {
                "serving_default": {"inputs": inputs, "outputs": answer},
                "align": {"inputs": inputs, "outputs": detail},
            },
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.sort, "align": self.align}

    def answer(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        width = tf.shape(points)[1]
        messages = [
            f"a row has fewer than the {self._min_points} points of model.min_points; all:",
            points_length,
        ]
        sufficient = tf.debugging.Assert(tf.reduce_all(points_length >= self._min_points), messages)
        with tf.control_dependencies([sufficient]):
            real = tf.sequence_mask(points_length, width)
        order = tf.argsort(tf.where(real, points[:, :, 0], points.dtype.max), stable=True)
        attention = tf.one_hot(order, width) * tf.cast(real, tf.float32)[:, :, None]
        score = -0.25 * tf.cast(points_length, tf.float32)
        return {
            "order": order,
            "order_length": points_length,
            "score": score,
            "pointing": attention,
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 2], tf.float32, name="points"),
            tf.TensorSpec([None], tf.int32, name="points_length"),
        ]
    )
    def sort(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        out = self.answer(points, points_length)
        return {name: out[name] for name in ("order", "order_length", "score")}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 2], tf.float32, name="points"),
            tf.TensorSpec([None], tf.int32, name="points_length"),
        ]
    )
    def align(self, points: tf.Tensor, points_length: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.answer(points, points_length)


class Namer(tf.Module):
    """An image → its height and width as words, looking at four quarters for each."""

    def contract(self) -> dict[str, Any]:
        inputs = [{"name": "image", "kind": "image"}]
        detail = {
            "caption": [],
            "score": [],
            "target_pieces": ["target_length"],
            "target_length": [],
            "alignment": ["target_length", None, None],
        }
        return {
            "task": "captioning",
            "inputs": inputs,
            "answer": "caption",
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            "scored": None,
            "size": None,
            "looks": {"rows": "target_pieces", "columns": "image", "weights": "alignment"},
            "heads": None,
            "cut": None,
            "signatures": {
                "serving_default": {"inputs": inputs, "outputs": {"caption": [], "score": []}},
                "align": {"inputs": inputs, "outputs": detail},
            },
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.caption, "align": self.align}

    def answer(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        def attention_map(encoded: tf.Tensor) -> tf.Tensor:
            return tf.shape(tf.io.decode_image(encoded, expand_animations=False))[:2]

        shapes = tf.map_fn(attention_map, image, fn_output_signature=tf.TensorSpec([2], tf.int32))
        tokens = tf.strings.as_string(shapes)
        lengths = tf.fill(tf.shape(image), 2)
        return {
            "caption": tf.strings.reduce_join(tokens, axis=1, separator=" by "),
            "score": -tf.cast(tf.reduce_sum(shapes, axis=1), tf.float32),
            "target_pieces": tokens,
            "target_length": lengths,
            "alignment": tf.fill([tf.shape(image)[0], 2, 2, 2], 0.25),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image")])
    def caption(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        out = self.answer(image)
        return {name: out[name] for name in ("caption", "score")}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image")])
    def align(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.answer(image)


def png(height: int, width: int) -> bytes:
    """A black picture as the bytes of a file."""
    return tf.io.encode_png(tf.zeros([height, width, 3], tf.uint8)).numpy()
