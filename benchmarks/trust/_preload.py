"""Imported by the server from which `runs` forks: computes the cache keys, which stay in memory."""

import os
import tempfile
from pathlib import Path

import regard.pipeline.graph  # noqa: F401  (imports TFX)
from regard.pipeline.config import load
from regard.pipeline.context import local_context
from regard.pipeline.workspace import Workspace

with tempfile.TemporaryDirectory() as folder:
    local_context(load(Path(os.environ["REGARD_PRELOAD"])), Workspace(Path(folder)))
