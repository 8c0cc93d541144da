"""The settings of a minimal Transformer like that of the benchmarks."""

MODEL = {
    "embedding": 4,
    "dropout": 0.0,
    "tie_embeddings": "all",
    "pretrained": None,
    "encoder": {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 8},
    "decoder": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8},
    "attention": {"score": "scaled_dot", "alignment": "soft"},
}
TRAINING = {
    "batch_tokens": 160,
    "max_length": 14,
    "learning_rate": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-9,
    "weight_decay": 0.0,
    "schedule": {"type": "inverse_sqrt", "warmup_steps": 4},
    "label_smoothing": 0.1,
    "clip_norm": 1.0,
    "gradient_accumulation_steps": 1,
    "max_steps": None,
    "precision": "float32",
    "jit_compile": False,
    "reinforce": {},
    "penalties": {},
    "seed": 5,
    "deterministic": False,
}
