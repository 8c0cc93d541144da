"""Run scripts of examples/ in a short form, and record what they train and predict.

``python recorder.py SCRIPT ...`` trains in the current folder with a few steps on one small batch,
and writes SCRIPT.npz: the losses, and the inputs and outputs of the last prediction. The scripts
cannot import what only the pipeline needs, and TensorFlow only if it is the backend.
"""

import functools
import importlib.util
import os
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EPOCHS, ROWS = 4, 6
SMALLER = {"TARGET_LENGTH": 4, "HIGH": 6, "LAYERS": 1}  # Fewer steps and layers compile sooner.
PIPELINE = {"regard.pipeline", "regard.components", "regard.serving", "apache_beam", "tfx"}
PIPELINE |= {"babel", "jinja2", "pydantic", "tensorflow_text", "typer", "yaml"}


class Blocker:
    """Hides modules."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        """Raise an error for the modules that are hidden."""
        if name in self.names:
            raise ModuleNotFoundError(f"Examples must not import {name}.", name=name)


def run(script):
    """Run a script."""
    import keras
    import numpy as np

    record = {}

    class RecordingModel(keras.Model):
        def fit(self, *args, **options):
            history = super().fit(*args, **{**options, "epochs": EPOCHS})
            record["loss"] = history.history["loss"]
            return history

        def predict(self, inputs, **options):
            return self._record(inputs, super().predict(inputs, **options))

        def predict_on_batch(self, inputs):
            return self._record(inputs, super().predict_on_batch(inputs))

        def _record(self, inputs, outputs):
            record.update(inputs, **outputs)
            return outputs

    spec = importlib.util.spec_from_file_location(script, EXAMPLES / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    model, keras.Model = keras.Model, RecordingModel
    try:
        spec.loader.exec_module(module)
    finally:
        keras.Model = model
    vars(module).update({name: size for name, size in SMALLER.items() if hasattr(module, name)})
    if hasattr(module, "generate"):
        generate = functools.cache(module.generate)  # The loss of one batch falls within few steps.
        module.generate = lambda rng, size, **options: generate(rng, ROWS, **options)
    sys.argv = [script, "--steps", "10"]
    module.main()
    np.savez(f"{script}.npz", **{name: np.asarray(value) for name, value in record.items()})


def main():
    """Run the scripts that the command line names."""
    is_tensorflow = os.environ["KERAS_BACKEND"] == "tensorflow"
    sys.meta_path.insert(0, Blocker(PIPELINE if is_tensorflow else PIPELINE | {"tensorflow"}))
    if is_tensorflow:
        import tensorflow

        # Compiling takes longer than a few steps.
        tensorflow.config.run_functions_eagerly(True)
    for name in sys.argv[1:]:
        run(name)


if __name__ == "__main__":
    main()
