"""Train JoeyNMT in this process, and measure the time of every batch.

`benchmarks/training.py` starts this process in JoeyNMT's environment with a request as JSON on
standard input. The result is one line of JSON.

Training loop, batches, loss and optimizer are JoeyNMT's. Dropout is disabled where Regard has none
by default: of attention weights and inside feed-forward networks.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward

from benchmarks import hardware_limits, workload

_WARM_UP = 8


def main() -> None:
    """Train, and print the result."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    torch.set_num_threads(request["threads"])
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(train(request, Path(folder))))


def train(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Train for the requested seconds, not counting the warm-up; ``folder`` is for checkpoints."""
    args = parse_global_args(configuration(request, folder), rank=0, mode="train")
    model, train_data, eval_data, _ = prepare(args, rank=0, mode="train")
    for module in model.modules():
        if isinstance(module, MultiHeadedAttention):
            module.dropout.p = 0.0
        elif isinstance(module, PositionwiseFeedForward):
            module.pwff_layer[2].p = 0.0
    manager = TimedTrainManager(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        n_gpu=args.n_gpu,
        num_workers=args.num_workers,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
        seconds=request["seconds"],
    )
    before = rates()
    manager.train_and_validate(train_data=train_data, valid_data=eval_data)
    tokens = [count for _, count in manager.measured]
    return {
        "batches": manager.measured,
        "tokens_per_batch": sum(tokens) / len(tokens),
        "accuracy_tokens": manager.accuracy_tokens,
        "accuracy": manager.correct / manager.accuracy_tokens,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "rates": hardware_limits.mean_rates(before, rates()),
    }


def rates() -> dict[str, float]:
    """The rate of PyTorch in this process."""
    matrix = torch.rand(hardware_limits.SIDE, hardware_limits.SIDE)
    return {"float32": hardware_limits.best_rate(lambda: torch.mm(matrix, matrix))}


class TimedTrainManager(TrainManager):
    """JoeyNMT's training loop, which measures the time between the starts of its steps."""

    def __init__(self, seconds: float, **options: Any):
        super().__init__(**options)
        self._left, self._before, self._tokens, self._count = seconds, 0.0, 0, 0
        self.measured: list[tuple[float, int]] = []
        self.correct = self.accuracy_tokens = 0

    def _train_step(self, batch: Any) -> tuple[float, int]:
        now = time.perf_counter()
        if self._count > _WARM_UP:
            self.measured.append((now - self._before, self._tokens))
            self._left -= now - self._before
        if self._left <= 0:
            self.stats.is_max_update = True  # ends the training after this step
        self._before, self._tokens, self._count = now, batch.ntokens, self._count + 1
        loss, correct = super()._train_step(batch)
        if self.accuracy_tokens < workload.ACCURACY_TOKENS:
            self.accuracy_tokens += batch.ntokens
            self.correct += correct
        return loss, correct


def configuration(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Convert the request to a configuration of JoeyNMT."""
    data, training = Path(request["folder"]), request["training"]
    side = {
        "level": "word",  # the file contains the tokens
        "voc_file": str(data / workload.VOCABULARY),
        "max_length": training["max_length"] - 1,
    }
    return {
        "name": "benchmark",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": training["seed"],
        "data": {
            "train": str(data / "train"),
            "dev": str(data / "eval"),
            "dataset_type": "plain",
            "src": {**side, "lang": "en"},
            "trg": {**side, "lang": "de"},
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [training["beta_1"], training["beta_2"]],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": training["learning_rate"],
            "learning_rate_peak": training["learning_rate"],
            "learning_rate_warmup": training["schedule"]["warmup_steps"],
            "clip_grad_norm": training["clip_norm"],
            "label_smoothing": training["label_smoothing"],
            "normalization": "tokens",
            "batch_size": request["batch_size"],
            "batch_type": "token",
            "epochs": 1000,
            "validation_freq": 1_000_000,
            "logging_freq": 1_000_000,
        },
        "testing": {},
        "model": network(request["model"]),
    }


def network(model: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the section ``model``; JoeyNMT's recurrent encoder is bidirectional."""
    sides = {}
    for name in ("encoder", "decoder"):
        settings = model[name]
        side = {
            "embeddings": {"embedding_dim": model["embedding"], "dropout": model["dropout"]},
            "dropout": model["dropout"],
            "num_layers": settings["layers"],
        }
        if settings["type"] == "transformer":
            side["embeddings"]["scale"] = True
            sides[name] = side | {
                "type": "transformer",
                "hidden_size": model["embedding"],
                "ff_size": settings["feed_forward"],
                "num_heads": settings["heads"],
                "layer_norm": settings["norm"],
            }
        else:
            sides[name] = side | {
                "type": "recurrent",
                "rnn_type": settings["cell"],
                "hidden_size": settings["units"],
                "bidirectional": True,
            }
    if model["decoder"]["type"] == "luong":
        sides["decoder"] |= {
            "attention": "luong",
            "input_feeding": model["decoder"]["input_feeding"],
            "hidden_dropout": model["dropout"],
        }
    tied = model["tie_embeddings"] == "all"
    return {**sides, "tied_embeddings": tied, "tied_softmax": tied}


if __name__ == "__main__":
    main()
