"""A gRPC server that answers every Predict request with the bytes of its standard input."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc

from benchmarks.trust._target import PREDICT


async def main() -> None:
    """Print the port, and serve until the process is terminated."""
    response = sys.stdin.buffer.read()

    async def predict(message: bytes, context: Any) -> bytes:
        return response

    service, method = PREDICT.strip("/").split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(predict)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
