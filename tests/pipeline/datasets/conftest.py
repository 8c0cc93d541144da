"""A web server of files on this machine that can be told to misbehave."""

import http.server
import re
import threading

import pytest


class Server:
    """Serves ``files`` at ``url`` and notes each request.

    Attributes:
        files: name -> bytes.
        requests: (name, Range header or None) of each request so far.
        faults: name -> list of faults, one used up a request: a status to answer with, or
            ``("cut", n)``: the connection closes after n bytes of the answer.
        ranges: False: the Range header is ignored, as old servers do.
    """

    def __init__(self):
        self.files, self.requests, self.faults, self.ranges = {}, [], {}, True
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
        wanted = handler.headers.get("Range")
        self.requests.append((name, wanted))
        fault = self.faults[name].pop(0) if self.faults.get(name) else None
        if isinstance(fault, int) or name not in self.files:
            handler.send_error(fault or 404)
            return
        content, start = self.files[name], 0
        if wanted and self.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(content):
                handler.send_response(416)
                handler.send_header("Content-Range", f"bytes */{len(content)}")
                handler.send_header("Content-Length", "0")
                handler.end_headers()
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        body = content[start:]
        handler.wfile.write(body[: fault[1]] if fault else body)


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
