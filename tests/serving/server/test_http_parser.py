"""Requests that a proxy could read in another way, and those that cost more time than bytes."""

import h11
import pytest

from regard.serving.server.http_parser import RequestParser

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def parse(content, steps=10_000):
    """Return the events of one turn, the last of which is the error if there is one."""
    parser, events = RequestParser(16 << 10), []
    parser.receive_data(content)
    parser.start_turn(steps)
    try:
        while (event := parser.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            events.append(event)
    except h11.RemoteProtocolError as error:
        events.append(error)
    return parser, events


def body(events):
    return b"".join(bytes(event.data) for event in events if isinstance(event, h11.Data))


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: +5",
        b"Content-Length: 5_0",
        b"Content-Length: 99999999999999999999999",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding:\x0bchunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Content-Length : 5",
        b"X: a\r\n b",
        b" X: a",
        b"X: a\nY: b",
        b"X: a\rY: b",
        b"X: a\0b",
        b"Host: b",
    ],
)
def test_ambiguous_heads_are_errors(lines):
    _, events = parse(HEAD + lines + b"\r\n\r\nabcde")
    assert [type(event) for event in events] == [h11.RemoteProtocolError]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEAD + b"X: " + b"x" * 30_000, 431),  # without its end, it reaches h11's own limit
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (HEAD + b"X: a\0b\r\n\r\n", 400),
    ],
)
def test_errors_of_h11_keep_their_status(head, status):
    parser, _ = parse(head)
    assert parser.problem_status == status
    assert parser.problem


def test_lines_without_carriage_return_are_an_error():
    _, events = parse(b"GET / HTTP/1.1\nHost: a\n\n")
    assert isinstance(events[-1], h11.RemoteProtocolError)


def test_chunks_of_http_1_0_are_an_error():
    head = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    _, events = parse(head + b"0\r\n\r\n")
    assert isinstance(events[-1], h11.RemoteProtocolError)


@pytest.mark.parametrize(
    ("lines", "is_accepted"),
    [(b"X: 1\r\n" * 100, True), (b"X: 1\r\n" * 200, False), (b"X: " + b"y" * 300_000, False)],
)
def test_complete_heads_are_limited_too(lines, is_accepted):
    _, events = parse(HEAD + lines.removesuffix(b"\r\n") + b"\r\n\r\n")
    assert isinstance(events[0], h11.Request) == is_accepted
    if not is_accepted:
        assert events[0].error_status_hint == 431


def test_tiny_chunks_are_refused_and_large_ones_are_not():
    parser, events = parse(CHUNKED + b"1\r\na\r\n" * 3000)
    assert isinstance(events[-1], h11.RemoteProtocolError)
    assert parser.is_unfinished
    assert len(body(events)) < 2000
    with pytest.raises(h11.RemoteProtocolError):
        parser.next_event()
    chunks = [b"%x\r\n%s\r\n" % (300, b"a" * 300)] * 3000
    parser, events = parse(CHUNKED + b"".join(chunks) + b"0\r\n\r\n")
    assert isinstance(events[-1], h11.EndOfMessage)
    assert body(events) == b"a" * 900_000


def test_a_few_small_chunks_are_accepted():
    _, events = parse(CHUNKED + b"1\r\na\r\n" * 500 + b"0\r\n\r\n")
    assert isinstance(events[-1], h11.EndOfMessage)
    assert body(events) == b"a" * 500


@pytest.mark.parametrize("rest", [b"1;" + b"x" * 20_000, b"0\r\n" + b"x:\r\n" * 10_000])
def test_extensions_and_trailers_are_limited(rest):
    _, events = parse(CHUNKED + rest + b"\r\n\r\n")
    assert isinstance(events[-1], h11.RemoteProtocolError)


def test_a_turn_ends_after_its_steps_and_the_next_one_loses_nothing():
    content = CHUNKED + b"3\r\nabc\r\n" * 600 + b"0\r\n\r\n" + HEAD + b"\r\n"
    parser, events = parse(content, steps=10)
    assert len(events) < 10
    assert parser.is_interrupted
    while parser.is_interrupted:
        parser.start_turn(10)
        while (event := parser.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            events.append(event)
    assert body(events) == b"abc" * 600
    assert isinstance(events[-1], h11.EndOfMessage)
    assert parser.is_paused  # for the second request


@pytest.mark.parametrize(
    ("rest", "closes"),
    [(b"Content-Length: 0\r\n\r\n", False), (b"Content-Length: 9\r\n\r\n", True)],
)
def test_a_response_before_the_end_of_its_request_closes(rest, closes):
    parser, _ = parse(HEAD + rest)
    response = parser.send(h11.Response(status_code=404, headers=[(b"content-length", b"0")]))
    assert (b"connection: close" in response) == closes
    parser.send(h11.EndOfMessage())
    assert parser.our_state is (h11.MUST_CLOSE if closes else h11.DONE)
