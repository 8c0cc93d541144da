"""MarianMT, M2M100, NLLB and the beam search of Transformers in NumPy and float64.

Independent of Transformers and of Regard's models: the formulas that both have to compute.
"""

import gzip
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.components.importing.weight_files import find_weights, open_weights

MODELS = Path(__file__).parent / "huggingface"
NAMES = sorted(folder.name for folder in MODELS.iterdir())
_erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
}


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_expected(name):
    """Return the arrays and the outputs that Transformers computed (`huggingface_models`)."""
    with np.load(MODELS / name / "expected.npz") as arrays:
        return dict(arrays), json.loads(
            gzip.decompress((MODELS / name / "expected.json.gz").read_bytes())
        )


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


class Model:
    """One model of the fixtures.

    Args:
        name: its folder.
    """

    def __init__(self, name):
        folder = MODELS / name
        self.config = read_json(folder / "config.json")
        self.generation = read_json(folder / "generation_config.json")
        with open_weights(find_weights(folder)) as tensors:
            self.weights = {key: tensors[key].astype(float) for key in tensors}
        self.is_marian = self.config["model_type"] == "marian"
        self.embedding = {
            side: self._matrix(f"model.{side}.embed_tokens.weight")
            for side in ("encoder", "decoder")
        }
        self.output = self.weights.get("lm_head.weight", self.embedding["decoder"])
        self.bias = self.weights.get("final_logits_bias", 0.0)

    def _matrix(self, name):
        return self.weights[name] if name in self.weights else self.weights["model.shared.weight"]

    def _linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def positions(self, ids):
        """Position encodings [batch, length, depth]; sines in the first half, then cosines."""
        depth = self.config["d_model"]
        half = np.arange(depth // 2)
        if self.is_marian:
            place = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
            angles = place[..., None] / 10000 ** (2 * half / depth)
            return np.concatenate([np.sin(angles), np.cos(angles)], -1)
        pad = self.config["pad_token_id"]
        place = pad + np.cumsum(ids != pad, 1) * (ids != pad)
        angles = place[..., None] * np.exp(-half * math.log(10000) / (depth // 2 - 1))
        return np.concatenate([np.sin(angles), np.cos(angles)], -1) * (place != pad)[..., None]

    def _embed(self, ids, side):
        scale = math.sqrt(self.config["d_model"]) if self.config["scale_embedding"] else 1
        return self.embedding[side][ids] * scale + self.positions(ids)

    def _attend(self, x, memory, name, heads, mask):
        def split(y):
            return y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)

        query, key, value = (
            split(self._linear(source, f"{name}.{part}_proj"))
            for part, source in (("q", x), ("k", memory), ("v", memory))
        )
        scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])
        weights = np.exp(log_softmax(np.where(mask, scores, -np.inf)))
        joined = (weights @ value).swapaxes(1, 2).reshape(x.shape)
        return self._linear(joined, f"{name}.out_proj")

    def _sublayer(self, x, name, function):
        """Post-normalization of Marian, pre-normalization of M2M100."""
        if self.is_marian:
            return self._norm(x + function(x), name)
        return x + function(self._norm(x, name))

    def _run(self, x, side, mask, memory=None, memory_mask=None):
        for index in range(self.config[f"{side}_layers"]):
            x = self._layer(x, f"model.{side}.layers.{index}", side, mask, memory, memory_mask)
        return x if self.is_marian else self._norm(x, f"model.{side}.layer_norm")

    def _layer(self, x, layer, side, mask, memory, memory_mask):
        activation = ACTIVATIONS[self.config["activation_function"]]
        heads = self.config[f"{side}_attention_heads"]
        x = self._sublayer(
            x,
            f"{layer}.self_attn_layer_norm",
            lambda y: self._attend(y, y, f"{layer}.self_attn", heads, mask),
        )
        if memory is not None:
            x = self._sublayer(
                x,
                f"{layer}.encoder_attn_layer_norm",
                lambda y: self._attend(y, memory, f"{layer}.encoder_attn", heads, memory_mask),
            )
        return self._sublayer(
            x,
            f"{layer}.final_layer_norm",
            lambda y: self._linear(activation(self._linear(y, f"{layer}.fc1")), f"{layer}.fc2"),
        )

    def encode(self, ids, mask):
        """Hidden states [batch, source, depth] of ids and mask [batch, source]."""
        return self._run(self._embed(ids, "encoder"), "encoder", mask[:, None, None, :] > 0)

    def logits(self, ids, memory, memory_mask):
        """Logits [batch, target, vocabulary] of decoder inputs [batch, target]."""
        causal = np.tril(np.ones((ids.shape[1],) * 2, bool))[None, None]
        mask = memory_mask[:, None, None, :] > 0
        x = self._run(self._embed(ids, "decoder"), "decoder", causal, memory, mask)
        return x @ self.output.T + self.bias


@dataclass
class Search:
    """The search for one sentence.

    Attributes:
        running: prefixes and the sums of their log-probabilities, best first.
        finished: outputs and their scores, best first.
        has_ended: whether no prefix is continued.
    """

    running: list
    finished: list
    has_ended: bool = False


def generate(model, ids, mask, beams, forced_first=None):
    """Return outputs and scores of `generate`, for sentences as a padded batch.

    Args:
        model: the model.
        ids: [batch, source].
        mask: [batch, source], 1 for tokens.
        beams: number of beams; 1 is the greedy search, with the sum of log-probabilities.
        forced_first: the first token of each sentence, or None.
    """
    settings = model.generation
    longest = settings["max_length"]
    memory = model.encode(ids, mask)
    start = settings["decoder_start_token_id"]
    searches = [Search([(0.0, (start,))], []) for _ in ids]
    for length in range(1, longest):
        rows = [
            (row, total, prefix)
            for row, search in enumerate(searches)
            if not search.has_ended
            for total, prefix in search.running
        ]
        if not rows:
            break
        owners = [row for row, _, _ in rows]
        prefixes = np.array([prefix for _, _, prefix in rows])
        last = model.logits(prefixes, memory[owners], mask[owners])[:, -1]
        log_probs = log_softmax(last)
        candidates = [[] for _ in searches]
        for (row, total, prefix), steps in zip(rows, log_probs, strict=True):
            first = forced_first[row] if forced_first is not None and length == 1 else None
            steps = _process(settings, steps, length, first, renormalize=beams > 1)
            best = np.argsort(-steps, kind="stable")[: 2 * beams]
            candidates[row] += [
                (total + steps[i], (*prefix, int(i))) for i in best if steps[i] > -np.inf
            ]
        for row in set(owners):
            _advance(searches[row], candidates[row], settings, beams, length)
    return [search.finished[0] for search in searches]


def _process(settings, log_probs, length, first, renormalize):
    """Change the log-probabilities of a step as the settings demand."""
    log_probs = log_probs.copy()
    for (token,) in settings.get("bad_words_ids", ()):
        log_probs[token] = -np.inf
    required = first
    if length == settings["max_length"] - 1:
        required = settings.get("forced_eos_token_id", required)
    if required is not None:
        log_probs[:] = -np.inf
        log_probs[required] = 0
    # The scores of the fixtures for the greedy search are those of the model.
    if settings.get("renormalize_logits") and renormalize:
        log_probs = log_softmax(log_probs)
    return log_probs


def _advance(search, candidates, settings, beams, length):
    """Sort the candidates of a step into finished outputs and prefixes, and decide whether to end.

    Args:
        search: changed in place.
        candidates: sums of log-probabilities and token ids, with the start token.
        settings: of generation_config.json.
        beams: number of beams.
        length: number of tokens that a candidate has generated.
    """
    end, penalty = settings["eos_token_id"], settings["length_penalty"] if beams > 1 else 0.0
    early = settings["early_stopping"] if beams > 1 else True
    candidates = sorted(candidates, key=lambda item: -item[0])[: 2 * beams]
    at_limit = length == settings["max_length"] - 1
    # Only the best `beams` candidates can finish; the others replace those that do.
    for total, ids in candidates[:beams]:
        if ids[-1] == end or at_limit:
            search.finished.append((total / length**penalty, ids))
    search.finished = sorted(search.finished, key=lambda item: -item[0])[:beams]
    search.running = [item for item in candidates if item[1][-1] != end][:beams]
    if len(search.finished) == beams and search.running:
        best_length = settings["max_length"] - 1 if early == "never" and penalty > 0 else length
        attainable = search.running[0][0] / best_length**penalty
        search.has_ended = early is True or attainable <= search.finished[-1][0]
    search.has_ended |= not search.running
