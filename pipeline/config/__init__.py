"""One YAML file a pipeline: read, checked, documented."""

from regard.pipeline.config.config import Config, config_class, require_task
from regard.pipeline.config.load import config_from_values, load
from regard.pipeline.config.reference import config_reference, json_schema

__all__ = [
    "Config",
    "config_class",
    "config_from_values",
    "config_reference",
    "json_schema",
    "load",
    "require_task",
]
