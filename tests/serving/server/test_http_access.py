"""Requests that a foreign web site lets a browser send, to every route."""

import pytest

from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, ServerOptions
from regard.serving.server.server import Server
from regard.serving.web import create_routes
from tests.serving.server.conftest import Running

PATHS = [
    "/",
    "/page/models.json",
    "/page/index.html",
    "/page/",
    "/monitoring/prometheus/metrics",
    "/v1/models/reverser",
    "/v1/models/reverser/metadata",
    "/v2",
    "/page/nothing",
]


@pytest.fixture(scope="module")
def with_page(saved):
    """A server with the page."""
    manager = ModelManager(
        [ModelConfig("reverser", saved / "reverser")], ManagerOptions(poll_seconds=0)
    )
    options = ServerOptions(grpc_port=None, rest_port=0)
    running = Running(manager, Server(manager, options, create_routes(manager, True)))
    yield running
    running.stop()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_no_route_answers_another_host(with_page, path, method):
    answer = with_page.rest.request(method, path, headers={"Host": "rebound.example"})
    assert answer.status_code == 403
    assert b"reverser" not in answer.content


@pytest.mark.parametrize("path", PATHS[:3])
def test_the_page_answers_its_own_host(with_page, path):
    assert with_page.rest.get(path).status_code == 200
    assert with_page.rest.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://any.example"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_another_site_runs_no_model(with_page, headers, status):
    body = {"instances": ["ab"]}
    answer = with_page.rest.post("/v1/models/reverser:predict", json=body, headers=headers)
    assert answer.status_code == status
    assert ("error" in answer.json()) == (status == 403)
