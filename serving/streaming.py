"""Token streaming: how a model's two signatures for it work together.

``stream_start`` takes the input, and ``stream_step`` the state, which is an output of both. Each
step adds one token, until the output ``is_end`` is true; a blank input has ended before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

START, STEP = "stream_start", "stream_step"
TOKEN_OUTPUTS = ("text", "token", "log_probability")
Arrays = Mapping[str, np.ndarray]


def stream_tokens(
    run: Callable[[str, Arrays], Arrays],
    inputs: Arrays,
    state_names: Collection[str],
    output_names: Collection[str],
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the outputs for each token of one output, ``[1]``.

    The texts of all tokens together are the whole text.

    Args:
        run: runs a signature.
        inputs: the inputs of the model, ``[1]``.
        state_names: the inputs of ``stream_step``.
        output_names: the outputs of ``serving_default``, which are yielded with the last token.
    """
    values = dict(run(START, inputs))
    while not values["is_end"].item():
        values |= run(STEP, {name: values[name] for name in state_names})
        if not values["is_end"].item():
            yield {name: values[name] for name in TOKEN_OUTPUTS}
    yield {name: values[name] for name in (*TOKEN_OUTPUTS, *output_names)}
