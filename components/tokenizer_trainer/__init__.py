"""The train split's text becomes SentencePiece models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.tokenizer_trainer.component import TokenizerTrainer

__all__ = ["TokenizerTrainer"]


def __getattr__(name: str) -> Any:
    # The component needs TFX, which takes seconds to import; SentencePiece alone does not.
    if name == "TokenizerTrainer":
        from components.tokenizer_trainer.component import TokenizerTrainer

        return TokenizerTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
