"""One YAML file a pipeline: read, checked, documented."""

from pipeline.config.loading import load, restored
from pipeline.config.reference import reference, schema
from pipeline.config.sections import Config, config_of, known_task

__all__ = ["Config", "config_of", "known_task", "load", "reference", "restored", "schema"]
