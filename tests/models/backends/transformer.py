"""Transformers with each kind of positions, norm and activation, unrolled and step by step."""

import numpy as np

from regard.models.decoders import TransformerDecoder
from regard.models.encoders import TransformerEncoder
from tests.models.test_backends import compiled

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TOKENS = np.array([[2, 4, 5, 0], [2, 7, 6, 5]], "int32")
SIZE = {"embedding": 8, "layers": 1, "heads": 2, "feed_forward": 6}
KINDS = [
    ({"norm": "pre", "positions": "sinusoidal", "activation": "relu"}, None),
    (
        {"norm": "post", "norm_epsilon": 0.1, "positions": "learned", "activation": "gelu"},
        {"score": "general"},
    ),
    ({"norm": "pre", "positions": "rotary", "activation": "swiglu"}, {"alignment": "local_m"}),
    ({"positions": "relative", "max_distance": 1}, None),
    ({"positions": "alibi", "position_merge": "concat"}, None),
]


def outputs():
    for kind, cross in KINDS:
        encoder = TransformerEncoder(9, **SIZE, **kind)
        decoder = TransformerDecoder(8, encoder.depth, attention=cross, tied=True, **SIZE, **kind)
        random = np.random.default_rng(0)
        for part in (encoder, decoder):
            part.build()
            part.set_weights([random.normal(size=w.shape) * 0.3 for w in part.get_weights()])

        def answers(source, tokens, encoder=encoder, decoder=decoder):
            memory = encoder(source)
            result = [memory["values"], *decoder.unroll(tokens, memory)]
            state = decoder.start(memory, max_length=4)
            for t in range(2):
                logits, state, alignment = decoder.step(tokens[:, t], state)
                result += [logits, alignment]
            return result

        yield from compiled(answers)(SOURCE, TOKENS)
