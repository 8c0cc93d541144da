"""A Transformer of the benchmarks' kind, as small as can be."""

MODEL = {
    "embedding": 4,
    "dropout": 0.0,
    "tie_embeddings": "all",
    "pretrained": None,
    "encoder": {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 8},
    "decoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
    "attention": {"score": "scaled_dot", "alignment": "soft"},
}
TRAINING = {"precision": "float32", "label_smoothing": 0.0, "reinforce": {}, "penalties": {}}
