"""Train Sockeye 3 in this process, and measure the time of every batch.

`benchmarks/training.py` starts this process in the peers' environment with a request as JSON on
standard input. The result is one line of JSON.

Training loop, batches, loss and optimizer are Sockeye's, as is its pre-normalization, Regard's
default too. Dropout is disabled where Regard has none by default: of attention weights and inside
feed-forward networks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from sockeye import arguments, constants, train, training

from benchmarks import hardware_limits, workload
from benchmarks.peers.joeynmt_training import rates

_WARM_UP = 8
# Sockeye counts real target tokens: as many as the batches of the other systems hold on average.
_TARGET_TOKENS = 1850


def main() -> None:
    """Train, and print the result."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    torch.set_num_threads(request["threads"])
    clock = Clock(request["seconds"])
    patch_sockeye(clock)
    before = rates()
    parser = arguments.ConfigArgumentParser()
    arguments.add_train_cli_args(parser)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TimeIsOver):
        train.train(parser.parse_args(list(command_line(request, Path(folder)))))
    result = {
        "batches": clock.measured,
        "tokens_per_batch": sum(tokens for _, tokens in clock.measured) / len(clock.measured),
        "accuracy_tokens": clock.accuracy_tokens,
        "accuracy": clock.correct / clock.accuracy_tokens,
        "parameters": clock.parameters,
        "rates": hardware_limits.mean_rates(before, rates()),
    }
    print(json.dumps(result))


class TimeIsOver(Exception):
    """Ends the training."""


class Clock:
    """Measures batches, and counts correct predictions.

    Attributes:
        measured: seconds and target tokens of each batch after the warm-up.
        accuracy_tokens: target tokens whose predictions are compared.
        correct: how many of them are correct.
        parameters: the number of weights.
    """

    def __init__(self, seconds: float):
        self._left, self._before, self._count, self.tokens = seconds, 0.0, 0, 0
        self.measured: list[tuple[float, int]] = []
        self.accuracy_tokens = self.correct = self.parameters = 0

    def start_batch(self) -> None:
        """Record the previous batch.

        Raises:
            TimeIsOver: after the requested seconds.
        """
        now = time.perf_counter()
        if self._count > _WARM_UP:
            self.measured.append((now - self._before, self.tokens))
            self._left -= now - self._before
        if self._left <= 0:
            raise TimeIsOver
        self._before, self._count = now, self._count + 1

    def count(self, model_outputs: Mapping[str, Any], labels: Mapping[str, Any]) -> None:
        """Count target tokens, and the correct ones among the first."""
        target = labels[constants.TARGET_LABEL_NAME]
        real = target != constants.PAD_ID
        self.tokens = int(real.sum())
        if self.accuracy_tokens < workload.ACCURACY_TOKENS:
            predicted = model_outputs[constants.LOGITS_NAME].argmax(-1)
            self.correct += int(((predicted == target) & real).sum())
            self.accuracy_tokens += self.tokens


def patch_sockeye(clock: Clock) -> None:
    """Let Sockeye's trainer and loss tell the clock about every batch."""

    class TimedTrainer(training.EarlyStoppingTrainer):
        def _step(self, batch: Any) -> bool:
            clock.start_batch()
            clock.parameters = sum(
                parameter.numel() for parameter in self.sockeye_model.parameters()
            )
            return bool(super()._step(batch))

    class CountingModel(training.ModelWithLoss):
        def forward(self, *inputs: Any) -> Any:
            *batch, labels = inputs
            outputs = self.model(*batch)
            clock.count(outputs, labels)
            values, samples = zip(*(loss(outputs, labels) for loss in self.losses), strict=True)
            return sum(values), values, samples

    training.EarlyStoppingTrainer, training.ModelWithLoss = TimedTrainer, CountingModel


def command_line(request: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Convert the request to the arguments of ``sockeye-train``."""
    data, model, settings = Path(request["folder"]), request["model"], request["training"]
    encoder, decoder, width = model["encoder"], model["decoder"], model["embedding"]

    def tokens(split: str, side: str) -> str:
        return str(data / workload.TOKENS.format(split=split, language=workload.SIDES[side]))

    options = {
        "source": tokens("train", "source"),
        "target": tokens("train", "target"),
        "validation-source": tokens("eval", "source"),
        "validation-target": tokens("eval", "target"),
        "output": folder / "model",
        "encoder": "transformer",
        "decoder": "transformer",
        "num-layers": f"{encoder['layers']}:{decoder['layers']}",
        "transformer-model-size": f"{width}:{width}",
        "num-embed": f"{width}:{width}",
        "transformer-attention-heads": f"{encoder['heads']}:{decoder['heads']}",
        "transformer-dropout-attention": "0:0",
        "transformer-dropout-act": "0:0",
        "transformer-dropout-prepost": f"{model['dropout']}:{model['dropout']}",
        "embed-dropout": f"{model['dropout']}:{model['dropout']}",
        "weight-tying-type": "src_trg_softmax",
        "num-words": f"{len(workload.vocabulary(data))}:{len(workload.vocabulary(data))}",
        "max-seq-len": f"{settings['max_length'] - 1}:{settings['max_length'] - 1}",
        "batch-type": "word",
        "batch-size": _TARGET_TOKENS,
        "optimizer": "adam",
        "optimizer-betas": f"{settings['beta_1']}:{settings['beta_2']}",
        "initial-learning-rate": settings["learning_rate"],
        "learning-rate-scheduler-type": "inv-sqrt-decay",
        "learning-rate-warmup": settings["schedule"]["warmup_steps"],
        "gradient-clipping-type": "norm",
        "gradient-clipping-threshold": settings["clip_norm"],
        "label-smoothing": settings["label_smoothing"],
        "checkpoint-interval": 1_000_000,
        "max-updates": 1_000_000,
        "seed": settings["seed"],
    }
    sizes = f"{encoder['feed_forward']}:{decoder['feed_forward']}"
    yield from ("--transformer-feed-forward-num-hidden", sizes)
    yield from ("--shared-vocab", "--use-cpu", "--quiet")
    for name, value in options.items():
        yield from (f"--{name}", str(value))


if __name__ == "__main__":
    main()
