"""The connection of several processes on JAX."""

from types import SimpleNamespace

import jax
import pytest

from regard.components.trainer.backends import jax_group
from regard.components.trainer.backends.jax import JaxBackend
from regard.core.errors import UserError


def test_unequal_numbers_of_devices_are_refused(monkeypatch):
    """The parts of a batch would overlap."""
    devices = [SimpleNamespace(process_index=index) for index in (0, 0, 1)]
    monkeypatch.setattr(jax_group.jax, "devices", lambda: devices)
    monkeypatch.setattr(jax_group.jax.distributed, "initialize", lambda *_, **__: None)
    monkeypatch.setattr(jax_group.jax.config, "update", lambda *_: None)
    with pytest.raises(UserError) as error:
        jax_group.connect_processes("a:1", 0, 2)
    assert "worker 0: 2, worker 1: 1" in error.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UNAVAILABLE: the task is gone", True),
        ("INTERNAL: NCCL operation ncclAllReduce failed: remote process exited", True),
        ("UNKNOWN: Gloo all-reduce failed", True),
        ("INTERNAL: CUDA_ERROR_DEVICE_UNAVAILABLE", False),
    ],
)
def test_lost_connections_differ_from_other_errors(text, expected):
    assert JaxBackend().is_connection_error(jax.errors.JaxRuntimeError(text)) is expected
    assert not JaxBackend().is_connection_error(ValueError(text))
