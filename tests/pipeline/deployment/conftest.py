import pytest

from tests import fake_models


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """A registry with two versions of a model."""
    root = tmp_path_factory.mktemp("registry")
    for version in ("1", "2"):
        fake_models.save(fake_models.Reverser(), root / "reverser" / version)
    return root
