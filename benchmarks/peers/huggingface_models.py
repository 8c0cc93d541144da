"""Write small random models as Hugging Face saves MarianMT, M2M100 and NLLB, with their outputs.

    python -m benchmarks.peers.install --huggingface        # Transformers and PyTorch, once
    benchmarks/peers/.venv-huggingface/bin/python -m benchmarks.peers.huggingface_models
    benchmarks/peers/.venv-huggingface/bin/python -m benchmarks.peers.huggingface_models \\
        --size opus FOLDER

The first form writes the fixtures of `regard import`, tests/components/importing/huggingface/, in
two minutes. Each model is one folder, as ``save_pretrained`` of the model, its generation settings
and its tokenizer writes it: random weights, 40 to 200 tokens, a width of 8 to 16. What a folder
covers is in `huggingface_configurations`. Two more files hold what Hugging Face computes with it in
float32:

- ``expected.npz``: for 8 sentences ``input_ids`` and ``attention_mask`` [8, source], ``encoder``
  [8, source, depth], the last hidden state, ``decoder_input_ids`` [8, target], and ``logits``
  [8, target, vocabulary] under teacher forcing.
- ``expected.json.gz``: ``tokenization``, the ids and tokens of unusual texts; ``sentences``, 200
  texts with their ids, and if the model has several languages with these and the id of the first
  token of outputs; ``greedy`` and ``beam``, for each sentence the ids, the text and the score of
  ``generate`` with the settings of generation_config.json. ``greedy`` uses one beam instead. A
  score is the sum of log-probabilities of the generated tokens, with EOS and without the start
  token; forced tokens add 0. That of ``beam`` is divided by ``length ** length_penalty``, where
  the length counts these tokens.

A second call on the same machine writes the same bytes. The outputs are computed in float64, too,
and the script stops if they differ, so no output depends on rounding.

The second form writes one model with the sizes of OPUS-MT (75 million parameters) without outputs,
for measurements.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Otherwise the tokenizers of local folders are searched for in the hub, too.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers

from benchmarks.peers import huggingface_tokenizers
from benchmarks.peers.huggingface_configurations import (
    CONFIGURATIONS,
    OPUS,
    Configuration,
)
from benchmarks.peers.huggingface_text import EDGE_CASES

FIXTURES = Path(__file__).resolve().parents[2] / "tests/components/importing/huggingface"
SENTENCES, EXAMPLES, DECODER_LENGTH, BATCH = 200, 8, 5, 50


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FIXTURES)
    parser.add_argument("--only", nargs="*", default=list(CONFIGURATIONS), help="names of models")
    parser.add_argument("--size", choices=("tiny", "opus"), default="tiny")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
    if arguments.size == "opus":
        write_model(arguments.folder, OPUS)
        return
    for name in arguments.only:
        folder = arguments.folder / name
        write_model(folder, CONFIGURATIONS[name])
        summary = write_expected(folder, CONFIGURATIONS[name])
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{name}: {size:,} bytes, {summary}")


def write_model(folder: Path, configuration: Configuration) -> None:
    """Write the folder of a model and its tokenizer, as ``save_pretrained`` does.

    Args:
        folder: the folder, which is replaced.
        configuration: the model.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer = huggingface_tokenizers.write_tokenizer(folder, configuration)
    settings = {**tokenizer.model_settings, **configuration.model}
    if configuration.family == "marian":
        model_class, config_class = transformers.MarianMTModel, transformers.MarianConfig
    else:
        model_class = transformers.M2M100ForConditionalGeneration
        config_class = transformers.M2M100Config
    torch.manual_seed(0)
    model = model_class(config_class(**settings)).eval()
    randomize(model, configuration)
    model.generation_config = transformers.GenerationConfig(
        **{**tokenizer.generation_settings, **configuration.generation}
    )
    model = model.to(getattr(torch, configuration.dtype))
    model.save_pretrained(folder)
    if configuration.weights_file == "pytorch_model.bin":
        # As older versions of Transformers saved it: with the names that share a tensor. Without
        # rounded positions, which Transformers would use.
        (folder / "model.safetensors").unlink()
        state = model.state_dict()
        if configuration.dtype != "float32":
            state = {name: value for name, value in state.items() if "embed_positions" not in name}
        torch.save(state, folder / "pytorch_model.bin")


def randomize(model: transformers.PreTrainedModel, configuration: Configuration) -> None:
    """Replace the weights, so that attention, biases and normalizations have an effect."""
    generator = torch.Generator().manual_seed(configuration.seed)

    def normal(tensor: torch.Tensor, deviation: float, mean: float = 0.0) -> None:
        tensor.data.normal_(mean, deviation, generator=generator)

    for name, parameter in sorted(model.named_parameters()):
        if "embed_positions" in name:
            continue
        if "embed_tokens" in name or "shared" in name or "lm_head" in name:
            normal(parameter, configuration.embedding_deviation)
            parameter.data[model.config.eos_token_id] *= configuration.end_scale
            parameter.data[len(parameter) - configuration.unused_rows :] = 0
            if configuration.zero_padding:
                parameter.data[model.config.pad_token_id] = 0
        elif "norm.weight" in name:
            normal(parameter, 0.2, mean=1.0)
        elif name.endswith("bias"):
            normal(parameter, 0.2)
        elif "encoder_attn" in name:
            normal(parameter, 3.0 / parameter.shape[1] ** 0.5)
        else:
            normal(parameter, 1.0 / parameter.shape[1] ** 0.5)
    bias = getattr(model, "final_logits_bias", None)
    if bias is not None:
        normal(bias, 0.5)
        bias.data[0, model.config.eos_token_id] = configuration.end_bias
        if configuration.zero_padding:
            bias.data[0, model.config.pad_token_id] = 0


@dataclass
class Outputs:
    """What ``generate`` returns for sentences."""

    ids: list[list[int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def as_json(self) -> list[dict[str, Any]]:
        """Return one object a sentence."""
        return [
            {"ids": ids, "text": text, "score": float(f"{score:.7g}")}
            for ids, text, score in zip(self.ids, self.texts, self.scores, strict=True)
        ]


def write_expected(folder: Path, configuration: Configuration) -> str:
    """Write what Hugging Face computes with the model of a folder, and return a summary."""
    model_class = transformers.AutoModelForSeq2SeqLM
    model = model_class.from_pretrained(folder, dtype=torch.float32).eval()
    exact = model_class.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    sentences = huggingface_tokenizers.test_sentences(configuration, SENTENCES)
    outputs = {}
    for name, beams in (("greedy", 1), ("beam", None)):
        outputs[name] = generate(model, tokenizer, sentences, beams)
        other = generate(exact, tokenizer, sentences, beams)
        if outputs[name].ids != other.ids:
            pairs = zip(outputs[name].ids, other.ids, strict=True)
            unequal = sum(first != second for first, second in pairs)
            raise SystemExit(f"{folder.name}: {unequal} outputs depend on rounding")
    value = {
        "tokenization": list(tokenize_edge_cases(tokenizer)),
        "sentences": [describe_sentence(tokenizer, sentence) for sentence in sentences],
        **{name: output.as_json() for name, output in outputs.items()},
    }
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (folder / "expected.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    np.savez_compressed(folder / "expected.npz", **hidden_states(model, tokenizer, sentences))
    lengths = [len(ids) for ids in outputs["beam"].ids]
    different = len({tuple(ids) for ids in outputs["beam"].ids})
    equal = sum(a == b for a, b in zip(outputs["greedy"].ids, outputs["beam"].ids, strict=True))
    return (
        f"{different} different outputs, {min(lengths)} to {max(lengths)} tokens, mean "
        f"{np.mean(lengths):.1f}; {equal} equal greedy and beam"
    )


def hidden_states(
    model: transformers.PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    sentences: Sequence[dict[str, str]],
) -> dict[str, np.ndarray]:
    """Return the arrays of ``expected.npz``."""
    examples = sentences[:EXAMPLES]
    if "source_language" in examples[0]:
        # A padded batch of several languages: each sentence is tokenized in its own.
        rows = [_encode(tokenizer, [sentence]).input_ids[0].tolist() for sentence in examples]
        inputs = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
    else:
        inputs = _encode(tokenizer, examples)
    config = model.config
    generator = torch.Generator().manual_seed(1)
    size = config.vocab_size
    if config.model_type == "marian" and not config.share_encoder_decoder_embeddings:
        size = config.decoder_vocab_size
    tokens = torch.randint(4, size, (EXAMPLES, DECODER_LENGTH), generator=generator)
    tokens[tokens == config.pad_token_id] = 4
    tokens[:, 0] = config.decoder_start_token_id
    with torch.no_grad():
        outputs = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            decoder_input_ids=tokens,
        )
    return {
        "input_ids": inputs["input_ids"].numpy().astype(np.int32),
        "attention_mask": inputs["attention_mask"].numpy().astype(np.int32),
        "encoder": outputs.encoder_last_hidden_state.numpy(),
        "decoder_input_ids": tokens.numpy().astype(np.int32),
        "logits": outputs.logits.numpy(),
    }


def generate(
    model: transformers.PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    sentences: Sequence[dict[str, str]],
    beams: int | None,
) -> Outputs:
    """Translate sentences in batches of one pair of languages."""
    outputs = Outputs([[]] * len(sentences), [""] * len(sentences), [0.0] * len(sentences))
    for indices in _batches(sentences):
        batch = [sentences[index] for index in indices]
        options: dict[str, Any] = {} if beams is None else {"num_beams": beams}
        if "target_language" in batch[0]:
            options["forced_bos_token_id"] = _language_id(tokenizer, batch[0]["target_language"])
        with torch.no_grad():
            result = model.generate(
                **_encode(tokenizer, batch),
                **options,
                do_sample=False,
                return_dict_in_generate=True,
                output_scores=True,
                output_logits=True,
            )
        texts = tokenizer.batch_decode(result.sequences, skip_special_tokens=True)
        ids = [_without_padding(row, model.config) for row in result.sequences.tolist()]
        if beams == 1:
            scores = _greedy_scores(result, ids)
        else:
            scores = result.sequences_scores.tolist()
        for position, index in enumerate(indices):
            outputs.ids[index] = ids[position]
            outputs.texts[index] = texts[position]
            outputs.scores[index] = scores[position]
    return outputs


def tokenize_edge_cases(
    tokenizer: transformers.PreTrainedTokenizerBase,
) -> Iterator[dict[str, Any]]:
    """Yield the ids and tokens of unusual texts as sources."""
    for text in EDGE_CASES:
        ids = tokenizer(text).input_ids
        yield {"text": text, "ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)}


def describe_sentence(
    tokenizer: transformers.PreTrainedTokenizerBase, sentence: dict[str, str]
) -> dict[str, Any]:
    """Add the input ids, and the first token of outputs in the target language."""
    value: dict[str, Any] = {
        **sentence,
        "ids": _encode(tokenizer, [sentence]).input_ids[0].tolist(),
    }
    if "target_language" in sentence:
        language = sentence["target_language"]
        value["forced_bos_token_id"] = _language_id(tokenizer, language)
    return value


def _language_id(tokenizer: transformers.PreTrainedTokenizerBase, language: str) -> int:
    token = huggingface_tokenizers.language_token(tokenizer, language)
    return int(tokenizer.convert_tokens_to_ids(token))


def _greedy_scores(result: Any, ids: Sequence[Sequence[int]]) -> list[float]:
    """The sum of log-probabilities of the tokens; as in a beam search, forced tokens add 0."""
    scores = []
    for row, tokens in enumerate(ids):
        total = 0.0
        for step, token in enumerate(tokens[1:]):
            is_forced = int(torch.isfinite(result.scores[step][row]).sum()) == 1
            if not is_forced:
                total += float(torch.log_softmax(result.logits[step][row].float(), -1)[token])
        scores.append(total)
    return scores


def _without_padding(ids: list[int], config: Any) -> list[int]:
    """Remove the padding after EOS; the first token may be the padding token, too."""
    end = next((i for i, token in enumerate(ids) if i and token == config.eos_token_id), None)
    return ids if end is None else ids[: end + 1]


def _batches(sentences: Sequence[dict[str, str]]) -> Iterable[list[int]]:
    groups: dict[tuple[str | None, str | None], list[int]] = {}
    for index, sentence in enumerate(sentences):
        pair = (sentence.get("source_language"), sentence.get("target_language"))
        groups.setdefault(pair, []).append(index)
    for indices in groups.values():
        for start in range(0, len(indices), BATCH):
            yield indices[start : start + BATCH]


def _encode(
    tokenizer: transformers.PreTrainedTokenizerBase, batch: Sequence[dict[str, str]]
) -> transformers.BatchEncoding:
    if "source_language" in batch[0]:
        tokenizer.src_lang = batch[0]["source_language"]
    texts = [sentence["source"] for sentence in batch]
    return tokenizer(texts, return_tensors="pt", padding=True)


if __name__ == "__main__":
    main()
