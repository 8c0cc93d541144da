"""The section ``search``: how a trained model looks for its answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from models.settings.base import Count, Positive, Section, by_type


class _Search(Section):
    """What every search has: limits on lengths, and a text that is already there."""

    max_length_factor: Annotated[float, Field(ge=0.0)] = Field(
        default=2.0, description="A hypothesis has at most this times the pieces of its source ..."
    )
    max_length_offset: Count = Field(default=10, description="... plus so many pieces.")
    min_length_factor: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="A hypothesis has at least this times the pieces of its source."
    )
    max_source_length: Positive = Field(
        default=256, description="Pieces of a source that are read at most."
    )
    long_source: Literal["truncate", "refuse"] = Field(
        default="truncate",
        description="A source with more pieces: cut it there and count it, or answer with an "
        "error.",
    )


class _Penalised(_Search):
    """What goes with searches for one best hypothesis."""

    no_repeat_ngram: Count = Field(
        default=0, description="Length of the runs of pieces that may come only once; 0: any."
    )
    repetition_penalty: Annotated[float, Field(ge=1.0)] = Field(
        default=1.0,
        description="Divides the odds of pieces that are there already (CTRL); 1: not at all.",
    )


class GreedySearch(_Penalised):
    """Takes the most probable piece at every step."""

    type: Literal["greedy"] = Field(default="greedy", description="The search.")


class BeamSearch(_Penalised):
    """Keeps the best partial hypotheses at every step."""

    type: Literal["beam"] = Field(default="beam", description="The search.")
    beam_size: Positive = Field(default=5, description="Hypotheses kept at every step.")
    length_penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.6, description="GNMT's alpha: 0 prefers short hypotheses, 1 longer ones."
    )
    coverage_penalty: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0,
        description="GNMT's beta: how much it costs to leave pieces of the source unseen.",
    )
    n_best: Positive = Field(default=1, description="Hypotheses that are given back.")
    patience: Annotated[float, Field(gt=0.0)] | None = Field(
        default=None,
        description="Stop when this times beam_size hypotheses have ended, as most systems do with "
        "1; null: when no better one can come.",
    )


class SamplingSearch(_Search):
    """Draws every piece at random, by its probability."""

    type: Literal["sampling"] = Field(default="sampling", description="The search.")
    temperature: Annotated[float, Field(gt=0.0)] = Field(
        default=1.0, description="Below 1 sharper than the model, above 1 flatter."
    )
    top_k: Count = Field(default=0, description="Draw from so many best pieces; 0: from all.")
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=1.0, description="Draw from the fewest pieces that together have this probability."
    )
    samples: Positive = Field(default=1, description="Hypotheses drawn; the likeliest comes first.")
    seed: Count = Field(default=0, description="The same seed draws the same for the same source.")


Search = Annotated[
    Annotated[GreedySearch, Tag("greedy")]
    | Annotated[BeamSearch, Tag("beam")]
    | Annotated[SamplingSearch, Tag("sampling")],
    by_type("beam"),
]
