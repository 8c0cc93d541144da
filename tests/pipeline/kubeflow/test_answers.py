"""A cluster that does not do what it is asked for, and what the user is told of it."""

import subprocess
import time

import pytest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from components.errors import UserError
from pipeline.kubeflow.client import Cluster
from pipeline.kubeflow.package import Package
from tests.pipeline.kubeflow.api import serving

SPEC = {"pipelineInfo": {"name": "tiny"}, "schemaVersion": "2.1.0"}
PACKAGE = Package(name="tiny", spec=SPEC, platform={}, parameters={})


@pytest.fixture
def api(monkeypatch):
    for name in ("KF_PIPELINES_TOKEN", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as made:
        yield made


def submit(api):
    return Cluster(api.url).submit(PACKAGE, "regard", "tiny")


def schedule(api, name="tiny"):
    return Cluster(api.url).schedule(PACKAGE, "regard", name, "0 0 0 * * *")


PAGE = HTMLResponse("<html>Log in</html>")
NOTHING_STARTED = {
    "a page to log in": ("experiments", PAGE),
    "a page, for the run alone": ("runs", PAGE),
    "a list": ("experiments", JSONResponse([])),
    "nothing": ("experiments", Response(b"")),
    "no id": ("runs", JSONResponse({})),
    "no text": ("runs", Response(b"\xff\xfe")),
}


@pytest.mark.parametrize("start", [submit, schedule])
@pytest.mark.parametrize("name", NOTHING_STARTED)
def test_an_answer_without_an_id_is_no_success(api, name, start):
    path, answer = NOTHING_STARTED[name]
    api.answers[path.replace("runs", "recurringruns") if start is schedule else path] = answer
    with pytest.raises(UserError, match="not the API of Kubeflow Pipelines") as caught:
        start(api)
    assert "KF_PIPELINES_TOKEN" in caught.value.remedy


def test_a_redirection_to_a_page_to_log_in(api):
    for path in ("healthz", "runs"):
        api.answers = {path: RedirectResponse("/dex/auth")}
        with pytest.raises(UserError, match=r"sends one elsewhere \(307\): /dex/auth") as caught:
            submit(api)
        assert "KF_PIPELINES_TOKEN" in caught.value.remedy


@pytest.mark.parametrize("path", ["healthz", "runs"])
def test_a_fault_of_the_server_s_own(api, path):
    api.answers[path] = HTMLResponse("<html><body>" + "x" * 3000 + "</body></html>", 502)
    with pytest.raises(UserError, match=r"fails \(502\): no reason given\n") as caught:
        submit(api)
    assert caught.value.remedy.startswith("Try again later")


def test_what_is_said_is_cut_to_a_line(api):
    api.answers["runs"] = JSONResponse({"message": "Already exist\n" + "x" * 3000}, 409)
    with pytest.raises(UserError, match=r"\(409\): Already exist x+ …\n") as caught:
        submit(api)
    assert len(caught.value.message) < 400


def test_a_server_that_falls_silent_after_the_health_check(api, monkeypatch):
    monkeypatch.setattr("pipeline.kubeflow.client._TIMEOUT", (1, 1))
    api.seconds = 20
    began = time.monotonic()
    with pytest.raises(UserError, match="does not answer within"):
        submit(api)
    assert time.monotonic() - began < 10


def test_two_experiments_of_one_name(api):
    twice = [{"experiment_id": name, "display_name": "regard"} for name in "ab"]
    api.answers["experiments"] = JSONResponse({"experiments": twice})
    with pytest.raises(UserError, match="there are 2 experiments called 'regard'"):
        submit(api)


def test_a_schedule_of_the_name_is_found_on_any_page(api):
    api.page = 1
    for name in "abc":
        schedule(api, name)
    with pytest.raises(UserError, match="there is a schedule 'c' already"):
        schedule(api, "c")
    assert len(api.recurring) == 3


def test_a_certificate_of_one_s_own(api, tmp_path, monkeypatch):
    key, signed = tmp_path / "key.pem", tmp_path / "signed.pem"
    call = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    call += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(signed)]
    subprocess.run(["openssl", *call], check=True, capture_output=True)
    with serving(ssl_keyfile=str(key), ssl_certfile=str(signed)) as safe:
        with pytest.raises(UserError, match="certificate is not trusted: self-signed") as caught:
            submit(safe)
        assert "REQUESTS_CA_BUNDLE" in caught.value.remedy
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(signed))
        assert submit(safe).id == "r1"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(UserError, match=r"there is no .*none.pem"):
        submit(api)


def test_a_proxy_is_not_asked(api, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert submit(api).id == "r1"


@pytest.mark.parametrize("token", ["sés\u0394me", "open sesame", "open\nsesame"])
def test_what_cannot_be_a_token(api, monkeypatch, token):
    monkeypatch.setenv("KF_PIPELINES_TOKEN", token)
    with pytest.raises(UserError, match="this is no token") as caught:
        submit(api)
    assert caught.value.where == "KF_PIPELINES_TOKEN"
