"""What a cluster answers when it does not do what it is asked for, as the user's own errors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import requests

from components.errors import UserError

TOKEN = "KF_PIPELINES_TOKEN"
CONNECT_SECONDS, READ_SECONDS = 10, 60
HOSTS = (
    "`kubectl port-forward -n kubeflow svc/ml-pipeline 8888` makes it http://localhost:8888; "
    "inside of the cluster it is http://ml-pipeline.kubeflow:8888."
)
_ACCESS = (
    f"Set {TOKEN} to a bearer token of an account that may use Kubeflow Pipelines, such as "
    "`kubectl create token ACCOUNT --audience=pipelines.kubeflow.org`, or reach the API server "
    "itself with `kubectl port-forward -n kubeflow svc/ml-pipeline 8888`."
)
_HEALTH = "apis/v2beta1/healthz"
_LONGEST = 300


def check_health(host: str, headers: dict[str, str], authority: str | None) -> None:
    """Asks the server how it is: the API's own client would try for long, and tell nothing.

    Args:
        host: the URL of the API.
        headers: those of every request.
        authority: the file of certificates that are trusted; None: the usual ones.

    Raises:
        UserError: it does not answer; it is not Kubeflow Pipelines; it does not let one in.
    """
    session = requests.Session()
    session.trust_env = False  # no proxies: the API's own client knows none
    try:
        answer = session.get(
            f"{host}/{_HEALTH}",
            headers=headers,
            timeout=CONNECT_SECONDS,
            verify=authority or True,
            allow_redirects=False,
        )
    except requests.exceptions.SSLError as error:
        raise UserError(
            f"its certificate is not trusted: {_certificate(error)}",
            host,
            "Set REQUESTS_CA_BUNDLE to the file with the certificate of who signed it.",
        ) from error
    except requests.RequestException as error:
        raise silent(host, error, CONNECT_SECONDS) from error
    if not answer.ok or answer.is_redirect:
        raise refused(host, answer.status_code, answer.text, answer.headers.get("Location"))
    try:
        healthy = isinstance(answer.json(), dict)
    except ValueError:  # a page for people, of whatever answers there
        healthy = False
    if not healthy:
        raise other(host, f"/{_HEALTH} gives no JSON object")


@contextlib.contextmanager
def told(host: str) -> Iterator[None]:
    """Turns the errors of the API's own client into the user's."""
    from kfp_server_api import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        headers = error.headers or {}
        raise refused(host, error.status, error.body, headers.get("Location")) from error
    except HTTPError as error:
        raise silent(host, error, READ_SECONDS) from error
    except UnicodeDecodeError as error:
        raise other(host, "an answer is no text") from error


def refused(host: str, status: int, body: Any, location: str | None = None) -> UserError:
    """The error for an answer that is none."""
    if status in (401, 403):
        message = "it wants to know who you are" if status == 401 else "your account may not do it"
        return UserError(f"{message} ({status})", host, _ACCESS)
    if 300 <= status < 400:
        message = f"it sends one elsewhere ({status}): {location or 'nowhere'}"
        return UserError(message, host, f"Where that is a page to log in: {_ACCESS}")
    if status == 404:
        return other(host, f"it does not know what is asked for ({status}): {_said(body)}")
    if status >= 500:
        message = f"the cluster, or what stands before it, fails ({status}): {_said(body)}"
        remedy = "Try again later; `kubectl logs -n kubeflow deploy/ml-pipeline` may tell more."
        return UserError(message, host, remedy)
    message = f"the cluster refuses it ({status}): {_said(body)}"
    return UserError(message, host, "Mend that, and try again.")


def other(host: str, why: str) -> UserError:
    """The error for something else than the API, such as a page to log in."""
    return UserError(
        f"this is not the API of Kubeflow Pipelines: {why}", host, f"{HOSTS} {_ACCESS}"
    )


def silent(host: str, error: Exception, seconds: int) -> UserError:
    """The error for no answer at all."""
    slow = "timed out" in str(error).lower()
    message = f"it does not answer within {seconds} s" if slow else "it does not answer"
    return UserError(message, host, f"Check the URL and the network. {HOSTS}")


def _said(body: Any) -> str:
    """What the server said, without its own wrapping, in one line that is not too long."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        content = json.loads(text)
    except ValueError:
        content = {}
    said = content.get("message") or content.get("error") if isinstance(content, dict) else None
    text = " ".join(str(said or text).split())
    if not text or text.startswith("<"):  # a page for people
        return "no reason given"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _certificate(error: Exception) -> str:
    """What is wrong with a certificate, out of the errors around it."""
    text = str(error)
    _, found, reason = text.partition("certificate verify failed: ")
    return reason.partition(" (_ssl")[0].strip() if found else "the connection is not safe"
