"""Options of ``training`` that start from a model, or train a part of one."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from typing_extensions import Self

from regard.core.bounds import PositiveFloat, Size
from regard.models.settings.base import Section, absolute

# The value of ``warm_start.model`` for the newest version of the pipeline's own model.
PRODUCTION = "production"
# A part of a model: words of the names in the paths of its weights, the outermost first.
Part = Annotated[str, Field(pattern="^[a-z0-9_]+(/[a-z0-9_]+)*$")]


class LoraConfig(Section):
    """Trains low-rank changes of kernels, and nothing else (Hu 2021, "LoRA", section 4.1).

    The changes are merged into the weights, so the exported model has the usual structure. Kernels
    of attention, dense, recurrent and convolution layers are changed if the change is smaller than
    the kernel; output layers with a row per token are not.

    Attributes:
        rank: Rank of a change.
        alpha: A change is multiplied by alpha / rank.
    """

    rank: Size = 8
    alpha: PositiveFloat = 16.0


class WarmStartConfig(Section):
    """Starts from the weights of a model that has been trained and exported before.

    Attributes:
        model: production: the newest version of this pipeline's model (random weights if there is
            none). NAME or NAME@VERSION: a model of the registry. A path with a /: the folder of a
            SavedModel. The network must be the same. Tokens that its vocabulary does not contain
            start from the tokens that it splits them into.
        keep_tokenizer: Keep the tokenizers of that model, so that every token keeps its embedding,
            instead of training new ones on train. The keys type, shared and user_defined_symbols of
            tokenizer, and data.tags, must suit them; its other keys have no effect.
        optimizer: Continue with the state of the optimizer and of the schedule, and save both with
            the model for the next training (twice the size of the weights). The state is reset if
            the vocabulary gains tokens.
    """

    model: Annotated[str, Field(min_length=1)] = PRODUCTION
    keep_tokenizer: bool = False
    optimizer: bool = False

    def resolved(self, base: Path) -> Self:
        """Return a copy with an absolute path; a name of the registry does not change."""
        if "/" not in self.model:
            return self
        return self.model_copy(update={"model": absolute(base, self.model)})
