"""Runs and schedules on a cluster, through the client of Kubeflow Pipelines."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.errors import UserError

if TYPE_CHECKING:
    from kfp import Client

    from pipeline.kubeflow.package import Package

HOST = "KF_PIPELINES_ENDPOINT"
TOKEN = "KF_PIPELINES_TOKEN"
_HEALTH = "apis/v2beta1/healthz"
_SECONDS = 10
_ACCESS = (
    f"Set {TOKEN} to a bearer token of an account that may use Kubeflow Pipelines, such as "
    "`kubectl create token ACCOUNT --audience=pipelines.kubeflow.org`, or reach the API server "
    "itself with `kubectl port-forward -n kubeflow svc/ml-pipeline 8888`."
)
_HOSTS = (
    "`kubectl port-forward -n kubeflow svc/ml-pipeline 8888` makes it http://localhost:8888; "
    "inside of the cluster it is http://ml-pipeline.kubeflow:8888."
)


@dataclasses.dataclass(frozen=True)
class Started:
    """A run or a schedule that is on the cluster now: its id, its name and where to see it."""

    id: str
    name: str
    link: str


class Cluster:
    """Kubeflow Pipelines at a host.

    Args:
        host: the URL of its API; None: what ``KF_PIPELINES_ENDPOINT`` names.
        namespace: of the user, where there are several; None: there are none.

    Raises:
        UserError: the client is not installed; no host is given; it does not answer; it is not
            Kubeflow Pipelines; it does not let one in.
    """

    def __init__(self, host: str | None = None, namespace: str | None = None):
        self.host = _checked(host or os.environ.get(HOST, ""))
        self.namespace = namespace
        token = os.environ.get(TOKEN) or None
        _reach(self.host, token)
        self._client = self._connect(token)

    def submit(self, package: Package, experiment: str, name: str) -> Started:
        """Starts a run.

        Raises:
            UserError: the cluster refuses it, or does not answer any longer.
        """
        with _told(self.host):
            where = self._client.create_experiment(experiment, namespace=self.namespace)
            run = self._client.run_pipeline(
                experiment_id=where.experiment_id,
                job_name=name,
                pipeline_package_path=str(package.path),
                params=package.parameters,
                pipeline_root=package.pipeline_root,
            )
        return Started(run.run_id, name, f"{self.host}/#/runs/details/{run.run_id}")

    def schedule(
        self,
        package: Package,
        experiment: str,
        name: str,
        cron: str,
        max_concurrency: int = 1,
        catchup: bool = True,
    ) -> Started:
        """Starts a run again and again.

        Args:
            package: what is run.
            experiment: the name of the group of runs.
            name: the schedule's.
            cron: six fields, the second first.
            max_concurrency: how many runs there may be at once.
            catchup: whether runs that were missed are made up for.

        Raises:
            UserError: there is a schedule of that name; or as ``submit`` does.
        """
        with _told(self.host):
            where = self._client.create_experiment(experiment, namespace=self.namespace)
            listed = self._client.list_recurring_runs(
                page_size=100, experiment_id=where.experiment_id
            )
            if any(other.display_name == name for other in listed.recurring_runs or ()):
                raise UserError(
                    f"there is a schedule {name!r} already, in the experiment {experiment!r}",
                    self.host,
                    "Delete it there, or give this one another --name.",
                )
            made = self._client.create_recurring_run(
                experiment_id=where.experiment_id,
                job_name=name,
                cron_expression=cron,
                max_concurrency=max_concurrency,
                no_catchup=not catchup,
                pipeline_package_path=str(package.path),
                params=package.parameters,
                pipeline_root=package.pipeline_root,
            )
        link = f"{self.host}/#/recurringrun/details/{made.recurring_run_id}"
        return Started(made.recurring_run_id, name, link)

    def _connect(self, token: str | None) -> Client:
        try:
            from kfp import Client
        except ImportError:
            remedy = "Install it: pip install 'regard[kubeflow]'"
            raise UserError("the client of Kubeflow Pipelines is missing", remedy=remedy) from None
        with _told(self.host):
            return Client(
                host=self.host, namespace=self.namespace or "kubeflow", existing_token=token
            )


def _checked(host: str) -> str:
    if not host:
        message = "no host is given"
        raise UserError(message, "--host", f"Give --host URL, or set {HOST}. {_HOSTS}")
    if not host.startswith(("http://", "https://")):
        raise UserError(f"{host!r} is no URL", "--host", "It begins with http:// or https://.")
    return host.rstrip("/")


def _reach(host: str, token: str | None) -> None:
    """Asks the server how it is: its own client would ask for half a minute, and tell nothing."""
    import requests

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = requests.get(f"{host}/{_HEALTH}", headers=headers, timeout=_SECONDS)
    except requests.RequestException as error:
        raise _silent(host, error) from error
    if answer.status_code in (401, 403):
        raise _shut_out(host, answer.status_code)
    try:
        healthy = answer.ok and isinstance(answer.json(), dict)
    except ValueError:  # a page for people, of whatever answers there
        healthy = False
    if not healthy:
        message = f"this is not the API of Kubeflow Pipelines: /{_HEALTH} gives "
        raise UserError(f"{message}{answer.status_code}", host, _HOSTS)


@contextlib.contextmanager
def _told(host: str) -> Iterator[None]:
    """Turns the client's errors into the user's; what it prints is not for our output."""
    from kfp_server_api import ApiException
    from urllib3.exceptions import HTTPError

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except ApiException as error:
        if error.status in (401, 403):
            raise _shut_out(host, error.status) from error
        message = f"the cluster refuses it ({error.status}): {_said(error.body)}"
        raise UserError(message, host, "Mend that, and try again.") from error
    except HTTPError as error:
        raise _silent(host, error) from error


def _said(body: Any) -> str:
    """What the server said, without its own wrapping."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        content = json.loads(text)
    except ValueError:
        content = {}
    told = content.get("message") or content.get("error") if isinstance(content, dict) else None
    return str(told or text).strip() or "no reason given"


def _silent(host: str, error: Exception) -> UserError:
    slow = "timed out" in str(error).lower()
    message = f"it does not answer within {_SECONDS} s" if slow else "it does not answer"
    return UserError(message, host, f"Check the URL and the network. {_HOSTS}")


def _shut_out(host: str, status: int) -> UserError:
    message = "it wants to know who you are" if status == 401 else "your account may not do this"
    return UserError(f"{message} ({status})", host, _ACCESS)
