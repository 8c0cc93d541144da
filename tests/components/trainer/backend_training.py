"""Trainings on the backend of a process, to compare backends.

``python -m tests.components.trainer.backend_training FOLDER NAME...`` trains on the backend that
``KERAS_BACKEND`` names, without TensorFlow, and prints JSON: the outcomes by their names.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]


def run(folder: Path, name: str) -> dict[str, Any]:
    """Train ``NAME.json`` of a folder, from the weights in ``NAME.npz`` if there are any.

    Returns:
        The ``losses`` of the evaluations, the ``train_losses`` between them, the number of
        ``devices``, and the file of the final ``weights``.
    """
    import keras
    import numpy as np

    from regard.components.settings.trainer import TrainingJob
    from regard.components.trainer.train import TrainingResult, train
    from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint

    job = TrainingJob.model_validate_json((folder / f"{name}.json").read_text())
    start_file = folder / f"{name}.npz"
    start = WarmStartCheckpoint.load(start_file) if start_file.exists() else None
    # The factors of LoRA start with the same numbers on every backend.
    with mock.patch.object(keras.initializers.RandomNormal, "__call__", _random_normal):
        result = train(job, start=lambda _: start)
    assert isinstance(result, TrainingResult)
    weights = Path(job.run_folder) / "weights.npz"
    weights.parent.mkdir(parents=True, exist_ok=True)
    np.savez(weights, *result.model.get_weights())
    return {
        "losses": [entry["loss"] for entry in result.state.history],
        "train_losses": [entry["train_loss"] for entry in result.state.history],
        "devices": result.devices,
        "stop_reason": result.state.stop_reason,
        "weights": str(weights),
    }


def _random_normal(initializer: Any, shape: Any, dtype: Any = None) -> Any:
    import numpy as np
    from keras import ops

    numbers = np.random.default_rng(0).normal(0.0, initializer.stddev, shape)
    return ops.convert_to_tensor(numbers, dtype or "float32")


def start_on_jax(folder: Path, names: list[str], **environment: str) -> subprocess.Popen:
    """Start ``main`` on JAX in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.components.trainer.backend_training", str(folder), *names],
        cwd=ROOT,
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_PLATFORMS": "cpu",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiling is all that takes time here
            # Trainings of equal models share their programs.
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcomes(process: subprocess.Popen) -> dict[str, Any]:
    """Wait for ``main``, and return the outcomes by their names."""
    output, errors = process.communicate(timeout=1500)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


def main(folder: str, *names: str) -> None:
    """Train in this process, which must not import TensorFlow."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    results = {name: run(Path(folder), name) for name in names}
    loaded = [name for name, module in sys.modules.items() if module is not None]
    assert [name for name in loaded if name.partition(".")[0].startswith("tensorflow")] == []
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
