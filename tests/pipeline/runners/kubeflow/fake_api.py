"""A local server with the API of Kubeflow Pipelines. It parses requests with the API's models."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import kfp_server_api
import uvicorn
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PREFIX = "/apis/v2beta1"


class FakeApi:
    """Records requests, and misbehaves as its attributes say.

    Attributes:
        token: the bearer token that it requires.
        responses: fixed responses by path, for example ``runs``.
        delay_seconds: delay of every response.
    """

    def __init__(self) -> None:
        self.experiments: list[dict[str, str]] = []
        self.runs: list[Any] = []
        self.recurring_runs: list[Any] = []
        self.token: str | None = None
        self.responses: dict[str, Response] = {}
        self.delay_seconds = 0.0
        self.url = ""

    async def respond(self, request: Request) -> Response:
        """Responds as configured, or as the API would."""
        name = request.path_params["name"]
        await asyncio.sleep(self.delay_seconds)
        if name in self.responses:
            return self.responses[name]
        header = request.headers.get("authorization")
        if self.token and header != f"Bearer {self.token}":
            return JSONResponse({"error": "no token"}, 403 if header else 401)
        methods = {
            "experiments": self.handle_experiments,
            "runs": self.create_run,
            "recurringruns": self.handle_recurring_runs,
        }
        return await methods[name](request)

    async def disable_recurring_run(self, request: Request) -> Response:
        """Disables one recurring run."""
        (run,) = (r for r in self.recurring_runs if r.recurring_run_id == request.path_params["id"])
        run.status = "DISABLED"
        return JSONResponse({})

    async def handle_experiments(self, request: Request) -> Response:
        if request.method == "GET":
            matches = [e for e in self.experiments if e["display_name"] == filtered_name(request)]
            return JSONResponse({"experiments": matches})
        body = parse(await request.body(), "V2beta1Experiment")
        identifier = f"e{len(self.experiments)}"
        self.experiments.append({"experiment_id": identifier, "display_name": body.display_name})
        return JSONResponse(self.experiments[-1])

    async def create_run(self, request: Request) -> Response:
        run = parse(await request.body(), "V2beta1Run")
        check_spec(run.pipeline_spec)
        self.runs.append(run)
        return JSONResponse({"run_id": "r1", "display_name": run.display_name})

    async def handle_recurring_runs(self, request: Request) -> Response:
        if request.method == "GET":
            runs = [r for r in self.recurring_runs if r.display_name == filtered_name(request)]
            start = int(request.query_params["page_token"] or 0)
            page = [
                {"display_name": r.display_name, "recurring_run_id": r.recurring_run_id}
                | {"status": r.status}
                for r in runs[start : start + 1]
            ]
            following = {"next_page_token": str(start + 1)} if runs[start + 1 :] else {}
            return JSONResponse({"recurringRuns": page, **following})
        run = parse(await request.body(), "V2beta1RecurringRun")
        check_spec(run.pipeline_spec)
        assert len(run.trigger.cron_schedule.cron.split()) == 6
        self.recurring_runs.append(run)
        run.recurring_run_id, run.status = f"s{len(self.recurring_runs)}", "ENABLED"
        content = {"recurring_run_id": run.recurring_run_id, "display_name": run.display_name}
        return JSONResponse(content)


def filtered_name(request: Request) -> str:
    """The display name that the filter of a request selects."""
    (predicate,) = json.loads(request.query_params["filter"])["predicates"]
    assert (predicate["key"], predicate["operation"]) == ("display_name", "EQUALS")
    return predicate["stringValue"]


class _Body:
    def __init__(self, body: bytes):
        self.data = body.decode()


def parse(body: bytes, model: str) -> Any:
    """A request as the API's model, which must know every key."""
    keys = set(getattr(kfp_server_api, model).attribute_map.values())
    assert set(json.loads(body)) <= keys
    return kfp_server_api.ApiClient().deserialize(_Body(body), model)


def check_spec(spec: dict[str, Any]) -> None:
    """Raises unless the server could parse the pipeline and its platform."""
    spec = spec if "pipeline_spec" in spec else {"pipeline_spec": spec, "platform_spec": {}}
    json_format.ParseDict(spec["pipeline_spec"], pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(spec["platform_spec"], pipeline_spec_pb2.PlatformSpec())


@contextlib.contextmanager
def serve_api(**options: Any) -> Iterator[FakeApi]:
    """Serves the API at a free port.

    Args:
        options: of uvicorn, for example a certificate.
    """
    api = FakeApi()
    routes = [
        Route(f"{PREFIX}/{{name}}", api.respond, methods=["GET", "POST"]),
        Route(
            f"{PREFIX}/recurringruns/{{id}}:disable", api.disable_recurring_run, methods=["POST"]
        ),
    ]
    app = Starlette(routes=routes)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        api.url = f"{'https' if options else 'http'}://127.0.0.1:{port}"
        yield api
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
