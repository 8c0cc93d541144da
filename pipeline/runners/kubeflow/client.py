"""Start runs and recurring runs through the API of Kubeflow Pipelines."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import EnvironmentFault, UserError
from regard.pipeline.runners.kubeflow import api_errors
from regard.serving.client.connections import check_token_url

if TYPE_CHECKING:
    from regard.pipeline.runners.kubeflow.submission import Submission

HOST_VARIABLE = "KF_PIPELINES_ENDPOINT"
UI_VARIABLE = "KF_PIPELINES_UI_ENDPOINT"
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_TIMEOUT = (api_errors.CONNECT_SECONDS, api_errors.READ_SECONDS)


@dataclasses.dataclass(frozen=True)
class ClusterJob:
    """A run or recurring run on the cluster.

    Attributes:
        id: the cluster's identifier.
        name: the display name.
        link: URL of its page; None if the UI's address is not known.
        replaced: the identifiers of the recurring runs that it replaces, which are disabled.
    """

    id: str
    name: str
    link: str | None
    replaced: tuple[str, ...] = ()


class KubeflowClient:
    """A client of Kubeflow Pipelines.

    Args:
        host: URL of the API; None: ``KF_PIPELINES_ENDPOINT``.
        namespace: the user's, on a multi-user installation.

    Raises:
        UserError: the host, the token or the certificates are missing or invalid.
    """

    def __init__(self, host: str | None = None, namespace: str | None = None):
        import kfp_server_api

        self.host = _validate_host(host or os.environ.get(HOST_VARIABLE, ""))
        self._namespace = {"namespace": namespace} if namespace else {}
        configuration = kfp_server_api.Configuration(host=self.host)
        configuration.ssl_ca_cert = _find_ca_bundle()
        configuration.retries = False  # report each error, and follow no redirect
        client = kfp_server_api.ApiClient(configuration)
        if token := _read_token():
            try:
                check_token_url(self.host)
            except ValueError as error:
                raise EnvironmentFault(str(error), api_errors.TOKEN_VARIABLE) from None
            client.set_default_header("Authorization", f"Bearer {token}")
        self._experiments = kfp_server_api.ExperimentServiceApi(client)
        self._runs = kfp_server_api.RunServiceApi(client)
        self._recurring_runs = kfp_server_api.RecurringRunServiceApi(client)

    def submit(self, submission: Submission, experiment: str, name: str) -> ClusterJob:
        """Start a run.

        Raises:
            UserError: the host does not respond, is another service, or refuses the request.
        """
        from kfp_server_api import V2beta1Run

        with api_errors.translate_errors(self.host):
            run = V2beta1Run(
                experiment_id=self._get_experiment_id(experiment),
                display_name=name,
                **_run_fields(submission),
            )
            response = self._runs.run_service_create_run(run, _request_timeout=_TIMEOUT)
        return self._job(response, "run_id", name, "runs")

    def schedule(
        self,
        submission: Submission,
        experiment: str,
        name: str,
        cron: str,
        catchup: bool = True,
        replace: bool = False,
    ) -> ClusterJob:
        """Create a recurring run, which starts one run at a time.

        A recurring run that is replaced is disabled once the new one exists. If it were deleted,
        Kubernetes would also remove a run of it that is in progress, whose owner it is.

        Args:
            submission: the pipeline and its parameters.
            experiment: name of the experiment.
            name: name of the recurring run.
            cron: expression with six fields, the seconds first.
            catchup: whether the cluster starts a run for each missed time.
            replace: whether to replace enabled recurring runs of that name.

        Raises:
            UserError: the name is in use and is not replaced, or as for ``submit``.
        """
        import kfp_server_api as api

        service = self._recurring_runs
        with api_errors.translate_errors(self.host):
            experiment_id = self._get_experiment_id(experiment)
            existing = self._enabled_recurring_runs(experiment_id, name)
            if existing and not replace:
                message = f"The experiment {experiment!r} already has a recurring run {name!r}."
                remedy = "Replace it with --replace, or choose another name with --name."
                raise UserError(message, self.host, remedy)
            recurring_run = api.V2beta1RecurringRun(
                experiment_id=experiment_id,
                display_name=name,
                mode=api.RecurringRunMode.ENABLE,
                trigger=api.V2beta1Trigger(cron_schedule=api.V2beta1CronSchedule(cron=cron)),
                max_concurrency="1",
                no_catchup=not catchup,
                **_run_fields(submission),
            )
            response = service.recurring_run_service_create_recurring_run(
                recurring_run, _request_timeout=_TIMEOUT
            )
            job = self._job(response, "recurring_run_id", name, "recurringrun")
            for identifier in existing:
                service.recurring_run_service_disable_recurring_run(
                    identifier, _request_timeout=_TIMEOUT
                )
        return dataclasses.replace(job, replaced=existing)

    def _enabled_recurring_runs(self, experiment_id: str, name: str) -> tuple[str, ...]:
        """Return the identifiers of the enabled recurring runs of a name."""
        runs: list[Any] = []
        token = ""
        while True:
            page = self._recurring_runs.recurring_run_service_list_recurring_runs(
                experiment_id=experiment_id,
                filter=_name_filter(name),
                page_token=token,
                _request_timeout=_TIMEOUT,
            )
            runs += page.recurring_runs or []
            token = page.next_page_token or ""
            if not token:
                break
        enabled = [run for run in runs if run.status != "DISABLED"]
        return tuple(self._get_id(run, "recurring_run_id") for run in enabled)

    def _get_experiment_id(self, name: str) -> str:
        """Return the id of an experiment, which is created if it does not exist."""
        from kfp_server_api import V2beta1Experiment

        service = self._experiments
        response = service.experiment_service_list_experiments(
            filter=_name_filter(name), _request_timeout=_TIMEOUT, **self._namespace
        )
        experiments = response.experiments or []
        if len(experiments) > 1:
            message = f"There are {len(experiments)} experiments named {name!r}."
            remedy = "Choose another --experiment, or give the --namespace of one of them."
            raise UserError(message, self.host, remedy)
        if experiments:
            return self._get_id(experiments[0], "experiment_id")
        experiment = V2beta1Experiment(display_name=name, **self._namespace)
        created = service.experiment_service_create_experiment(
            experiment, _request_timeout=_TIMEOUT
        )
        return self._get_id(created, "experiment_id")

    def _job(self, response: object, key: str, name: str, page: str) -> ClusterJob:
        job_id = self._get_id(response, key)
        # The API serves no pages, so only the user knows the UI's address.
        ui = os.environ.get(UI_VARIABLE, "").rstrip("/")
        return ClusterJob(job_id, name, f"{ui}/#/{page}/details/{job_id}" if ui else None)

    def _get_id(self, response: object, key: str) -> str:
        """Return an id from a response; a service other than the API returns none."""
        value = getattr(response, key)
        if not isinstance(value, str) or not value:
            reason = f"a response has no {key}, so nothing was started"
            raise api_errors.wrong_service_error(self.host, reason)
        return value


def _name_filter(name: str) -> str:
    """Return the filter for objects with a display name."""
    predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
    return json.dumps({"predicates": [predicate]})


def _run_fields(submission: Submission) -> dict[str, Any]:
    """Return the fields of the API that say what to run."""
    from kfp_server_api import V2beta1RuntimeConfig

    pipeline = submission.pipeline
    spec = pipeline.spec
    if pipeline.platform:
        spec = {"pipeline_spec": pipeline.spec, "platform_spec": pipeline.platform}
    runtime = V2beta1RuntimeConfig(
        parameters=submission.parameters, pipeline_root=pipeline.pipeline_root
    )
    return {"pipeline_spec": spec, "runtime_config": runtime}


def _validate_host(host: str) -> str:
    if not host:
        remedy = f"Give --host URL, or set {HOST_VARIABLE}. {api_errors.HOST_HELP}"
        raise UserError("The address of Kubeflow Pipelines is missing.", "--host", remedy)
    if not host.startswith(("http://", "https://")):
        message = f"{host!r} is not a URL."
        raise UserError(message, "--host", "Begin it with http:// or https://.")
    return host.rstrip("/")


def _read_token() -> str:
    """Return the bearer token without surrounding whitespace; empty if there is none."""
    token = os.environ.get(api_errors.TOKEN_VARIABLE, "").strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        message = "The token has characters that an HTTP header cannot contain."
        raise EnvironmentFault(message, api_errors.TOKEN_VARIABLE, "Set it to the token alone.")
    return token


def _find_ca_bundle() -> str | None:
    """Return the file of trusted certificates that the environment names."""
    for name in _CA_VARIABLES:
        if path := os.environ.get(name):
            if not Path(path).exists():
                message = f"The file {path} does not exist."
                raise EnvironmentFault(message, name, "Set it to a file of certificates.")
            return path
    return None
