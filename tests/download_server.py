"""A local web server that can simulate failures."""

import http.server
import threading

import pytest


class Server:
    """Serves ``files`` at ``url`` and records the requested names.

    Attributes:
        files: name -> bytes.
        requests: the name of each request.
        failures: name -> list of failures, one for each request: a status to respond with, or
            ``("cut", n)``: the connection closes after n bytes.
    """

    def __init__(self):
        self.files, self.requests, self.failures = {}, [], {}
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/data"

    def answer(self, handler):
        name = handler.path.removeprefix("/data/")
        self.requests.append(name)
        failure = self.failures[name].pop(0) if self.failures.get(name) else None
        if isinstance(failure, int) or name not in self.files:
            handler.send_error(failure or 404)
            return
        content = self.files[name]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: failure[1]] if failure else content)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.httpd.shutdown()
    server.httpd.server_close()
    thread.join()
