"""Score the weights of part ``multi30k`` on the CPU with TensorFlow: cased BLEU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece

from benchmarks.gpu import searching, weights_file
from benchmarks.gpu.folder import (
    MULTI30K,
    REFERENCES,
    TOKENIZER,
    Settings,
    make_batches,
    read_split,
)
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.models.search import BeamSearch
from regard.models.settings.search import BeamSearchConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.greedy_decoding import limits_of_texts

_BATCH_ROWS = 100


def score(folder: Path, weights: Path) -> dict[str, Any]:
    """Decode Multi30k's test split with the search of the configuration.

    Args:
        folder: the prepared folder.
        weights: the file that part ``multi30k`` has written.

    Returns:
        ``bleu``, cased and tokenized with 13a, its ``signature``, and the number of ``sentences``.
    """
    settings = Settings.read(folder)
    model = searching.build_model(
        settings.model, TrainingConfig(), settings.vocabulary_sizes[MULTI30K]
    )
    model.set_weights(weights_file.read(weights))
    config = BeamSearchConfig.model_validate(settings.search)
    search = BeamSearch(
        config.beam_size,
        config.length_penalty,
        config.coverage_penalty,
        config.n_best,
        config.no_repeat_ngram_size,
        config.effective_patience,
        config.length_offset,
    )
    limits = limits_of_texts(config.max_length_factor, config.max_length_offset)
    sides = read_split(folder, MULTI30K, "test")
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "rows.arrow")
        batches = make_batches(path, sides, 2048, config.max_source_length, 0, COARSE_GROWTH)
        outputs, _ = searching.decode(model, search, limits, batches, sides["source"], _BATCH_ROWS)
    tokenizer = (folder / TOKENIZER).read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    # The tokenizer's EOS is no part of a text.
    texts = [processor.decode(ids[:-1]) for ids in outputs]
    references = (folder / REFERENCES).read_text(encoding="utf-8").split("\n")[:-1]
    metric = sacrebleu.BLEU()
    bleu = metric.corpus_score(texts, [references])
    return {
        "bleu": round(bleu.score, 2),
        "signature": str(metric.get_signature()),
        "sentences": len(texts),
    }
