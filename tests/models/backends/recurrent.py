"""Recurrent encoders and decoders: unrolled in training, step by step."""

import numpy as np

from regard.models.decoders import BahdanauDecoder, LuongDecoder
from regard.models.encoders import RecurrentEncoder
from tests.models.test_backends import compiled

IDS = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TOKENS = np.array([[2, 5, 6], [2, 4, 3]], "int32")
GENERAL = {"score": "general"}
HARD = {"score": "general", "alignment": {"type": "hard", "training": "reinforce", "seed": 3}}
PAIRS = [
    ({"cell": "gru", "layers": 2, "residual": True}, LuongDecoder, {"cell": "gru", "layers": 2}),
    (
        {"bidirectional": False, "reverse": True},
        LuongDecoder,
        {"input_feeding": False, "attention": None, "residual": True, "embedding": 5},
    ),
    ({}, BahdanauDecoder, {"cell": "gru", "attention": HARD}),
    ({"bidirectional": False}, LuongDecoder, {"attention": HARD, "layers": 2}),
    ({"cell": "gru"}, BahdanauDecoder, {"readout": "tanh", "tied": True, "embedding": 5}),
]


def outputs():
    random = np.random.default_rng(0)
    for reading, path, writing in PAIRS:
        encoder = RecurrentEncoder(9, embedding=6, units=3, **reading)
        encoder.build()
        settings = {"embedding": 4, "units": 5, "attention": GENERAL, **writing}
        decoder = path(8, encoder.depth, encoder.final_depth, **settings)
        decoder.build()
        for part in (encoder, decoder):
            part.set_weights([random.normal(size=w.shape) for w in part.get_weights()])

        def answers(ids, tokens, encoder=encoder, decoder=decoder):
            memory = encoder(ids)
            unrolled = decoder.unroll_with_distribution(tokens, memory, training=True)
            state = decoder.start(memory)
            for t in range(2):
                logits, state, alignment = decoder.step(tokens[:, t], state)
            return [*unrolled, logits, alignment, *state["cells"][0]]

        yield from compiled(answers)(IDS, TOKENS)
