"""The same graph, orchestrated as a Beam pipeline."""

from pipeline.nodes import NODES


def test_the_beam_runner_pushes_and_skips_like_the_local_one(shell):
    config = shell.configure(epochs=1)
    for expected in ("done", "cached"):
        done = shell.run("run", config, "--runner", "beam")
        assert done.returncode == 0, done.stdout + done.stderr
        assert shell.states() == dict.fromkeys(NODES, expected)
    assert (shell.home / "registry/tiny/1/saved_model.pb").exists()
    local = shell.run("run", config)  # the two share their cache
    assert local.returncode == 0
    assert shell.states() == dict.fromkeys(NODES, "cached")
