"""The configurations of runs in the run store."""

import contextlib

from regard.pipeline.config.config import Config
from regard.pipeline.config.load import config_from_values
from regard.pipeline.runs.store import Run


def recorded_config(run: Run) -> Config | None:
    """Return the configuration of a run.

    None if another version of Regard wrote it, or if the environment variables that it refers to
    have changed.
    """
    with contextlib.suppress(ValueError, LookupError, TypeError):
        config = config_from_values(run.settings())
        if not config.has_references or config.digest() == run.record().digest:
            return config
    return None
