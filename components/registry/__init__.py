"""The model registry: the folder ``<root>/<name>/<version>/`` that models are pushed to.

There is no server and no database. A version is a folder with an integer as its name that holds a
SavedModel, with the record ``regard.json`` next to it. TensorFlow Serving watches the same folder
and serves the highest version of each model.

Version numbers only rise, and a published version never changes. Every change of what is served,
also a rollback, publishes a new version with one rename, so a server always sees whole versions.
"""

from regard.components.registry.records import VersionRecord, read_record
from regard.components.registry.store import (
    LATEST,
    PROFILE,
    Registry,
    production_baseline,
)

__all__ = [
    "LATEST",
    "PROFILE",
    "Registry",
    "VersionRecord",
    "production_baseline",
    "read_record",
]
