"""The web page: runs a served model and shows its attention."""

import functools
import json
import re
from pathlib import Path
from typing import Any, TypedDict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from regard.serving.contract import IN_MEMORY, Contract, SavedModelError, input_kinds, read_contract
from regard.serving.server.errors import ServingError
from regard.serving.server.manager import ModelManager
from regard.serving.server.versions import ModelSpec

PAGE_FOLDER = Path(__file__).with_name("page")
STYLES = ("style.css", "attention.css")  # of every page; the second one also of the documentation
_EXAMPLES = 3  # of a model
_MODULE_SYNTAX = re.compile(r"^import\s.*?;\n|^export\s+", re.MULTILINE | re.DOTALL)
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
    """What the page needs to know of a model: its contract, or why there is none, and inputs."""

    name: str
    version: int | None
    contract: Contract | None
    problem: str | None
    examples: list[dict[str, Any]]


class _PageFiles(StaticFiles):
    """The files of the page, with strict headers."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers.update(_HEADERS)
        return response


def create_routes(manager: ModelManager, with_examples: bool) -> list[BaseRoute]:
    """Return the routes of the page, its files, and the list of models.

    Args:
        manager: the served models.
        with_examples: whether the list has inputs of rows, which the Trainer stored with a model.
            Everybody who can reach the server can read them.
    """

    async def get_models(request: Request) -> Response:
        models = [_describe_model(manager, name, with_examples) for name in manager.names]
        return JSONResponse(models, headers=_HEADERS)

    files = _PageFiles(directory=PAGE_FOLDER)

    async def get_page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [Route("/", get_page), Route("/page/models.json", get_models), Mount("/page", files)]


def bundle_scripts(*paths: Path) -> str:
    """Concatenate JavaScript modules into one, for a page that loads no other files."""
    return "\n".join(_MODULE_SYNTAX.sub("", path.read_text(encoding="utf-8")) for path in paths)


def _describe_model(manager: ModelManager, name: str, with_examples: bool) -> ModelDescription:
    model: ModelDescription = {
        "name": name,
        "version": None,
        "contract": None,
        "problem": None,
        "examples": [],
    }
    try:
        version = manager.find(ModelSpec(name))
        model["version"] = version.number
        model["contract"] = contract = read_contract(version.loaded.path)
        if with_examples and not any(kind.names_file for kind in input_kinds(contract).values()):
            model["examples"] = _read_examples(Path(version.loaded.path) / IN_MEMORY)
    except ServingError as error:
        model["problem"] = error.message
    except (SavedModelError, ValueError) as error:  # no contract, or damaged rows
        model["problem"] = str(error)
    return model


@functools.lru_cache(maxsize=16)  # the file has all outputs, and every load of the page asks
def _read_examples(file: Path) -> list[dict[str, Any]]:
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    different = {json.dumps(row["inputs"]): row["inputs"] for row in rows}
    return list(different.values())[:_EXAMPLES]
