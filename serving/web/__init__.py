"""The web page: runs a served model and shows its attention."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from regard.serving.contract import Contract, SavedModelError, read_contract
from regard.serving.server.errors import ServingError
from regard.serving.server.manager import ModelManager
from regard.serving.server.versions import ModelSpec

PAGE_FOLDER = Path(__file__).with_name("page")
_MODULE_SYNTAX = re.compile(r"^import\s.*?;\n|^export\s+", re.MULTILINE | re.DOTALL)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Only files of this server, no inline scripts, and no embedding into other pages.
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


class ModelDescription(TypedDict):
    """What the page needs to know of a model: its contract, or why there is none."""

    name: str
    version: int | None
    contract: Contract | None
    problem: str | None


def create_routes(manager: ModelManager) -> list[Route]:
    """Return the routes of the page, its files, and the list of models."""
    files = {path.name: path for path in PAGE_FOLDER.iterdir() if path.suffix in _MEDIA_TYPES}

    async def get_page(request: Request) -> Response:
        return _file_response(files["index.html"])

    async def get_file(request: Request) -> Response:
        path = files.get(request.path_params["name"])
        return _file_response(path) if path else Response("Not Found", 404, headers=_HEADERS)

    async def get_models(request: Request) -> Response:
        models = [_describe_model(manager, name) for name in manager.names]
        return JSONResponse(models, headers=_HEADERS)

    return [
        Route("/", get_page),
        Route("/page/models.json", get_models),
        Route("/page/{name}", get_file),
    ]


def bundle_scripts(*paths: Path) -> str:
    """Concatenate JavaScript modules into one, for a page that loads no other files."""
    return "\n".join(_MODULE_SYNTAX.sub("", path.read_text(encoding="utf-8")) for path in paths)


def _file_response(path: Path) -> Response:
    return Response(path.read_bytes(), media_type=_MEDIA_TYPES[path.suffix], headers=_HEADERS)


def _describe_model(manager: ModelManager, name: str) -> ModelDescription:
    try:
        version = manager.find(ModelSpec(name))
    except ServingError as error:
        return {"name": name, "version": None, "contract": None, "problem": error.message}
    try:
        contract = read_contract(version.loaded.path)
    except SavedModelError as error:
        return {"name": name, "version": version.number, "contract": None, "problem": str(error)}
    return {"name": name, "version": version.number, "contract": contract, "problem": None}
