"""Why there is a ``DistributedTrainStep``: the limits of Keras's ``fit`` on two devices.

If this test fails, Keras has removed them, and ``DistributedTrainStep`` can be deleted.
"""

import json
import subprocess
import sys

PROGRAM = """
import contextlib, json, keras, numpy as np, tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
one = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [one, one])
random = np.random.default_rng(0)
x = random.normal(size=(32, 4)).astype("float32")
y = x[:, :1] * np.linspace(0, 3, 32, dtype="float32")[:, None]

def losses(strategy, **options):
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1, **options), "mse")
        model.build((None, 4))
    rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    return model.fit(rows, epochs=3, shuffle=False, verbose=0).history["loss"]

two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
results = {name: [losses(s, **o) for s in (None, two)] for name, o in
        {"plain": {}, "clipped": {"global_clipnorm": 0.1}}.items()}
try:
    losses(two, gradient_accumulation_steps=2)
except RuntimeError as error:
    results["accumulated"] = str(error)
print(json.dumps(results))
"""


def test_keras_clips_before_it_sums_and_cannot_accumulate():
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    results = json.loads(process.stdout.splitlines()[-1])

    def max_difference(pair):
        return max(abs(a - b) for a, b in zip(*pair, strict=True))

    assert max_difference(results["plain"]) < 1e-5
    assert max_difference(results["clipped"]) > 1e-3
    assert "merge_call" in results["accumulated"]
