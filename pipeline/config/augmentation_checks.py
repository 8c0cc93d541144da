"""Conflicts of the section ``augmentation`` with other sections."""

from collections.abc import Iterator

from regard.components.settings.augmentation import AugmentationConfig
from regard.models.settings.base import Problem
from regard.pipeline.config.config import Config


def validate_augmentation(config: Config) -> Iterator[Problem]:
    """Yield what the task or other sections do not allow, each at the key that has to change."""
    augmentation = config.augmentation or AugmentationConfig()
    back_translation = augmentation.back_translation
    if config.augmentation and not augmentation.models():
        yield Problem(("augmentation",), "has no step; add filter, for example, or use null")
    if back_translation and not config.data.monolingual:
        yield Problem(("augmentation", "back_translation"), "needs texts; set data.monolingual")
    if back_translation and config.data.tags:
        message = "its texts have none of data.tags; remove one"
        yield Problem(("augmentation", "back_translation"), message)
    if config.training.guided_alignment and (augmentation.distillation or back_translation):
        message = "its links are those of other words than augmentation writes; remove one"
        yield Problem(("training", "guided_alignment"), message)
