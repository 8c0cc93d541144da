"""The names that columns of the data must not have."""

from regard.components.common.prediction_table import FIXED_COLUMNS
from regard.models import tasks
from regard.models.reference_columns import FORCED_COLUMNS


def reserved_names() -> frozenset[str]:
    """Return the columns of the table of predictions, with the outputs of all tasks.

    The table calls the main output ``hypothesis``, so it may have the name of the reference.
    """
    descriptions = [tasks.describe(name) for name in tasks.TASKS.own]
    outputs: set[str] = set()
    for description in descriptions:
        outputs.update((description.output, *description.other_outputs))
    outputs -= {description.reference.name for description in descriptions}
    return frozenset({*FIXED_COLUMNS, *FORCED_COLUMNS, *outputs})
