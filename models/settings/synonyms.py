"""Other names of keys and values; `regard.pipeline.config.other_toolkits` has keys of toolkits."""

_OTHER_NAMES = {
    "warmup_steps": "warmup",
    "max_epochs": "num_epochs",
    "clip_norm": "grad_clip",
    "schedule": "scheduler",
    "scheduled_sampling": "teacher_forcing_ratio",
    "units": "hidden_dim hidden_size num_units",
    "embedding": "d_model emb_dim",
    "feed_forward": "d_ff ffn_dim",
    "norm_epsilon": "layer_norm_eps layer_norm_epsilon norm_eps",
    "beam_size": "num_beams",
    "vocab_size": "vocab",
    "eval": "validation",
    "warm_start": "start_from fine_tune",
    "freeze": "frozen fixed",
    "lora": "adapters",
    "recurrent": "lstm gru rnn",
    "general": "luong multiplicative",
    "additive": "bahdanau mlp",
    "inverse_sqrt": "noam",
    "bpe": "wordpiece",
    "sampling": "nucleus",
    "bleu": "sacrebleu",
    "chrf": "meteor",
    "rouge_l": "rouge",
    "exact_match": "accuracy",
    "translation": "mt nmt seq2seq",
}
SYNONYMS: dict[str, str] = {}
for _name, _others in _OTHER_NAMES.items():
    SYNONYMS |= dict.fromkeys(_others.split(), _name)
