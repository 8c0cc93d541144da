"""Who is accepted, and how much the server holds at once."""

import asyncio
import threading
from pathlib import Path

import pytest
from grpc import StatusCode

from regard.serving.server.admission import SMALL_BYTES, Admission
from regard.serving.server.bearer_tokens import BearerTokens
from regard.serving.server.errors import ServingError
from regard.serving.server.options import ServerOptions


@pytest.mark.parametrize(
    ("options", "host", "is_accepted"),
    [
        ({}, "localhost:8501", True),
        ({}, "LOCALHOST", True),
        ({}, "127.0.0.1:8501", True),
        ({}, "[::1]:8501", True),
        ({}, "evil.example:8501", False),
        ({}, "localhost.evil.example", False),
        ({}, "", False),
        ({"host": "0.0.0.0"}, "anything", True),
        ({"host": "0.0.0.0", "allowed_hosts": ("model.example",)}, "model.example:80", True),
        ({"host": "0.0.0.0", "allowed_hosts": ("model.example",)}, "10.0.0.1", False),
    ],
)
def test_hosts(options, host, is_accepted):
    admission = Admission(ServerOptions(**options))
    if is_accepted:
        admission.check_host(host)
        return
    with pytest.raises(ServingError) as caught:
        admission.check_host(host)
    assert caught.value.code is StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("origin", "fetch_site", "is_accepted"),
    [
        ("", "", True),  # no browser
        ("http://localhost:8501", "", True),
        ("http://localhost:8501", "same-origin", True),
        ("https://demo.example", "same-origin", True),  # behind a proxy that replaces Host
        ("", "none", True),
        ("https://app.example:444", "cross-site", True),  # named by the options
        ("https://app.example", "", True),
        ("https://evil.example", "", False),
        ("https://evil.example", "cross-site", False),
        ("http://localhost:3000", "same-site", False),
        ("http://localhost:3000", "", False),
        ("null", "", False),
        ("http://[", "", False),
        ("", "cross-site", False),
    ],
)
def test_sites(origin, fetch_site, is_accepted):
    admission = Admission(ServerOptions(allowed_hosts=("app.example",)))
    if is_accepted:
        admission.check_site("localhost:8501", origin, fetch_site)
        return
    with pytest.raises(ServingError) as caught:
        admission.check_site("localhost:8501", origin, fetch_site)
    assert caught.value.code is StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    "header",
    ["", "secret", "Bearer", "Bearer Secret", "Bearer secret ", "Bärer secret", "Basic secret"],
)
def test_a_wrong_token_is_rejected(header, tmp_path):
    (tmp_path / "tokens").write_text("secret\n")
    admission = Admission(ServerOptions(), BearerTokens(tmp_path / "tokens"))
    for scheme in ("Bearer", "bearer", "BEARER"):
        admission.check_token(f"{scheme} secret")
    with pytest.raises(ServingError) as caught:
        admission.check_token(header)
    assert caught.value.code is StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"host": "::1"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"token_file": Path("tokens")}, False),
        ({"allowed_hosts": ("demo.example.com",)}, False),  # a proxy may stand before the server
    ],
)
def test_rows_of_the_data_are_shown_on_this_machine_only(options, expected):
    assert ServerOptions(**options).shows_examples is expected


def test_large_requests_are_held_up_to_a_limit_and_small_ones_always():
    admission = Admission(ServerOptions(max_request_bytes=SMALL_BYTES))
    with admission.hold() as hold:
        hold(admission.max_total_bytes)
        with admission.hold() as small:
            small(SMALL_BYTES)
        with admission.hold() as large:
            large(SMALL_BYTES)
            with pytest.raises(ServingError) as caught:
                large(1)
        assert caught.value.code is StatusCode.UNAVAILABLE
    with admission.hold() as large:
        large(admission.max_total_bytes)


def test_large_messages_are_converted_outside_of_the_loop():
    admission = Admission(ServerOptions())

    async def convert():
        sizes = (SMALL_BYTES, SMALL_BYTES + 1)
        return [await admission.convert(size, threading.current_thread) for size in sizes]

    small, large = asyncio.run(convert())
    assert small is threading.current_thread()
    assert large is not small
    admission.close()
