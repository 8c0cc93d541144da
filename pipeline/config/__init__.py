"""One YAML file a pipeline: read, checked, documented."""

from pipeline.config.loading import load
from pipeline.config.reference import reference, schema
from pipeline.config.sections import FEATURES, Config

__all__ = ["FEATURES", "Config", "load", "reference", "schema"]
