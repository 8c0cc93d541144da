import json

import ml_dtypes
import numpy as np

T = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64}


def find_weights(folder):
    return folder / "model.safetensors"


def read_tensors(path):
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    h = json.loads(data[8 : 8 + n])
    return {
        k: np.frombuffer(
            data, T[v["dtype"]], offset=8 + n + v["data_offsets"][0], count=int(np.prod(v["shape"]))
        ).reshape(v["shape"])
        for k, v in h.items()
        if k != "__metadata__"
    }
