"""How requests are counted: answered, refused, failed, and given up."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from serving.local.manager import Manager, Options
from serving.local.model_config import ModelConfig
from serving.local.predictions import counted
from serving.local.status import invalid


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "OK"),
        (invalid("no"), "INVALID_ARGUMENT"),
        (KeyError("our own"), "INTERNAL"),
        (asyncio.CancelledError(), "CANCELLED"),
    ],
)
def test_requests_are_counted_by_how_they_ended(tmp_path, error, status):
    manager = Manager([ModelConfig("m", tmp_path)], Options())
    for model in ("m", "made-up"):
        expected = contextlib.nullcontext() if error is None else pytest.raises(type(error))
        with expected, counted(manager, model, "Predict", "GRPC"):
            if error is not None:
                raise error
    text = manager.metrics.text()
    assert f':request_count{{model_name="m",status="{status}"}} 1' in text
    assert f':request_count{{model_name="",status="{status}"}} 1' in text
    assert ("request_latency" in text) == (error is None)
