"""TokenizerTrainer's work: the train split's sentences to SentencePiece models in files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components import events
from components.errors import UserError
from components.files import write_uri
from components.tokenizer_trainer import sentencepiece_model as spm
from components.tokenizer_trainer.sentences import LONGEST, Counts, read, sample
from components.words import counted
from models.vocabulary import BOS, EOS, PAD, UNK

NODE = "TokenizerTrainer"


class Executor(base_executor.BaseExecutor):
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
        folder = artifact_utils.get_split_uri(input_dict["examples"], "train")
        tokenizer = artifact_utils.get_single_instance(output_dict["tokenizer"])
        groups = [features] if settings["shared"] else [[feature] for feature in features]
        trained, counts = _train(groups, folder, settings, exec_properties["seed"])
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


def _train(
    groups: list[list[str]], folder: str, settings: Mapping[str, Any], seed: int
) -> tuple[dict[str, spm.Trained], dict[str, Counts]]:
    """The models and the counts by the names of their features, joined by ``+``."""
    trained: dict[str, spm.Trained] = {}
    counts: dict[str, Counts] = {}
    most: dict[str, int] = {}
    least: dict[str, int] = {}
    for number, group in enumerate(groups):
        name = "+".join(group)
        fraction = number / len(groups)
        events.emit("progress", node=NODE, text=f"reading {name}", fraction=fraction)
        count = counts[name] = Counts()
        sentences = sample(read(folder, group), settings["sample"], seed, count)
        if not sentences:
            raise _no_text(name, count)
        text = f"{settings['type']} pieces of {name} from {len(sentences):,} sentences"
        events.emit("progress", node=NODE, text=text, fraction=fraction)
        try:
            trained[name] = spm.train(sentences, settings)
        except spm.VocabularyTooLarge as error:
            most[name] = error.most
        except spm.VocabularyTooSmall as error:
            least[name] = error.least
    if most or least:
        raise _does_not_fit(most, least, settings)
    return trained, counts


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
