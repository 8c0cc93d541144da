"""The settings of a model in a folder as Hugging Face's Transformers writes it."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.errors import NotFoundError, UserError
from regard.core.formatting import printable
from regard.core.regular_files import read_regular
from regard.core.yaml_text import YAMLError, from_yaml

CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
_MAX_JSON_BYTES = 64 << 20  # a tokenizer.json of 256,000 tokens has 32 MB
_MAX_CARD_BYTES = 4 << 20
# The patience of ``early_stopping``.
_PATIENCE = {False: "present_length", True: 1.0, "never": None}
_MAX_INTEGER = 1_000_000  # the largest vocabulary
_MAX_LICENCE = 200  # characters
_MAX_SIZE = 65_536  # the largest width or number of layers
# The maximum lengths of an output and of a source.
_TOKENS_PER_SOURCE_TOKEN, _MORE_TOKENS = 2.0, 20
_MAX_SOURCE = 256
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
# What changes the outputs of ``generate`` in a way that no search of Regard has, with the values
# that change nothing.
_NEUTRAL_GENERATION: dict[str, tuple[Any, ...]] = {
    "do_sample": (False, None),
    "num_beam_groups": (1, None),
    "diversity_penalty": (0.0, None),
    "repetition_penalty": (1.0, None),
    "encoder_repetition_penalty": (1.0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "min_length": (0, None),
    "min_new_tokens": (0, None),
    "exponential_decay_length_penalty": (None,),
    "sequence_bias": (None,),
    "forced_bos_token_id": (None,),
    "guidance_scale": (None, 1),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
}


def read_json(path: Path) -> dict[str, Any]:
    """Read a file with a JSON object.

    Raises:
        UserError: it is missing, too large, or something else.
    """
    try:
        value = json.loads(read_regular(path, _MAX_JSON_BYTES))
    except FileNotFoundError:
        remedy = "Give the folder of one model with all its files."
        raise NotFoundError("The file does not exist.", str(path), remedy) from None
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}"
        raise UserError(message, str(path), "Give a readable file.") from None
    except (ValueError, RecursionError) as error:
        remedy = "Fetch the file again."
        raise UserError(f"The file is not valid JSON: {error}", str(path), remedy) from None
    if not isinstance(value, dict):
        raise UserError("The file has no JSON object.", str(path), "Fetch the file again.")
    return value


def texts_by_id(ids: Mapping[str, Any], size: int, path: Path) -> dict[int, str]:
    """Return the text of each id from 0 to ``size`` - 1; one without a text gets a name.

    Args:
        ids: the ids of texts.
        size: the size of the vocabulary.
        path: the file with the ids, for messages.

    Raises:
        UserError: an id is no number, out of the range, or that of two texts.
    """
    texts: dict[int, str] = {}
    for text, number in ids.items():
        if not isinstance(number, int) or not 0 <= number < size or number in texts:
            remedy = "Fetch the file again, and check that config.json belongs to it."
            message = (
                f"{text!r} has the id {number!r}; a vocabulary of {size:,} has each id from 0 "
            )
            raise UserError(f"{message}to {size - 1:,} at most once", str(path), remedy)
        texts[number] = text
    return {number: texts.get(number, f"<unused {number}>") for number in range(size)}


class HuggingFaceConfig:
    """``config.json`` and ``generation_config.json`` of a folder.

    Args:
        folder: the folder.
        kind: the expected ``model_type``.

    Attributes:
        folder: the folder.
        files: the names of the files that were read.
    """

    def __init__(self, folder: Path, kind: str):
        self.folder, self.files = folder, [CONFIG]
        if not os.path.isdir(folder):
            remedy = "Give the folder that has config.json."
            raise NotFoundError("There is no such folder.", str(folder), remedy)
        self._values = read_json(folder / CONFIG)
        self.expect("model_type", kind)
        if self._values.get("quantization_config"):
            remedy = "Import the model that it was made of; serving.quantization makes int8."
            raise self.error("quantization_config", "the weights are quantized", remedy)
        # Older folders have the settings of the search in the same file.
        self._generation = self._values
        if os.path.lexists(folder / GENERATION):
            self._generation = read_json(folder / GENERATION)
            self.files.append(GENERATION)
        for name, neutral in _NEUTRAL_GENERATION.items():
            value = self._generation.get(name)
            if value not in neutral:
                raise self.error(name, f"is {value!r}, which no search of Regard does")
        pad = self.token("pad_token_id", 0)
        if self._generation.get("bad_words_ids") not in (None, [], [[pad]]):
            message = f"is {self._generation['bad_words_ids']!r}; only [[{pad}]] can be imported"
            raise self.error("bad_words_ids", message)

    def error(self, name: str, message: str, remedy: str | None = None) -> UserError:
        """Return the error of a setting."""
        remedy = remedy or "Only models whose computation is the same can be imported."
        return UserError(f"{name}: {message}", str(self.folder / CONFIG), remedy)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting; null counts as missing."""
        value = self._values.get(name)
        return default if value is None else value

    def expect(self, name: str, *supported: Any) -> None:
        """Check that a setting has one of some values, of which the first is the default."""
        value = self.get(name, supported[0])
        if value not in supported:
            listed = " or ".join(map(repr, supported))
            raise self.error(name, f"is {value!r}; only {listed} can be imported")

    def size(self, name: str) -> int:
        """Return a width, or a number of layers or heads."""
        return self.integer(name, minimum=1, maximum=_MAX_SIZE)

    def integer(
        self,
        name: str,
        default: int | None = None,
        minimum: int = 0,
        maximum: int = _MAX_INTEGER,
    ) -> int:
        """Return a setting that is an integer from ``minimum`` to ``maximum``.

        Raises:
            UserError: it is missing or something else.
        """
        value = self.get(name, default)
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or not minimum <= value <= maximum:
            allowed = f"an integer from {minimum} to {maximum:,}"
            raise self.error(name, f"is {value!r} instead of {allowed}")
        return int(value)

    def boolean(self, name: str, default: bool) -> bool:
        """Return a setting that is true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, f"is {value!r} instead of true or false")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a setting that is a number."""
        value = self.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(name, f"is {value!r} instead of a number")
        return float(value)

    def token(self, name: str, default: int | None = None) -> int:
        """Return the id of a special token."""
        value, size = self.integer(name, default), self.integer("vocab_size", minimum=4)
        if value >= size:
            raise self.error(name, f"is {value}, but vocab_size is {size}")
        if self._generation.get(name) not in (None, value):
            raise self.error(name, f"is {value} here and {self._generation[name]} in {GENERATION}")
        return value

    def layers(self, side: str, **options: Any) -> dict[str, Any]:
        """Return the section of the encoder or the decoder.

        Args:
            side: ``encoder`` or ``decoder``.
            options: further settings.
        """
        activation = self.get("activation_function", "gelu")
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            listed = ", ".join(_ACTIVATIONS)
            raise self.error("activation_function", f"is {activation!r}; supported: {listed}")
        return {
            "type": "transformer",
            "layers": self.size(f"{side}_layers"),
            "heads": self.size(f"{side}_attention_heads"),
            "feed_forward": self.size(f"{side}_ffn_dim"),
            "activation": _ACTIVATIONS[activation],
            "attention_dropout": self.number("attention_dropout", 0.0),
            "activation_dropout": self.number("activation_dropout", 0.0),
            **options,
        }

    def search(self, max_source: int, length_offset: float) -> dict[str, Any]:
        """Return the section ``search`` that finds what ``generate`` finds.

        Only the maximum lengths differ: ``generate`` continues an output that does not end for 200
        or 512 tokens, however short its source is.

        Args:
            max_source: the number of tokens that a source may have, EOS included.
            length_offset: the number of forced tokens at the beginning of an output, which count
                for the length penalty.
        """
        # The maximum includes the decoder's first input and EOS.
        longest = self._generation_number("max_length", self.integer("max_length", 20), 1)
        if self._generation.get("max_new_tokens"):
            longest = self._generation_number("max_new_tokens", 1, 1) + 1
        longest = int(longest) - 2 - int(length_offset)
        search = {
            "max_length_factor": _TOKENS_PER_SOURCE_TOKEN,
            "max_length_offset": max(min(longest, _MORE_TOKENS), 1),
            "max_source_length": max(min(max_source - 1, _MAX_SOURCE), 1),
            "no_repeat_ngram_size": int(self._generation_number("no_repeat_ngram_size", 0, 0)),
        }
        beam_size = self._generation_number("num_beams", 1, 1)
        stopping = self._generation.get("early_stopping") or False
        if beam_size not in range(1, _MAX_SIZE) or stopping not in _PATIENCE:
            name = "early_stopping" if beam_size in range(1, _MAX_SIZE) else "num_beams"
            raise self.error(name, f"is {self._generation[name]!r}, which no search of Regard does")
        if beam_size == 1:
            return {"type": "greedy", **search}
        return {
            "type": "beam",
            "beam_size": int(beam_size),
            "length_penalty": self._generation_number("length_penalty", 1.0, 0),
            "length_offset": length_offset,
            "patience": _PATIENCE[stopping],
            **search,
        }

    def _generation_number(self, name: str, default: float, minimum: float) -> float:
        """Return a number of the settings of ``generate``."""
        value = self._generation.get(name)
        value = default if value is None else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not minimum <= value <= _MAX_INTEGER:
            raise self.error(name, f"is {value!r}, which no search of Regard does")
        return value

    @property
    def renormalizes(self) -> bool:
        """Whether forbidden tokens have no share in the probabilities of the others."""
        value = self._generation.get("renormalize_logits") or False
        if not isinstance(value, bool):
            raise self.error("renormalize_logits", f"is {value!r} instead of true or false")
        return value

    def licence(self) -> str:
        """Return the licence of the model card's header, or of ``config.json``; empty if none."""
        try:
            card = read_regular(self.folder / CARD, _MAX_CARD_BYTES).decode("utf-8", "replace")
            header = re.match(r"\s*---\s*\n(.*?)\n---\s*(?:\n|$)", card, re.DOTALL)
            values = from_yaml(header[1]) if header else None
        except (OSError, ValueError, YAMLError, RecursionError):
            values = None
        stated = values.get("license") if isinstance(values, Mapping) else None
        stated = stated or self.get("license")
        listed = stated if isinstance(stated, list) else [stated]
        texts = ", ".join(text for text in listed if isinstance(text, str))
        return printable(" ".join(texts.split()))[:_MAX_LICENCE]
