"""The middleware of all HTTP routes: which hosts and web sites a request may name."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from regard.serving.server.admission import Admission
from regard.serving.server.errors import ServingError
from regard.serving.server.rest_api import error_response

_READING_METHODS = ("GET", "HEAD", "OPTIONS")


class AccessMiddleware:
    """Rejects requests that a foreign web site could let a browser send.

    Args:
        app: the application.
        admission: accepts or rejects requests.
    """

    def __init__(self, app: ASGIApp, admission: Admission):
        self._app, self._admission = app, admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        try:
            self._admission.check_host(host)
            if scope["method"] not in _READING_METHODS:
                origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "")
                self._admission.check_site(host, origin, site)
        except ServingError as error:
            await error_response(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
