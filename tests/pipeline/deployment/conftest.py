import shutil

import pytest

from tests import fake_models


@pytest.fixture(scope="session")
def registry(tmp_path_factory):
    """A registry with two versions of a model."""
    root = tmp_path_factory.mktemp("registry")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    shutil.copytree(root / "reverser" / "1", root / "reverser" / "2")
    return root
