"""Part ``torch``: the speed of PyTorch's ``nn.Transformer`` on the same rows.

It has the size of Regard's Transformer: one scaled embedding matrix for both sides and the softmax,
sinusoidal positions, normalization before each layer, dropout, label smoothing and clipping. It
trains under ``torch.autocast`` in bfloat16, compiled by ``torch.compile``, with fused Adam.
Recurrent models are not compared: PyTorch has none with input feeding.

So far, this part has run on a CPU only, in its small size, with PyTorch 2.11.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.gpu.folder import TATOEBA, Settings, pack_rows, read_split
from benchmarks.gpu.training import step_operations
from regard.models.tasks.seq2seq_network import append_eos
from regard.models.vocabulary import BOS, EOS

_WARM_UP_STEPS = 3
_GIGA, _TERA = 1e9, 1e12


class Transformer(nn.Module):
    """PyTorch's Transformer between an embedding and a softmax that share one matrix.

    Args:
        section: the section ``model`` of Regard's Transformer.
        vocabulary: the size of the vocabulary.
        length: the tokens of both sides.
    """

    def __init__(self, section: Mapping[str, Any], vocabulary: int, length: int):
        super().__init__()
        width, stack = section["embedding"], section["encoder"]
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.dropout = nn.Dropout(section["dropout"])
        self.layers = nn.Transformer(
            d_model=width,
            nhead=stack["heads"],
            num_encoder_layers=stack["layers"],
            num_decoder_layers=section["decoder"]["layers"],
            dim_feedforward=stack["feed_forward"],
            dropout=section["dropout"],
            batch_first=True,
            norm_first=True,
        )
        self.register_buffer("positions", sinusoids(length, width))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask)

    def forward(self, source: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
        """Return the logits ``[batch, length, vocabulary]``."""
        states = self.layers(
            self.embed(source), self.embed(previous), tgt_mask=self.mask, tgt_is_causal=True
        )
        return states @ self.embedding.weight.T

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of ids with their positions."""
        return self.dropout(self.embedding(ids) * self.scale + self.positions)


def sinusoids(length: int, width: int) -> torch.Tensor:
    """Return the positions of Vaswani et al. 2017, ``[length, width]``."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return torch.tensor(
        np.concatenate([np.sin(angles), np.cos(angles)], axis=1), dtype=torch.float32
    )


def measure(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Train a Transformer, and yield one row.

    Args:
        folder: the prepared folder.
        name: the name of one of ``Size.models``.
    """
    settings = Settings.read(folder)
    size, vocabulary = settings.sizes, settings.vocabulary_sizes[TATOEBA]
    section = size.models[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(17)
    torch.set_float32_matmul_precision("high")
    sides = pack_rows(
        read_split(folder, TATOEBA, "train"), size.length, size.batch_rows * size.steps
    )
    source, target = (
        torch.from_numpy(append_eos(sides[side])).long().to(device) for side in ("source", "target")
    )
    start = time.perf_counter()
    model = Transformer(section, vocabulary, size.length).to(device)
    step = TrainStep(model, device)
    batches = list(zip(source.split(size.batch_rows), target.split(size.batch_rows), strict=True))
    loss_before = step(*batches[0]).item()
    seconds_to_first_step = time.perf_counter() - start
    for batch in batches[:_WARM_UP_STEPS]:
        step(*batch).item()
    start = time.perf_counter()
    losses = [step(*batch) for batch in batches]
    mean_loss = torch.stack(losses).mean().item()  # waits for the device
    seconds = time.perf_counter() - start
    tokens = size.batch_rows * size.length
    tflops = step_operations(section, size, vocabulary) * len(batches) / seconds / _TERA
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    yield {
        "system": "torch.compile",
        "model": name,
        "precision": "autocast bfloat16",
        "tokens_per_second": round(tokens * len(batches) / seconds),
        "milliseconds_per_step": round(1000 * seconds / len(batches), 3),
        "tflops": round(tflops, 4),
        "memory_gigabytes": None if peak is None else round(peak / _GIGA, 2),
        "seconds_to_first_step": round(seconds_to_first_step, 2),
        "loss_before": round(loss_before, 4),
        "mean_loss": round(mean_loss, 4),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "tokens_per_step": tokens,
    }


class TrainStep:
    """A compiled training step. The loss that it returns is the one with label smoothing.

    Args:
        model: the model on its device.
        device: ``cuda`` or ``cpu``.
    """

    def __init__(self, model: Transformer, device: str):
        self._model, self._device = model, device
        self._compiled = torch.compile(self._loss)
        self._optimizer = torch.optim.Adam(model.parameters(), 0.0005, fused=True)

    def __call__(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Train on a batch, and return its loss, which the device may still compute."""
        with torch.autocast(self._device, torch.bfloat16):
            loss = self._compiled(source, target)
        loss.backward()
        nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _loss(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        previous = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        previous = previous.masked_fill(previous == EOS, 0)
        logits = self._model(source, previous)
        return nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), target.flatten(), label_smoothing=0.1
        )
