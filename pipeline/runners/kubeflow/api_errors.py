"""Errors of the Kubeflow Pipelines API as user errors with a remedy."""

import contextlib
import json
import textwrap
from collections.abc import Iterator

from regard.core.errors import EnvironmentFault, UserError

TOKEN_VARIABLE = "KF_PIPELINES_TOKEN"
CONNECT_SECONDS, READ_SECONDS = 10, 60
HOST_HELP = (
    "`kubectl port-forward -n kubeflow svc/ml-pipeline 8888` serves it at http://localhost:8888; "
    "inside the cluster it is http://ml-pipeline.kubeflow:8888."
)
_ACCESS_HELP = (
    f"Set {TOKEN_VARIABLE} to a bearer token of an account with access to Kubeflow Pipelines, for "
    "example from `kubectl create token ACCOUNT --audience=pipelines.kubeflow.org`, or reach the "
    "API server directly with `kubectl port-forward -n kubeflow svc/ml-pipeline 8888`."
)
_MAX_REASON = 300  # characters


@contextlib.contextmanager
def translate_errors(host: str) -> Iterator[None]:
    """Convert the exceptions of the API client to user errors."""
    from kfp_server_api import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        location = (error.headers or {}).get("Location")
        raise _status_error(host, error.status, error.body, location) from error
    except HTTPError as error:
        raise _no_response_error(host, str(error)) from error
    except AttributeError as error:  # the client fails on its own TLS errors, which have no body
        if not isinstance(error.__context__, ApiException):
            raise
        raise _no_response_error(host, str(error.__context__.reason)) from error
    except UnicodeDecodeError as error:
        raise wrong_service_error(host, "a response is not text") from error


def _status_error(
    host: str, status: int, body: str | bytes | None, location: str | None = None
) -> UserError:
    """Return the error for an unsuccessful HTTP status."""
    if status in (401, 403):
        message = "Authentication required" if status == 401 else "Access denied"
        return EnvironmentFault(f"{message} ({status}).", host, _ACCESS_HELP)
    if 300 <= status < 400:
        message = f"The server redirects to {location or 'nowhere'} ({status})."
        return EnvironmentFault(message, host, f"If that is a login page: {_ACCESS_HELP}")
    if status == 404:
        return wrong_service_error(host, f"the request was not found (404): {_reason(body)}")
    if status >= 500:
        remedy = "Try again later, or read `kubectl logs -n kubeflow deploy/ml-pipeline`."
        return EnvironmentFault(f"The cluster failed ({status}): {_reason(body)}", host, remedy)
    message = f"The cluster refused the request ({status}): {_reason(body)}"
    return EnvironmentFault(message, host, "Correct the request, then try again.")


def wrong_service_error(host: str, reason: str) -> UserError:
    """Return the error for a host that is not the API, for example a login page."""
    message = f"This is not the API of Kubeflow Pipelines: {reason}."
    return EnvironmentFault(message, host, f"{HOST_HELP} {_ACCESS_HELP}")


def _no_response_error(host: str, reason: str) -> UserError:
    """Return the error for a request without a response."""
    _, is_untrusted, problem = reason.partition("certificate verify failed: ")
    if is_untrusted:
        return EnvironmentFault(
            f"The server's certificate is not trusted: {problem.partition(' (_ssl')[0].strip()}.",
            host,
            "Set REQUESTS_CA_BUNDLE to the file with the certificate of its issuer.",
        )
    timed_out = "timed out" in reason.lower()
    message = f"No response within {READ_SECONDS} s." if timed_out else "The host does not respond."
    return EnvironmentFault(message, host, f"Check the URL and the network. {HOST_HELP}")


def _reason(body: str | bytes | None) -> str:
    """Return the server's message in one line of limited length."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    with contextlib.suppress(ValueError):
        content = json.loads(text)
        if isinstance(content, dict):
            text = str(content.get("message") or content.get("error") or text)
    if not text.strip() or text.lstrip().startswith("<"):  # an HTML page
        return "no reason given"
    return textwrap.shorten(text, _MAX_REASON, placeholder=" …")
