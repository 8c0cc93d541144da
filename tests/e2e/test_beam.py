"""The same graph, orchestrated as a Beam pipeline."""

import pytest

from regard.pipeline.config.config import NODES


@pytest.mark.slow
def test_beam_runner_publishes_and_caches(shell):
    config = shell.configure(epochs=1)
    for expected in ("done", "cached"):
        result = shell.run("run", config, "--runner", "beam")
        assert result.returncode == 0, result.stdout + result.stderr
        assert shell.states() == dict.fromkeys(NODES, expected)
    assert (shell.home / "registry/tiny/1/saved_model.pb").exists()
    local = shell.run("run", config)  # the two share their cache
    assert local.returncode == 0
    assert shell.states() == dict.fromkeys(NODES, "cached")
