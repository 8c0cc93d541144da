"""Where an artifact of a remote store lies inside a container.

The launcher of Kubeflow Pipelines wraps the command of every node. It copies the input artifacts
from the store to local folders before, and the output artifacts from local folders to the store
after: ``minio://b/p`` is ``/minio/b/p``, ``s3://b/p`` is ``/s3/b/p`` and ``gs://b/p`` is
``/gcs/b/p`` (its ``LocalPathForURI``). A node that keeps to these folders needs no client of any
store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# Set where the folders are below another one than the root, such as in tests.
VARIABLE = "REGARD_STORAGE"
FOLDERS = {"gs": "gcs", "minio": "minio", "s3": "s3"}


def local_path(uri: str, environment: Mapping[str, str] | None = None) -> str:
    """The local folder of a URI; what is no URI of a store stays as it is.

    Args:
        uri: the artifact's, such as ``gs://bucket/path``.
        environment: the variables; default: those of this process.
    """
    scheme, mark, rest = uri.partition("://")
    if not mark or scheme not in FOLDERS:
        return uri
    variables = os.environ if environment is None else environment
    return os.path.join(variables.get(VARIABLE) or "/", FOLDERS[scheme], rest)
