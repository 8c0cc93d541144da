"""TokenizerTrainer's work: a Beam pipeline samples sentences, SentencePiece learns of them."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from typing import Any

import apache_beam as beam
from tfx import types
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components import events
from components.errors import UserError
from components.files import write_uri
from components.tokenizer_trainer import sentencepiece_model as spm
from components.tokenizer_trainer.sampling import Sample, Sampler, joined
from components.tokenizer_trainer.sentences import LONGEST, Counts
from components.words import counted
from models.vocabulary import BOS, EOS, PAD, UNK

NODE = "TokenizerTrainer"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes the models and ``tokenizer.json``."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Trains a model for each feature, or one for all of them.

        Raises:
            UserError: there is no text, or the vocabulary does not fit it.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        settings = json.loads(exec_properties["config"])
        features = json.loads(exec_properties["features"])
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        tokenizer = artifact_utils.get_single_instance(output_dict["tokenizer"])
        groups = [features] if settings["shared"] else [[feature] for feature in features]
        # Inside the artifact's folder, for all workers must see it; a killed run's goes with it.
        folder = os.path.join(tokenizer.uri, f".sample-{uuid.uuid4().hex[:8]}")
        fileio.makedirs(folder)
        limit = settings["sample"]
        try:
            events.emit("progress", node=NODE, text="sampling sentences")
            self._sample(examples, Sampler(groups, limit, exec_properties["seed"], folder))
            samples = {
                "+".join(group): joined(folder, number, limit)
                for number, group in enumerate(groups)
            }
            trained = _train(samples, settings)
        finally:
            fileio.rmtree(folder)
        counts = {name: found.counts for name, found in samples.items()}
        described = {}
        for feature in features:
            name = next(name for name in trained if feature in name.split("+"))
            model, count = trained[name], counts[name]
            write_uri(os.path.join(tokenizer.uri, f"{feature}.model"), model.proto)
            rows = "".join(f"{piece}\t{score:g}\n" for piece, score in model.pieces)
            write_uri(os.path.join(tokenizer.uri, f"{feature}.vocab"), rows)
            described[feature] = {
                "file": f"{feature}.model",
                "type": settings["type"],
                "pieces": len(model.pieces),
                "sentences": count.used,
                "too_long": count.long,
            }
            tokenizer.set_int_custom_property(f"{feature}_pieces", len(model.pieces))
        content = {
            "type": settings["type"],
            "shared": settings["shared"],
            "ids": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
            "features": described,
        }
        write_uri(os.path.join(tokenizer.uri, "tokenizer.json"), json.dumps(content, indent=2))
        for name, model in trained.items():
            _tell(name.replace("+", " and "), model, counts[name], settings)

    def _sample(self, examples: types.Artifact, sampler: Sampler) -> None:
        """Draws of every file of the train split."""
        (pattern,) = examples_utils.get_split_file_patterns([examples], "train")
        files = list(enumerate(sorted(fileio.glob(pattern))))
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Files" >> beam.Create(files, reshuffle=len(files) > 1)
                | "Sample" >> beam.Map(sampler)
            )


def _train(samples: Mapping[str, Sample], settings: Mapping[str, Any]) -> dict[str, spm.Trained]:
    """The models by the names of their features, joined by ``+``."""
    trained: dict[str, spm.Trained] = {}
    most: dict[str, int] = {}
    least: dict[str, int] = {}
    for number, (name, sentences) in enumerate(samples.items()):
        if not sentences.counts.used:
            raise _no_text(name, sentences.counts)
        text = f"{settings['type']} pieces of {name} from {sentences.counts.used:,} sentences"
        events.emit("progress", node=NODE, text=text, fraction=number / len(samples))
        try:
            trained[name] = spm.train(sentences, settings)
        except spm.VocabularyTooLarge as error:
            most[name] = error.most
        except spm.VocabularyTooSmall as error:
            least[name] = error.least
    if most or least:
        raise _does_not_fit(most, least, settings)
    return trained


def _no_text(name: str, count: Counts) -> UserError:
    if count.long:
        message = f"{name}: every line of the train split has more than {LONGEST:,} bytes"
        remedy = "Split the text into sentences, one a line."
    else:
        message = f"{name}: the train split has no text ({count.read:,} rows, all empty)"
        remedy = "Check data.train, and data.columns if the files have columns."
    return UserError(message, remedy=remedy)


def _does_not_fit(
    most: Mapping[str, int], least: Mapping[str, int], settings: Mapping[str, Any]
) -> UserError:
    size = settings["vocab_size"]
    # Of two sides one can have too much text for the size and the other too little.
    if most:
        limits = ", ".join(f"{name} at most {limit}" for name, limit in most.items())
        return UserError(
            f"tokenizer.vocab_size: {size} is more than this corpus allows ({limits})",
            remedy=f"Set tokenizer.vocab_size: {min(most.values())} or less, or "
            "tokenizer.vocab_limit: soft, which takes as many pieces as there are.",
        )
    limits = ", ".join(f"{name} at least {limit}" for name, limit in least.items())
    return UserError(
        f"tokenizer.vocab_size: {size} is less than the characters of this corpus need ({limits})",
        remedy=f"Set tokenizer.vocab_size: {max(least.values())} or more, or lower "
        "tokenizer.character_coverage, which leaves rare characters out.",
    )


def _tell(name: str, model: spm.Trained, count: Counts, settings: Mapping[str, Any]) -> None:
    asked = settings["vocab_size"]
    text = f"{name}: {len(model.pieces):,} pieces from {counted(count.used, 'sentence')}"
    if len(model.pieces) < asked:
        text += f" ({asked:,} were asked for; the corpus allows no more)"
    events.emit("note", node=NODE, text=text)
    if count.long:
        lines, were = counted(count.long, "line"), "was" if count.long == 1 else "were"
        text = f"{name}: {lines} of more than {LONGEST:,} bytes {were} left out"
        events.emit("warning", node=NODE, text=text)
