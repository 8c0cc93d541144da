import http.server
import socket
import threading

import pytest

from benchmarks.cluster.node import load


@pytest.fixture
def responses(monkeypatch):
    """A server on the loopback address that sends these responses in turn: status and body."""
    responses = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = responses.pop(0)
            if status == 0:  # the process was killed
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setattr(load, "PORT", server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield responses
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_request_is_counted_by_its_result(responses):
    good = (200, b'{"predictions": [{"translation": "2026-11-20"}]}')
    responses += [good, (503, b""), (0, b""), (200, b"no JSON"), good]
    counter = load.Counter(lambda: load.send("127.0.0.1", "quickstart"))
    for _ in range(5):
        counter.send()
    result = counter.result()
    assert result.requests == 5
    assert result.failed == 3
    assert result.failures["status 503"] == 1
    assert result.outputs == {"2026-11-20": 2}
    assert len(result.first_failures) == 3


def test_a_server_that_does_not_listen_is_a_failure(monkeypatch):
    counter = load.Counter(lambda: load.send("127.0.0.1", "quickstart"))
    with socket.socket() as bound:  # but not listening
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setattr(load, "PORT", bound.getsockname()[1])
        counter.send()
        counter.send()
    assert counter.result().failures == {"ConnectionRefusedError": 2}
