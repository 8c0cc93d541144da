"""The page: one asks a served model and sees where it looked. Files of our own, no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.local.manager import Manager
from serving.local.status import ServingError
from serving.saved_model import SavedModelError, read_contract

_FOLDER = Path(__file__).with_name("page")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing written into the page, and no page around it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def routes(manager: Manager) -> list[Route]:
    """The page at ``/``, its files below ``/page/``, and what it knows of the models."""
    files = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _TYPES}

    async def page(request: Request) -> Response:
        return _file(files["index.html"])

    async def file(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        return _file(found) if found else Response("Not Found", 404, headers=_HEADERS)

    async def models(request: Request) -> Response:
        text = json.dumps([_described(manager, name) for name in manager.names])
        return Response(text, media_type="application/json", headers=_HEADERS)

    return [
        Route("/", page),
        Route("/page/models.json", models),
        Route("/page/{name}", file),
    ]


def _file(path: Path) -> Response:
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=_HEADERS)


def _described(manager: Manager, name: str) -> dict[str, Any]:
    """A model's name, version, and contract, or why there is none."""
    try:
        found = manager.find(name)
        assert found.servable is not None
        contract = read_contract(found.servable.path)
    except ServingError as error:
        return {"name": name, "version": None, "contract": None, "problem": error.message}
    except SavedModelError as error:
        return {"name": name, "version": found.number, "contract": None, "problem": str(error)}
    return {"name": name, "version": found.number, "contract": contract, "problem": None}
