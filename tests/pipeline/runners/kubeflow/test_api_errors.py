"""Errors of the API as the user sees them."""

import subprocess

import pytest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from regard.core.errors import UserError
from regard.pipeline.runners.kubeflow.client import KubeflowClient
from regard.pipeline.runners.kubeflow.pipeline_file import CompiledPipeline
from regard.pipeline.runners.kubeflow.submission import Submission
from tests.pipeline.runners.kubeflow.fake_api import serve_api

SPEC = {"pipelineInfo": {"name": "tiny"}, "schemaVersion": "2.1.0"}
SUBMISSION = Submission(CompiledPipeline(SPEC))


def submit(api):
    return KubeflowClient(api.url).submit(SUBMISSION, "regard", "tiny")


def schedule(api):
    return KubeflowClient(api.url).schedule(SUBMISSION, "regard", "tiny", "0 0 0 * * *")


RESPONSES = {
    "login page": (HTMLResponse("<html>Log in</html>"), "not the API of Kubeflow Pipelines"),
    "list": (JSONResponse([]), "not the API of Kubeflow Pipelines"),
    "empty": (Response(b""), "not the API of Kubeflow Pipelines"),
    "no id": (JSONResponse({}), "not the API of Kubeflow Pipelines"),
    "not text": (Response(b"\xff\xfe"), "not the API of Kubeflow Pipelines"),
    "redirect": (RedirectResponse("/dex/auth"), r"redirects to /dex/auth \(307\)"),
}


@pytest.mark.parametrize(
    ("start", "path"), [(submit, "experiments"), (submit, "runs"), (schedule, "recurringruns")]
)
@pytest.mark.parametrize("case", RESPONSES)
def test_a_response_of_another_server(api, case, start, path):
    api.responses[path], message = RESPONSES[case]
    with pytest.raises(UserError, match=message) as caught:
        start(api)
    assert "KF_PIPELINES_TOKEN" in caught.value.remedy


@pytest.mark.parametrize("path", ["experiments", "runs"])
def test_a_server_error(api, path):
    api.responses[path] = HTMLResponse("<html><body>" + "x" * 3000 + "</body></html>", 502)
    with pytest.raises(UserError, match=r"failed \(502\): no reason given\n") as caught:
        submit(api)
    assert caught.value.remedy.startswith("Try again later")


def test_a_long_reason_is_cut_to_one_line(api):
    api.responses["runs"] = JSONResponse({"message": "Already exist\n" + "x" * 3000}, 409)
    with pytest.raises(UserError, match=r"\(409\): Already exist …\n") as caught:
        submit(api)
    assert len(caught.value.message) < 400


def test_a_server_that_stops_responding(api, monkeypatch):
    monkeypatch.setattr("regard.pipeline.runners.kubeflow.client._TIMEOUT", (1, 1))
    api.delay_seconds = 20
    with pytest.raises(UserError, match="No response within"):
        submit(api)


def test_an_ambiguous_experiment(api):
    twice = [{"experiment_id": name, "display_name": "regard"} for name in "ab"]
    api.responses["experiments"] = JSONResponse({"experiments": twice})
    with pytest.raises(UserError, match="There are 2 experiments named 'regard'"):
        submit(api)


def test_a_self_signed_certificate(api, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    call = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    call += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    subprocess.run(["openssl", *call, "-out", str(certificate)], check=True, capture_output=True)
    with serve_api(ssl_keyfile=str(key), ssl_certfile=str(certificate)) as secure:
        with pytest.raises(UserError, match="certificate is not trusted: self-signed") as caught:
            submit(secure)
        assert "REQUESTS_CA_BUNDLE" in caught.value.remedy
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        assert submit(secure).id == "r1"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(UserError, match=r"none.pem does not exist"):
        submit(api)


def test_proxies_are_not_used(api, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert submit(api).id == "r1"


@pytest.mark.parametrize("token", ["sés\u0394me", "open sesame", "open\nsesame"])
def test_an_invalid_token(api, monkeypatch, token):
    monkeypatch.setenv("KF_PIPELINES_TOKEN", token)
    with pytest.raises(UserError, match="cannot contain") as caught:
        submit(api)
    assert caught.value.where == "KF_PIPELINES_TOKEN"
