"""Convert a text-to-text model to programs of JAX, each for sources of up to a number of tokens.

``python -m regard.pipeline.deployment.jax_conversion VERSION FOLDER LENGTH...`` is a process of its
own, because Keras has one backend in a process. `serving.server.jax_servable` runs the programs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
from jax import export

from regard.components.trainer.export import RebuiltModel
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.core.native_output import silence_output
from regard.core.processes import end_with_parent
from regard.models.tasks.greedy_decoding import limits_of_texts
from regard.models.tasks.search_outputs import create_search
from regard.pipeline.deployment.export import check_text_to_text
from regard.serving.contract import SavedModelError
from regard.serving.server.jax_servable import INFO, WEIGHTS, program_file


def convert(version: Path, folder: Path, lengths: Sequence[int]) -> None:
    """Write the programs, weights and tokenizers of a version, for ``JaxServable``.

    A program takes the weights, the ids of one source ``[1, length + 1]`` with EOS and padding, and
    the ``limits`` and perhaps ``minimums`` ``[1]`` of ``Search.__call__``. It returns the ids of
    the best output, its length with EOS, and its log-probability.

    Args:
        version: the folder of a SavedModel of a text-to-text task.
        folder: an empty folder.
        lengths: numbers of source tokens, EOS not included, ascending. Those above the limit of the
            model become that limit.

    Raises:
        UserError: the task or the search is not supported, or the model cannot be built again.
    """
    check_text_to_text(version)
    trained = RebuiltModel(version, f"Version {version.name}")
    settings: Any = trained.config.search
    if settings.type == "sampling":
        message = "The random numbers of JAX differ from those of TensorFlow."
        raise UserError(message, f"{version}: search.type", "Serve the model with TensorFlow.")
    model, search = trained.model, create_search(settings).best()
    limits = limits_of_texts(settings.max_length_factor, settings.max_length_offset)
    values = [np.asarray(variable) for variable in model.variables]
    number = jax.ShapeDtypeStruct((1,), np.int32)
    constraints = {"limits": number}
    if settings.min_length_factor:
        constraints["minimums"] = number
    lengths = sorted({min(length, settings.max_source_length) for length in lengths})
    for length in lengths:
        source = jax.ShapeDtypeStruct((1, length + 1), np.int32)
        longest = limits.longest(source.shape)

        def compute(values: Any, source: Any, constraints: Any, longest: int = longest) -> Any:
            with keras.StatelessScope(list(zip(model.variables, values, strict=True))):
                best = model.search(source, search, longest=longest, **constraints)
            return best.ids[0, 0], best.lengths[0, 0], best.log_probabilities[0, 0]

        program = export.export(jax.jit(compute), platforms=["cpu"])(values, source, constraints)
        (folder / program_file(length)).write_bytes(program.serialize())
    np.savez(folder / WEIGHTS, *values)
    for side, serialized in trained.serialized.items():
        (folder / f"{side}.model").write_bytes(serialized)
    info = {"lengths": lengths, "copies": model.decoder.copies}
    write_json(folder / INFO, {**info, "search": settings.model_dump(mode="json")})


def main(arguments: Sequence[str]) -> int:
    """Convert a version, print the error of a model that cannot be converted, return the status."""
    version, folder, *lengths = arguments
    try:
        with silence_output():
            convert(Path(version), Path(folder), [int(length) for length in lengths])
    except UserError as error:
        # Without the place, which begins with the folder: a client can read the message.
        print(error.message, error.remedy or "")
        return 2
    except SavedModelError as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(sys.argv[1:]))
