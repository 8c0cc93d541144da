"""The end of the server, as clients that always have a call in progress see it."""

import asyncio
import threading

import grpc

from regard.serving.server.grpc_gate import ResponseGate
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from tests.processes import wait_for
from tests.serving.server.requests import predict_request


def test_responses_wait_until_no_more_calls_arrive():
    async def run():
        gate, passed = ResponseGate(), []

        async def respond(number):
            gate.count_call()
            await gate.wait()
            passed.append(number)

        await respond(0)
        closing = asyncio.ensure_future(gate.close())
        await asyncio.sleep(0)
        responses = [asyncio.ensure_future(respond(number)) for number in (1, 2)]
        await closing
        assert passed == [0]
        gate.open()
        await asyncio.gather(*responses)
        assert passed == [0, 1, 2]

    asyncio.run(run())


def test_the_end_of_the_server_cancels_no_call(run, saved):
    server = run([ModelConfig("r", saved / "reverser")], ManagerOptions(poll_seconds=0))
    answered, errors = [], []

    def call(channel):
        predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        request = predict_request("r", source=["ab"]).SerializeToString()
        try:
            while True:
                answered.append(predict(request))
        except grpc.RpcError as error:
            errors.append(error.code())
        channel.close()

    options = [("grpc.use_local_subchannel_pool", 1)]
    address = f"127.0.0.1:{server.server.grpc_port}"
    threads = [
        threading.Thread(target=call, args=(grpc.insecure_channel(address, options),))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answered) > 50)
    server.do(server.server.stop(30))
    for thread in threads:
        thread.join()
    # They cannot connect any more. A call that the server had not begun was CANCELLED.
    assert set(errors) == {grpc.StatusCode.UNAVAILABLE}
