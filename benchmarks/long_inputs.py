"""Compare the time of a decoder step with local and global attention as the source grows.

    python benchmarks/long_inputs.py
    python benchmarks/long_inputs.py --rows 1 --lengths 100 2000 --repeats 9

Luong's decoder with input feeding (one LSTM of 256 units, score `general`, 8,000 tokens) reads
random memories, so that no encoder is timed. The time of a step is the difference between 48 and 16
steps, divided by 32, so that work per sentence is not counted. Prints a table for each kind of
work: milliseconds per step, the fastest of the repeats, and the ratio to the shortest source.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from regard.models.decoders import DECODERS
from regard.models.losses import token_losses
from regard.models.search import BeamSearch, GreedySearch, Search

ALIGNMENTS = {"global": "soft", "local_m": "local_m", "local_p": "local_p"}
VOCABULARY_SIZE, UNITS, DEPTH = 8000, 256, 512
FEW, MANY = 16, 48


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 200, 500, 1000, 2000])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    works = {
        "greedy search": lambda decoder: decode_function(decoder, GreedySearch()),
        f"beam search, {arguments.beam}": lambda decoder: decode_function(
            decoder, BeamSearch(arguments.beam)
        ),
        "training": train_function,
    }
    for name, work in works.items():
        measured = {
            alignment: measure_steps(work(make_decoder(options, arguments.window)), arguments)
            for alignment, options in ALIGNMENTS.items()
        }
        print(format_results(name, arguments.lengths, measured), flush=True)


def make_decoder(alignment: str, window: int) -> Any:
    """Create a decoder with random weights."""
    keras.utils.set_random_seed(17)
    local = alignment.startswith("local")
    options = {"type": alignment, "window": window} if local else alignment
    attention = {"score": "general", "alignment": options}
    decoder = DECODERS["luong"](VOCABULARY_SIZE, DEPTH, 0, units=UNITS, attention=attention)
    decoder.build()
    return decoder


def make_memory(values: Any) -> dict[str, Any]:
    """The memory of an encoder without final states."""
    return {"values": values, "mask": tf.ones(tf.shape(values)[:2], tf.bool)}


_VALUES = tf.TensorSpec([None, None, DEPTH], tf.float32)


def decode_function(decoder: Any, search: Search) -> Callable[[Any, int], Any]:
    """A function that decodes exactly the given number of steps."""

    @tf.function(input_signature=[_VALUES, tf.TensorSpec([None], tf.int32)])
    def decode(values: Any, limits: Any) -> Any:
        state = decoder.start(make_memory(values), longest=tf.reduce_max(limits))
        return search(decoder.step, state, limits, minimums=limits).ids

    return lambda values, steps: decode(values, tf.fill([len(values)], steps))


def train_function(decoder: Any) -> Callable[[Any, int], Any]:
    """A function for teacher forcing with gradients of all weights and the memory."""

    @tf.function(input_signature=[_VALUES, tf.TensorSpec([None, None], tf.int32)])
    def learn(values: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(values)
            logits, _ = decoder.unroll(target, make_memory(values), training=True)
            loss = tf.reduce_mean(token_losses(logits, target)[0])
        watched = [values, *(weight.value for weight in decoder.trainable_weights)]
        gradients = [g for g in tape.gradient(loss, watched) if g is not None]
        return [tf.reduce_sum(tf.convert_to_tensor(g)) for g in gradients]

    return lambda values, steps: learn(values, tf.fill([len(values), steps], 7))


def measure_steps(work: Callable[[Any, int], Any], arguments: argparse.Namespace) -> list[float]:
    """Measure the seconds per step for each source length."""
    draw = np.random.default_rng(17)
    seconds = []
    for length in arguments.lengths:
        shape = (arguments.rows, length, DEPTH)
        values = tf.constant(draw.normal(size=shape).astype("float32"))
        times: dict[int, list[float]] = {FEW: [], MANY: []}
        for repeat in range(arguments.repeats + 1):
            for steps, samples in times.items():
                start = time.perf_counter()
                work(values, steps)
                if repeat:  # the first one is a warm-up
                    samples.append(time.perf_counter() - start)
        few, many = (min(times[steps]) for steps in (FEW, MANY))
        seconds.append((many - few) / (MANY - FEW))
    return seconds


def format_results(name: str, lengths: list[int], measured: dict[str, list[float]]) -> str:
    """Format the times as a Markdown table."""
    lines = [f"| {name}, ms per step | " + " | ".join(f"{each:,}" for each in lengths) + " |"]
    lines.append("|---|" + "---:|" * len(lengths))
    for alignment, times in measured.items():
        cells = (f"{x * 1e3:.2f} ({x / times[0]:.2f}×)" for x in times)
        lines.append(f"| {alignment} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
