"""Bodies of REST requests: their size, and gzip."""

import gzip
import json
import random
import socket
import time
import zlib

import pytest

from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import post

ROWS = json.dumps({"instances": ["abc"]}).encode()
LIMIT = 100_000


@pytest.fixture
def limited(run, saved):
    """A server whose requests have at most ``LIMIT`` bytes."""
    models = [ModelConfig("r", saved / "reverser")]
    return run(models, ManagerOptions(poll_seconds=0), max_request_bytes=LIMIT)


def packed(content, encoding="gzip"):
    return {"headers": {"Content-Encoding": encoding}, "body": content}


def send(server, body, headers):
    return post(server, "r:predict", body, headers=headers)


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_gzip_bodies_are_unpacked(limited, encoding):
    answer = send(limited, **packed(gzip.compress(ROWS), encoding))
    assert answer.status_code == 200
    assert answer.json()["predictions"][0]["translation"] == "CBA"
    assert send(limited, **packed(ROWS, "identity")).status_code == 200


def test_a_long_text_is_unpacked_too(limited):
    rows = [format(number, "x") for number in range(200)]
    body = json.dumps({"instances": rows, "padding": " ".join(map(str, range(9000)))}).encode()
    answer = send(limited, **packed(gzip.compress(body)))
    assert [row["translation"] for row in answer.json()["predictions"]] == [
        row.upper()[::-1] for row in rows
    ]


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "identity, gzip", "zstd"])
def test_other_encodings_are_named(limited, encoding):
    answer = send(limited, **packed(gzip.compress(ROWS), encoding))
    assert answer.status_code == 415
    assert encoding in answer.json()["error"]


# Functions, because some contents are large, and gzip streams contain the time.
REFUSED_BODIES = {
    "empty": (lambda: b"", 400),
    "not compressed": (lambda: ROWS, 400),
    "zlib": (lambda: zlib.compress(ROWS), 400),
    "truncated": (lambda: gzip.compress(ROWS)[:-1], 400),
    "damaged": (lambda: gzip.compress(ROWS)[:-3] + b"xyz", 400),
    "followed by a byte": (lambda: gzip.compress(ROWS) + b"x", 400),
    "twice": (lambda: gzip.compress(ROWS) * 2, 400),
    "over the limit": (lambda: gzip.compress(b" " * LIMIT + ROWS), 413),
    "compressed twice": (lambda: gzip.compress(gzip.compress(b" " * 20_000_000)), 400),
    "bomb": (lambda: gzip.compress(b" " * 200_000_000), 413),
    "within the limit, 1,000 times as large": (lambda: gzip.compress(b" " * 90_000 + ROWS), 413),
}


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_damaged_streams_and_bombs_are_refused(limited, name):
    content, status = REFUSED_BODIES[name]
    answer = send(limited, **packed(content()))
    assert answer.status_code == status
    assert post(limited, "r:predict", ROWS).status_code == 200


def test_the_ratio_of_gzip_is_an_error_of_its_own(limited):
    answer = send(limited, **packed(gzip.compress(b" " * 90_000 + ROWS)))
    message = "The body has more than 100 times its packed size; send it unpacked."
    assert answer.json() == {"error": message}
    answer = send(limited, **packed(gzip.compress(random.randbytes(LIMIT) + ROWS)))
    assert answer.json() == {"error": f"The body has more than {LIMIT} bytes."}


def test_a_client_that_leaves_is_no_error_of_the_server(limited):
    head = b"POST /v1/models/r:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"
    with socket.create_connection(("127.0.0.1", limited.server.rest_port)) as connection:
        connection.sendall(head + b"{")
        time.sleep(0.1)
    counter = ':request_count{model_name="r",status="%s"}'
    wait_for(lambda: counter % "CANCELLED" in limited.manager.metrics.text())
    assert counter % "INTERNAL" not in limited.manager.metrics.text()


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_over_the_limit_is_too_large(limited, is_chunked):
    parts = [b"x" * 50_000] * 3
    body = iter(parts) if is_chunked else b"".join(parts)
    answer = limited.rest.post("/v1/models/r:predict", content=body)
    assert answer.status_code == 413
    assert answer.json() == {"error": f"The body has more than {LIMIT} bytes."}
