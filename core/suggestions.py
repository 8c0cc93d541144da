"""Suggestions for wrong names: misspelt ones, and those that other toolkits use."""

import difflib
from collections.abc import Iterable

_MAX_CHOICES = 5
# Names here, and those of the same thing in other toolkits and papers.
_OTHER_NAMES = {
    "batch_tokens": "batch_size",
    "learning_rate": "lr",
    "warmup_steps": "warmup",
    "max_epochs": "epochs num_epochs",
    "max_steps": "steps train_steps",
    "gradient_accumulation_steps": "accum_count update_freq",
    "clip_norm": "grad_clip max_grad_norm",
    "schedule": "scheduler",
    "precision": "fp16",
    "scheduled_sampling": "teacher_forcing_ratio",
    "guided_alignment": "lambda_align",
    "units": "hidden_size hidden_dim rnn_size num_units",
    "embedding": "d_model emb_dim embedding_dim word_vec_size",
    "layers": "num_layers",
    "heads": "num_heads",
    "feed_forward": "d_ff ff_size ffn_dim",
    "beam_size": "num_beams beam_width",
    "length_penalty": "alpha",
    "vocab_size": "vocab voc_limit",
    "eval": "dev valid validation",
    "warm_start": "load_model train_from start_from fine_tune",
    "freeze": "frozen fixed",
    "lora": "adapters",
    "recurrent": "lstm gru rnn",
    "general": "luong multiplicative",
    "additive": "bahdanau mlp",
    "inverse_sqrt": "noam",
    "bpe": "wordpiece",
    "sampling": "nucleus",
    "bleu": "sacrebleu",
    "chrf": "meteor",
    "rouge_l": "rouge",
    "exact_match": "accuracy",
    "translation": "mt nmt seq2seq",
}
SYNONYMS = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}


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
    near = [SYNONYMS[word]] if SYNONYMS.get(word) in by_lower else []
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
