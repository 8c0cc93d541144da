"""Networks and searches that cannot work are refused when the file is read."""

from pathlib import Path

import pytest

from regard.pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

# What follows these begins in line 4.
CASES = {
    "model:\n  attention: {score: dot}": [
        "5: model.attention.score: dot needs equal widths of decoder and encoder, but the"
    ],
    "tokenizer: {vocab_size: 50}\nsearch: {beam_size: 51}": [
        "5: search.beam_size: 51 is more than the 50 tokens of tokenizer.vocab_size"
    ],
    "search: {max_length_factor: 0, max_length_offset: 0}": [
        "4: search.max_length_offset: with max_length_factor: 0 every hypothesis"
    ],
    "model:\n  decoder: {type: bahdanau, units: 100}\n  attention: {score: cosine}": [
        "6: model.attention.score: cosine needs equal widths of decoder and encoder, but the"
    ],
    "model:\n  embedding: 128\n  encoder: {type: transformer}\n  attention: {score: dot}": [
        "7: model.attention.score: dot needs equal widths of decoder and encoder, but the"
    ],
    "model:\n  decoder: {units: 512}\n  attention: {score: dot, values: split}": [
        "6: model.attention.score: dot needs equal widths of decoder and encoder, but the decoder "
        "has 512 units and the keys of the encoder 256; set model.decoder.units: 256"
    ],
    "model:\n  encoder: {units: 1, bidirectional: false}\n  attention: {values: split}": [
        "6: model.attention.values: split needs an encoder with a width of at least 2, not 1"
    ],
    "model:\n  attention: {values: apart}": [
        "5: model.attention.values: 'apart' is not a choice. Choices: shared, split"
    ],
    "model:\n  attention: {alignment: {type: thresholded, threshold: 1}}": [
        "5: model.attention.alignment.threshold: must be less than 1; 1 was given"
    ],
    "model:\n  attention: {score: {type: additive, layers: 9}}": [
        "5: model.attention.score.layers: must be less than or equal to 8; 9 was given"
    ],
    "model:\n  attention: {score: {type: low_rank, rank: 0}}": [
        "5: model.attention.score.rank: must be greater than or equal to 1; 0 was given"
    ],
    "model:\n  attention: {alignment: {type: hard, inference: best}}": [
        "5: model.attention.alignment.inference: 'best' is not a choice. Choices: argmax, sample"
    ],
    "model:\n  encoder: {type: transformer, norm_epsilon: 0}": [
        "5: model.encoder.norm_epsilon: must be greater than or equal to 0.000000000001; 0 was"
    ],
    "model:\n  decoder: {type: transformer, norm_epsilon: 0.2}": [
        "5: model.decoder.norm_epsilon: must be less than or equal to 0.1; 0.2 was given"
    ],
    "model:\n  encoder: [{type: embedding}, {type: transformer, read_end: false}]": [
        "5: model.encoder.1.read_end: only the first encoder of a list reads tokens; set it there"
    ],
    "model:\n  attention: {score: genral}": [
        "5: model.attention.score.type: 'genral' is not a choice. Did you mean general? Choices:"
    ],
    "model:\n  attention: {alignment: {type: locl_p}}": [
        "5: model.attention.alignment.type: 'locl_p' is not a choice. Did you mean local_p?"
    ],
    "model:\n  attention: {alignment: {type: local_m, window: 0}}": [
        "5: model.attention.alignment.window: must be greater than or equal to 1; 0 was given"
    ],
    "model:\n  embedding: 128\n  encoder: {type: transformer, heads: 6}": [
        "6: model.encoder.heads: 6 heads do not divide model.embedding: 128; use 2, 4, 8,"
    ],
    "model:\n  embedding: 6\n  encoder: {type: transformer, heads: 2, positions: rotary}": [
        "6: model.encoder.positions: rotary needs an even width per head, but it is 3"
    ],
    "model:\n  encoder: [{units: 20}, {type: transformer, heads: 3}]": [
        "5: model.encoder.1.heads: 3 heads do not divide the width of the outputs of "
        "model.encoder.0: 40; use"
    ],
    "model:\n  encoder: [{type: convolutional, kernel_size: 0}, {type: recurent}, {unit: 3}]": [
        "5: model.encoder.0.kernel_size: must be greater than or equal to 1; 0 was given",
        "5: model.encoder.1.type: 'recurent' is not a choice. Did you mean recurrent?",
        "5: model.encoder.2.unit: unknown key. Did you mean units?",
    ],
    "model:\n  encoder: []": ["5: model.encoder: the list is empty; give at least one encoder"],
    "model:\n  encoder: {type: embedding, positions: learned, max_positions: 9}": [
        "5: model.encoder.max_positions: 9 is less than the 257 that"
    ],
    "model:\n  encoder: {type: transformer, positions: alibi, position_merge: concat}": [
        "5: model.encoder.position_merge: alibi positions are no vectors; use add, or positions:"
    ],
    "model:\n  attention: null\n  encoder: [{units: 20}, {type: convolutional}]": [
        "5: model.attention: null needs the final states of the last encoder; put the recurrent"
    ],
    "model:\n  attention: {heads: 3}": [
        "5: model.attention.heads: 3 heads do not divide the width of the encoder: 512; use"
    ],
    "model:\n  attention: {heads: 4, alignment: hard}": [
        "5: model.attention.heads: reinforce needs one choice per step, not 4; use heads: 1, or"
    ],
    "model:\n  decoder: {type: transformer}\n  attention: {heads: 4}": [
        "6: model.attention.heads: is of recurrent decoders; use model.decoder.heads, and 1 here"
    ],
    "training: {jit_compile: true}\nmodel:\n  encoder: [{type: convolutional}, {units: 9}]\n"
    "  decoder: {type: transformer}": [
        "4: training.jit_compile: XLA cannot compile recurrent layers (model.encoder.1.type: recur"
    ],
    "model:\n  encoder: {type: transformer, positions: learned, max_positions: 200}": [
        "5: model.encoder.max_positions: 200 is less than the 257 that training.max_length and "
        "search.max_source_length allow; use at least 257"
    ],
    "model:\n  decoder: {type: transformer, positions: learned, max_positions: 512}": [
        "5: model.decoder.max_positions: 512 is less than the 523 that training.max_length"
    ],
    "model:\n  attention: {score: {type: location, max_source: 100}}": [
        "5: model.attention.score: max_source: 100 is less than the 257 that"
    ],
    "model:\n  decoder: {type: transformer}\n"
    "  attention: {score: {type: additive, coverage: true}}": [
        "6: model.attention.score.coverage: needs a recurrent decoder that attends to its source"
    ],
    "model:\n  decoder: {input_feeding: false}\n"
    "  attention: {score: {type: concat, coverage: true}}": [
        "6: model.attention.score.coverage: needs the attention of the previous step; set model"
    ],
    "model:\n  attention: {score: {type: general, coverage: true}}": [
        "5: model.attention.score.coverage: "
    ],
    "model:\n  decoder: {type: transformer}\n  attention: {alignment: local_p}": [
        "6: model.attention.alignment: local_p predicts positions from a recurrent state, wh"
    ],
    "model:\n  decoder: {type: transformer}\n  attention: {alignment: hard}": [
        "6: model.attention.alignment: reinforce needs a recurrent decoder with one choice p"
    ],
    "model:\n  decoder: {type: transformer}\n  attention: null": [
        "6: model.attention: a transformer decoder needs attention; null is for recurrent de"
    ],
    "model:\n  decoder: {type: feed_forward}\n  attention: {score: dot, heads: 2}": [
        "6: model.attention.score: dot needs equal widths, but the query, model.decoder.context_si",
        "6: model.attention.heads: is of recurrent decoders; use 1",
    ],
    "model:\n  decoder: {type: feed_forward}\n"
    "  attention: {score: {type: concat, coverage: true}}": [
        "6: model.attention.score.coverage: needs a recurrent decoder that attends to its source"
    ],
    "model: {decoder: {type: feed_forward}, tie_embeddings: output}": [
        "4: model.tie_embeddings: the softmax of a feed_forward decoder also reads the source; use"
    ],
    "model: {decoder: {type: feed_forward, smoothing: -1}}": [
        "4: model.decoder.smoothing: must be greater than or equal to 0; -1 was given"
    ],
    "model: {tie_embeddings: all}": [
        "4: model.tie_embeddings: all needs one tokenizer for both sides"
    ],
    "model: {tie_embeddings: output, embedding: 100}": [
        "4: model.tie_embeddings: output needs equal widths of embeddings and decoder, no"
    ],
    "model: {pretrained: {}}": ["4: model.pretrained: has no file; give source, target or both"],
    "tokenizer: {shared: true}\nmodel: {tie_embeddings: all, pretrained: {source: a, target: b}}": [
        "5: model.pretrained.target: tie_embeddings: all has one matrix"
    ],
    "model: {attention: {score: {type: additive, coverage: true}, heads: 2}}": [
        "4: model.attention.score.coverage: needs one attention per step, not 2;"
    ],
    "search: {beam_size: 3, n_best: 4}": ["4: search.n_best: 4 is more than beam_size: 3"],
    "model: {attention: null}\nsearch: {coverage_penalty: 0.2}": [
        "5: search.coverage_penalty: the model has no attention; remove it"
    ],
    "search: {min_length_factor: 3}": [
        "4: search.min_length_factor: 3 is more than max_length_factor: 2"
    ],
    "search: {type: sampling, beam_size: 3}": [
        "4: search.beam_size: unknown key for this type; it goes with type: beam"
    ],
}


@pytest.mark.parametrize("text", CASES)
def test_impossible(text: str, tmp_path: Path) -> None:
    head = "name: x\ndata:\n  train: {source: a.en, target: a.de}\n"
    compare(problems_of(tmp_path, f"{head}{text}\n"), CASES[text])


@pytest.mark.parametrize(
    "text",
    [
        "model: {encoder: [{type: convolutional}, {cell: rnn}, {type: transformer}]}",
        "model: {attention: {score: dot, heads: 8}}",
        "model: {attention: {heads: 2, alignment: {type: hard, training: straight_through}}}",
        "model: {encoder: {type: transformer, positions: none}}",
        "model: {attention: {score: dot}, decoder: {units: 512}}",
        "model: {attention: {score: dot}, encoder: {bidirectional: false}}",
        "model: {attention: null}",
        "model: {attention: null, encoder: [{units: 8}, {type: embedding}], "
        "decoder: {type: feed_forward, pooling: max}}",
        "model: {attention: {alignment: local_p}, decoder: {type: feed_forward}}",
        "model: {attention: {alignment: hard}, decoder: {type: feed_forward}}",
        "model: {encoder: {type: transformer}, decoder: {type: bahdanau, cell: gru}}",
        "model: {decoder: {type: transformer}, attention: {score: dot, alignment: local_m}}",
        "model: {attention: {alignment: {type: hard, training: reinforce}}}",
        "model: {attention: {score: {type: low_rank, rank: 32}, values: split}}",
        "model: {attention: {score: {type: concat, layers: 2}, alignment: thresholded}}",
        "model: {attention: {alignment: {type: hard, inference: sample}}}",
        "model: {attention: {values: split}, decoder: {type: transformer}}",
        "model: {tie_embeddings: all}\ntokenizer: {shared: true}",
        "search: {type: greedy}",
        "search: {type: sampling, temperature: 0.7, top_p: 0.9}",
    ],
)
def test_possible(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"name: x\ndata:\n  train: {{source: a.en, target: a.de}}\n{text}\n")
    load(path)


@pytest.mark.parametrize(
    ("decoder", "score"),
    [
        ("luong", "general"),
        ("bahdanau", "additive"),
        ("transformer", "scaled_dot"),
        ("feed_forward", "general"),
    ],
)
@pytest.mark.parametrize("attention", ["", ", attention: {alignment: soft}"])
def test_each_decoder_has_its_papers_score(
    decoder: str, score: str, attention: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        f"name: x\ndata: {{train: a.tsv}}\nmodel: {{decoder: {{type: {decoder}}}{attention}}}\n"
    )
    config = load(path)
    assert config.model.attention is not None
    assert config.model.attention.score.type == score


def test_vectors_lie_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\ndata: {train: a.tsv}\nmodel: {pretrained: {source: v/glove.txt}}\n")
    pretrained = load(path).model.pretrained
    assert pretrained is not None
    assert pretrained.files() == {"source": str(tmp_path / "v" / "glove.txt")}


def test_learned_positions_of_similarity_models(tmp_path):
    """Their sentences have a maximum length without a search."""
    text = "name: x\ntask: similarity\ndata: {train: a.tsv}\n"
    text += (
        "model: {encoder: {type: transformer, positions: learned, max_positions: 128, heads: 4}}\n"
    )
    message = "128 is less than the 129 that training.max_length and model.max_length allow"
    compare(problems_of(tmp_path, text), f"4: model.encoder.max_positions: {message}")
