"""Imported by the server from which `runs` forks: computes the cache keys, which stay in memory."""

import os
import tempfile
from pathlib import Path

from regard.pipeline.config import load
from regard.pipeline.graph import create_pipeline
from regard.pipeline.workspace import Workspace

with tempfile.TemporaryDirectory() as folder:
    create_pipeline(load(Path(os.environ["REGARD_PRELOAD"])), Workspace(Path(folder)))
