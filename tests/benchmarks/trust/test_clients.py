import asyncio

from benchmarks.trust import clients


def test_a_plain_server_answers_every_client_with_the_stored_response():
    """Each client over a connection of its own."""
    responses = []

    async def send_from_two() -> None:
        async with clients._grpc(port, b"any") as first, clients._grpc(port, b"other") as second:
            responses.extend([await first(), await second()])

    with clients._echo_server(b"\x00stored\xff") as (_, port):
        asyncio.run(send_from_two())
        latencies = asyncio.run(clients._measure(lambda: clients._grpc(port, b"any"), 4, 0.2))
    assert responses == [b"\x00stored\xff"] * 2
    assert len(latencies) >= 4
    assert min(latencies) > 0
