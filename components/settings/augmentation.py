"""The section ``augmentation``: published models change the rows of the train split."""

from typing import Annotated, Literal

from pydantic import Field

from regard.components.settings.tags import TagName
from regard.core.bounds import Count
from regard.models.settings.base import Section
from regard.models.settings.training import Version

# A tag of a model with ``data.tags``, or of an imported one.
ModelTag = Annotated[TagName | None, Field(examples=["en-fr"])]


class FilterConfig(Section):
    """Keeps the pairs that two models find probable (Junczys-Dowmunt 2018, section 2).

    The score of a pair is dual conditional cross-entropy: the difference of the two models'
    cross-entropies per token, plus their mean.

    Attributes:
        forward: Model from source to target, NAME@VERSION of the registry.
        reverse: Model from target to source, NAME@VERSION of the registry.
        forward_tag: Tag of the forward model that begins each source, such as en-fr; null: without
            tags, or with data.tags the tag of the row.
        reverse_tag: Tag of the reverse model that begins each target, such as fr-en; null likewise.
        keep: Share of the pairs that are kept, those with the lowest scores.
    """

    forward: Version
    reverse: Version
    forward_tag: ModelTag = None
    reverse_tag: ModelTag = None
    keep: Annotated[float, Field(gt=0.0, le=1.0)] = 0.8


class DistillationConfig(Section):
    """Sequence-level knowledge distillation (Kim & Rush 2016, section 3.2).

    Attributes:
        teacher: Model whose outputs replace the targets, NAME@VERSION of the registry; it may be an
            ensemble. A row that it truncates, or to which it gives no output, keeps its target.
        teacher_tag: Tag of the teacher that begins each source, such as en-fr; null: without tags,
            or with data.tags the tag of the row.
        keep_original: Also train on the original targets.
    """

    teacher: Version
    teacher_tag: ModelTag = None
    keep_original: bool = False


class BackTranslationConfig(Section):
    """Pairs of monolingual target texts and their translations (Sennrich et al. 2016).

    Attributes:
        model: Model from target to source, NAME@VERSION of the registry.
        model_tag: Tag of this model that begins each text it translates, such as fr-en; null:
            without tags.
        ratio: Maximum number of added pairs per row of the train split. From more texts than
            needed, the first ones are used.
        search: beam: translate as the model was published; sampling: sample every token from its
            distribution (Edunov et al. 2018). An ensemble cannot sample.
        seed: Seed of sampling.
        tag: Token before each translated source (Caswell et al. 2019), which
            the tokenizer knows as one of tokenizer.user_defined_symbols; null: none.
    """

    model: Version
    model_tag: ModelTag = None
    ratio: Annotated[float, Field(gt=0.0, le=1000.0)] = 1.0
    search: Literal["beam", "sampling"] = "beam"
    seed: Count = 0
    tag: Annotated[str, Field(pattern=r"^\S{1,32}$")] | None = "<bt>"


class AugmentationConfig(Section):
    """How published models change the train split, in this order. Eval and test do not change.

    Attributes:
        filter: Selection of pairs by dual conditional cross-entropy; null: all.
        distillation: Targets that a teacher writes; null: those of the data.
        back_translation: Additional pairs from the texts of data.monolingual; null: none.
    """

    filter: FilterConfig | None = None
    distillation: DistillationConfig | None = None
    back_translation: BackTranslationConfig | None = None

    def models(self) -> dict[str, str]:
        """Return the models by their keys in the section."""
        return {
            f"{name}.{key}": getattr(section, key)
            for name, section in self
            for key in ("forward", "reverse", "teacher", "model")
            if hasattr(section, key)
        }

    def tags(self) -> dict[str, str | None]:
        """Return the tags of the models by the keys of these."""
        return {
            name: getattr(getattr(self, name.split(".")[0]), f"{name.split('.')[1]}_tag")
            for name in self.models()
        }
