"""One YAML file a pipeline: read, checked, documented."""

from regard.pipeline.config.config import Config
from regard.pipeline.config.load import config_from_values, load

__all__ = ["Config", "config_from_values", "load"]
