"""The API of Kubeflow Pipelines on this machine, checking requests with the API's own models."""

from __future__ import annotations

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


class Api:
    """Keeps what it is sent, unless it is told to misbehave.

    Attributes:
        status: of the answer to a run; not 200: it is refused.
        token: what it wants to be shown.
        answers: a whole answer for a path and all below it, such as ``runs`` or ``healthz``.
        seconds: for how long an answer to anything but the health check is kept back.
        page: how many schedules it tells at once.
    """

    def __init__(self) -> None:
        self.experiments: list[dict[str, Any]] = []
        self.runs: list[Any] = []
        self.recurring: list[Any] = []
        self.status = 200
        self.token: str | None = None
        self.answers: dict[str, Response] = {}
        self.seconds = 0.0
        self.page = 100
        self.url = ""

    def routes(self) -> list[Route]:
        paths = {
            "healthz": (self.health, ["GET"]),
            "experiments": (self.experiments_, ["GET", "POST"]),
            "runs": (self.run, ["POST"]),
            "recurringruns": (self.recur, ["GET", "POST"]),
        }
        return [
            Route(f"{PREFIX}/{name}", endpoint, methods=methods)
            for name, (endpoint, methods) in paths.items()
        ]

    async def refused(self, request: Request) -> Response | None:
        """The refusal, or the odd answer, where there is one."""
        name = request.url.path.removeprefix(f"{PREFIX}/")
        if name != "healthz":
            await asyncio.sleep(self.seconds)
        if name in self.answers:
            return self.answers[name]
        given = request.headers.get("authorization")
        if self.token and given != f"Bearer {self.token}":
            return JSONResponse({"error": "no token"}, 403 if given else 401)
        return None

    async def health(self, request: Request) -> Response:
        return await self.refused(request) or JSONResponse({"multi_user": False})

    async def experiments_(self, request: Request) -> Response:
        if refused := await self.refused(request):
            return refused
        if request.method == "GET":
            (wanted,) = json.loads(request.query_params["filter"])["predicates"]
            assert wanted["key"] == "display_name"
            found = [e for e in self.experiments if e["display_name"] == wanted["stringValue"]]
            return JSONResponse({"experiments": found})
        made = read(await request.body(), "V2beta1Experiment")
        known = {"experiment_id": f"e{len(self.experiments)}", "display_name": made.display_name}
        self.experiments.append(known)
        return JSONResponse(known)

    async def run(self, request: Request) -> Response:
        if refused := await self.refused(request):
            return refused
        if self.status != 200:
            return JSONResponse({"code": 3, "message": "invalid pipeline job inputs"}, self.status)
        run = read(await request.body(), "V2beta1Run")
        check_spec(run.pipeline_spec)
        self.runs.append(run)
        return JSONResponse({"run_id": "r1", "display_name": run.display_name})

    async def recur(self, request: Request) -> Response:
        if refused := await self.refused(request):
            return refused
        if request.method == "GET":
            begin = int(request.query_params.get("page_token") or 0)
            end = begin + min(self.page, int(request.query_params["page_size"]))
            listed = [{"display_name": run.display_name} for run in self.recurring[begin:end]]
            more = {"next_page_token": str(end)} if end < len(self.recurring) else {}
            return JSONResponse({"recurringRuns": listed, **more})
        run = read(await request.body(), "V2beta1RecurringRun")
        check_spec(run.pipeline_spec)
        assert len(run.trigger.cron_schedule.cron.split()) == 6
        if not 1 <= int(run.max_concurrency) <= 10:
            return JSONResponse({"message": "at least 1 and at most 10"}, 400)
        self.recurring.append(run)
        return JSONResponse({"recurring_run_id": "s1", "display_name": run.display_name})


class _Body:
    def __init__(self, body: bytes):
        self.data = body.decode()


def read(body: bytes, model: str) -> Any:
    """The request as the API's model of it, which must know every key."""
    known = set(getattr(kfp_server_api, model).attribute_map.values())
    assert set(json.loads(body)) <= known
    return kfp_server_api.ApiClient().deserialize(_Body(body), model)


def check_spec(spec: dict[str, Any]) -> None:
    """Raises unless the server could read the pipeline, and the platform beside it."""
    spec = spec if "pipeline_spec" in spec else {"pipeline_spec": spec, "platform_spec": {}}
    json_format.ParseDict(spec["pipeline_spec"], pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(spec["platform_spec"], pipeline_spec_pb2.PlatformSpec())


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Api]:
    """The API at a free port, while the block runs.

    Args:
        options: uvicorn's, such as those of a certificate.
    """
    api = Api()
    app = Starlette(routes=api.routes())
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
