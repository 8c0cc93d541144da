"""Suggestions for wrong names: misspelt ones, and those that other toolkits use."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

_MAX_CHOICES = 5
# What other toolkits and papers say, and the names of the same thing here, the most likely first.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "batch_size": ("batch_tokens",),
    "lr": ("learning_rate",),
    "warmup": ("warmup_steps",),
    "epochs": ("max_epochs",),
    "num_epochs": ("max_epochs",),
    "steps": ("max_steps",),
    "train_steps": ("max_steps",),
    "accum_count": ("gradient_accumulation_steps",),
    "update_freq": ("gradient_accumulation_steps",),
    "grad_clip": ("clip_norm",),
    "max_grad_norm": ("clip_norm",),
    "scheduler": ("schedule",),
    "fp16": ("precision",),
    "hidden_size": ("units",),
    "hidden_dim": ("units",),
    "rnn_size": ("units",),
    "num_units": ("units",),
    "d_model": ("embedding",),
    "emb_dim": ("embedding",),
    "embedding_dim": ("embedding",),
    "word_vec_size": ("embedding",),
    "num_layers": ("layers",),
    "num_heads": ("heads",),
    "d_ff": ("feed_forward",),
    "ff_size": ("feed_forward",),
    "ffn_dim": ("feed_forward",),
    "num_beams": ("beam_size",),
    "beam_width": ("beam_size",),
    "alpha": ("length_penalty",),
    "vocab": ("vocab_size",),
    "voc_limit": ("vocab_size",),
    "dev": ("eval",),
    "valid": ("eval",),
    "validation": ("eval",),
    "load_model": ("warm_start",),
    "train_from": ("warm_start",),
    "lstm": ("recurrent",),
    "gru": ("recurrent",),
    "rnn": ("recurrent",),
    "luong": ("general",),
    "multiplicative": ("general",),
    "bahdanau": ("additive",),
    "mlp": ("additive",),
    "noam": ("inverse_sqrt",),
    "wordpiece": ("bpe",),
    "nucleus": ("sampling",),
    "sacrebleu": ("bleu",),
    "meteor": ("chrf",),
    "rouge": ("rouge_l",),
    "accuracy": ("exact_match",),
    "mt": ("translation",),
    "nmt": ("translation",),
    "seq2seq": ("translation",),
}


def closest_matches(
    name: object, choices: Iterable[str], n: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return the choices that a name may stand for: synonyms, then those that are spelt like it.

    Args:
        name: The wrong name; case does not matter.
        choices: The valid names.
        n: The maximum number of matches.
        cutoff: The minimum similarity, from 0 to 1.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    word = str(name).lower()
    near = [synonym for synonym in SYNONYMS.get(word, ()) if synonym in by_lower]
    near += difflib.get_close_matches(word, by_lower, n, cutoff)
    return [by_lower[name] for name in dict.fromkeys(near)][:n]


def did_you_mean(name: object, choices: Iterable[str], n: int = 1) -> str:
    """Return ``Did you mean X? `` with a trailing space, or an empty text without a close match."""
    matches = closest_matches(name, choices, n)
    return f"Did you mean {' or '.join(matches)}? " if matches else ""


def suggest(name: object, choices: Iterable[str]) -> str:
    """Return a suggestion for a wrong name, and at most five choices, the closest ones."""
    names = list(choices)
    closest = closest_matches(name, names, _MAX_CHOICES, cutoff=0.0)
    visible = names if len(names) <= _MAX_CHOICES else [one for one in names if one in closest]
    rest = f" and {len(names) - len(visible)} more" if len(names) > len(visible) else ""
    return f"{did_you_mean(name, names)}Choices: {', '.join(visible)}{rest}"
