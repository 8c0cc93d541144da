"""Runs and schedules on a cluster, through the API of Kubeflow Pipelines."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import UserError
from pipeline.kubeflow.answers import (
    CONNECT_SECONDS,
    HOSTS,
    READ_SECONDS,
    TOKEN,
    check_health,
    other,
    told,
)

if TYPE_CHECKING:
    from pipeline.kubeflow.package import Package

HOST = "KF_PIPELINES_ENDPOINT"
UI = "KF_PIPELINES_UI_ENDPOINT"
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
_PAGE = 100


@dataclasses.dataclass(frozen=True)
class Started:
    """A run or a schedule that is on the cluster now.

    Attributes:
        id: by which the cluster knows it.
        name: for people.
        link: where to see it; None where nobody has said where Kubeflow's pages are.
    """

    id: str
    name: str
    link: str | None


class Cluster:
    """Kubeflow Pipelines at a host.

    Args:
        host: the URL of its API; None: what ``KF_PIPELINES_ENDPOINT`` names.
        namespace: of the user, where there are several; None: there are none.

    Raises:
        UserError: no host is given; it does not answer; it is not Kubeflow Pipelines; it does not
            let one in.
    """

    def __init__(self, host: str | None = None, namespace: str | None = None):
        import kfp_server_api

        self.host = _checked(host or os.environ.get(HOST, ""))
        self.namespace = namespace
        token, authority = _token(), _authority()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        check_health(self.host, headers, authority)
        configuration = kfp_server_api.Configuration(host=self.host)
        configuration.ssl_ca_cert = authority
        configuration.retries = False  # each error as it is, and no redirection
        client = kfp_server_api.ApiClient(configuration)
        for name, value in headers.items():
            client.set_default_header(name, value)
        self._experiments = kfp_server_api.ExperimentServiceApi(client)
        self._runs = kfp_server_api.RunServiceApi(client)
        self._schedules = kfp_server_api.RecurringRunServiceApi(client)

    def submit(self, package: Package, experiment: str, name: str) -> Started:
        """Starts a run.

        Raises:
            UserError: the cluster refuses it, or does not answer any longer.
        """
        from kfp_server_api import V2beta1Run

        where = self._experiment(experiment)
        run = V2beta1Run(experiment_id=where, display_name=name, **_what(package))
        with told(self.host):
            made = self._runs.run_service_create_run(run, _request_timeout=_TIMEOUT)
        known = self._known(made, "run_id")
        return Started(known, name, _link("runs", known))

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
        import kfp_server_api as api

        where = self._experiment(experiment)
        if name in self._scheduled(where):
            raise UserError(
                f"there is a schedule {name!r} already, in the experiment {experiment!r}",
                self.host,
                "Delete it there, or give this one another --name.",
            )
        wanted = api.V2beta1RecurringRun(
            experiment_id=where,
            display_name=name,
            mode=api.RecurringRunMode.ENABLE,
            trigger=api.V2beta1Trigger(cron_schedule=api.V2beta1CronSchedule(cron=cron)),
            max_concurrency=str(max_concurrency),
            no_catchup=not catchup,
            **_what(package),
        )
        with told(self.host):
            made = self._schedules.recurring_run_service_create_recurring_run(
                wanted, _request_timeout=_TIMEOUT
            )
        known = self._known(made, "recurring_run_id")
        return Started(known, name, _link("recurringrun", known))

    def _experiment(self, name: str) -> str:
        """The id of the experiment of a name, which is made where there is none."""
        from kfp_server_api import V2beta1Experiment

        service = self._experiments
        called = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
        within = {"namespace": self.namespace} if self.namespace else {}
        with told(self.host):
            listed = service.experiment_service_list_experiments(
                filter=json.dumps({"predicates": [called]}), _request_timeout=_TIMEOUT, **within
            )
            found = listed.experiments or []
            if len(found) > 1:
                message = f"there are {len(found)} experiments called {name!r}"
                remedy = "Give another --experiment, or the --namespace of the one that is meant."
                raise UserError(message, self.host, remedy)
            if not found:
                wanted = V2beta1Experiment(display_name=name, **within)
                found = [
                    service.experiment_service_create_experiment(wanted, _request_timeout=_TIMEOUT)
                ]
        return self._known(found[0], "experiment_id")

    def _scheduled(self, experiment: str) -> set[str]:
        """The names of an experiment's schedules."""
        names: set[str] = set()
        page = ""
        while True:
            with told(self.host):
                listed = self._schedules.recurring_run_service_list_recurring_runs(
                    page_token=page,
                    page_size=_PAGE,
                    experiment_id=experiment,
                    _request_timeout=_TIMEOUT,
                )
            names.update(run.display_name for run in listed.recurring_runs or ())
            page = listed.next_page_token
            if not page:
                return names

    def _known(self, made: Any, key: str) -> str:
        """The id of what was made: something else than the API answers without one."""
        known = getattr(made, key)
        if not isinstance(known, str) or not known:
            raise other(self.host, f"an answer has no {key}, so nothing was started")
        return known


def _what(package: Package) -> dict[str, Any]:
    """What is run, as the API takes it."""
    from kfp_server_api import V2beta1RuntimeConfig

    spec: dict[str, Any] = package.spec
    if package.platform:
        spec = {"pipeline_spec": package.spec, "platform_spec": package.platform}
    given = V2beta1RuntimeConfig(parameters=package.parameters, pipeline_root=package.pipeline_root)
    return {"pipeline_spec": spec, "runtime_config": given}


def _checked(host: str) -> str:
    if not host:
        message = "no host is given"
        raise UserError(message, "--host", f"Give --host URL, or set {HOST}. {HOSTS}")
    if not host.startswith(("http://", "https://")):
        raise UserError(f"{host!r} is no URL", "--host", "It begins with http:// or https://.")
    return host.rstrip("/")


def _token() -> str:
    """The bearer token, without the newline that files end in; empty where there is none."""
    token = os.environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UserError("this is no token: it has other signs than a header may", TOKEN)
    return token


def _authority() -> str | None:
    """The file of certificates that are trusted instead of the usual ones."""
    for name in _AUTHORITIES:
        if path := os.environ.get(name):
            if not Path(path).exists():
                raise UserError(f"there is no {path}", name, "Name a file of certificates.")
            return path
    return None


def _link(kind: str, known: str) -> str | None:
    """Where a person sees it: the API has no pages, so only the user knows where they are."""
    pages = os.environ.get(UI, "").rstrip("/")
    return f"{pages}/#/{kind}/details/{known}" if pages else None
