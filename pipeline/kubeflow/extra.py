"""Whether what Kubeflow needs is installed: it is an extra of Regard's."""

from __future__ import annotations

import importlib.util

from components.errors import UserError

_MODULES = ("kfp.pipeline_spec", "kfp_server_api")


def require() -> None:
    """Checks that the extra is installed.

    Raises:
        UserError: it is not.
    """
    for name in _MODULES:
        try:
            missing = importlib.util.find_spec(name) is None
        except ModuleNotFoundError:  # of the package that it is in
            missing = True
        if missing:
            raise UserError(
                f"what Kubeflow Pipelines needs is not installed: there is no {name}",
                remedy="Install it: pip install 'regard[kubeflow]'",
            )
