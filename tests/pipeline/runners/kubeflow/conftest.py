import pytest

from tests.pipeline.runners.kubeflow.fake_api import serve_api
from tests.pipeline.runners.kubeflow.pipelines import compile_config


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    """The small configuration, compiled."""
    return compile_config(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def api(monkeypatch):
    """The API of Kubeflow Pipelines, and an environment that configures no client."""
    for name in ("ENDPOINT", "TOKEN", "UI_ENDPOINT"):
        monkeypatch.delenv(f"KF_PIPELINES_{name}", raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    with serve_api() as server:
        yield server
