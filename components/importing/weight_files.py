"""Find and open the weights in the folder of a model of Hugging Face."""

import os
from collections.abc import Callable
from pathlib import Path

from regard.components.importing.pytorch_file import read_pytorch
from regard.components.importing.safetensors_file import read_safetensors
from regard.components.importing.tensor_file import TensorFile
from regard.core.errors import NotFoundError, UserError

# The files that can be read, in order of preference.
_READERS: dict[str, Callable[[Path], TensorFile]] = {
    "model.safetensors": read_safetensors,
    "pytorch_model.bin": read_pytorch,
}
# Other files of weights: patterns, what they are, and what to do.
_SAVE = "save it with `model.save_pretrained(folder)`, and import that folder"
_OTHERS = (
    (
        ("model.safetensors.index.json", "pytorch_model.bin.index.json", "model-0*.safetensors"),
        "The weights are split into several files, which Regard cannot import",
        "Load the model with Transformers, save it with `model.save_pretrained(folder, "
        'max_shard_size="100GB")`, and import that folder.',
    ),
    (
        ("tf_model.h5",),
        "The folder has the weights of TensorFlow only",
        f"Load the model with Transformers 4 and `from_tf=True`, {_SAVE}.",
    ),
    (
        ("flax_model.msgpack",),
        "The folder has the weights of Flax only",
        f"Load the model with Transformers 4 and `from_flax=True`, {_SAVE}.",
    ),
    (
        ("*.npz",),
        "The folder has weights in the format of Marian itself",
        "Convert it with `transformers/models/marian/convert_marian_to_pytorch.py`, or download "
        "the model of the same name from Hugging Face.",
    ),
    (
        ("*.gguf", "*.ggml", "*.onnx", "model.bin", "*.tflite", "*.ot"),
        "The folder has weights in the format of another program",
        "Download the model with its `model.safetensors` or `pytorch_model.bin`.",
    ),
)


def find_weights(folder: str | os.PathLike[str]) -> Path:
    """Return the file of weights in a folder: model.safetensors, or else pytorch_model.bin.

    Raises:
        NotFoundError: there is no such folder, or no file of weights in it.
        UserError: it has the weights in another form, which the error names.
    """
    folder = Path(folder)
    if not folder.is_dir():
        problem = "The model is a file, not a folder." if folder.exists() else "No such folder."
        remedy = "Name the folder that contains `config.json` and the weights of the model."
        raise NotFoundError(problem, str(folder), remedy)
    for name in _READERS:
        # A link to nothing counts: opening it says so.
        if os.path.lexists(folder / name):
            return folder / name
    for patterns, problem, remedy in _OTHERS:
        for pattern in patterns:
            path = next(iter(sorted(folder.glob(pattern))), None)
            if path is not None:
                raise UserError(f"{problem}: `{path.name}`.", str(folder), remedy)
    raise NotFoundError(
        "The folder has no weights: neither `model.safetensors` nor `pytorch_model.bin`.",
        str(folder),
        "Download all files of the model, for example with `git lfs pull`.",
    )


def open_weights(path: str | os.PathLike[str]) -> TensorFile:
    """Open a file that `find_weights` returned.

    Raises:
        UserError: it is damaged, or cannot be read.
    """
    path = Path(path)
    return _READERS[path.name](path)
