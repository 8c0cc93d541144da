"""Vaswani et al. 2017, "Attention Is All You Need": captions of photographs, English to German.
Needs `pip install sentencepiece sacrebleu`, and Multi30k as $REGARD_DATA/multi30k/train.en.gz etc.

Result: 25.8 BLEU (test_2016_flickr) after 1,000 steps, which took 3 min 52 s with JAX on two
idle cores.
"""

import argparse
import gzip
import io
import os

import keras
import numpy as np
import sacrebleu
import sentencepiece
from keras import layers, ops
from keras.initializers import RandomNormal

from regard.models.attention import MultiHeadAttention
from regard.models.layers.positions import SinusoidalPositions

PAD, BEGIN, END, VOCABULARY, LONGEST, WIDTH, HEADS, LAYERS = 0, 1, 2, 3000, 40, 128, 4, 2
IDS = {"pad_id": PAD, "bos_id": BEGIN, "eos_id": END, "unk_id": 3, "vocab_size": VOCABULARY}


def read(name):
    with gzip.open(f"{os.environ['REGARD_DATA']}/multi30k/{name}.gz") as file:
        return file.read().decode().rstrip("\n").split("\n")


def pad(rows):
    length = 20 if max(map(len, rows)) <= 20 else LONGEST  # two lengths: few shapes to compile
    return keras.utils.pad_sequences(rows, length, padding="post", truncating="post")


def batches(rng, pairs):
    while True:
        start = rng.integers(len(pairs) - 64)  # neighbours have similar lengths
        sources, targets = zip(*pairs[start : start + 64], strict=True)
        source, target = np.split(pad([*sources, *targets]), 2)
        yield {"source": source, "target": target}, {"logits": target}


class Transformer(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = layers.Embedding(VOCABULARY, WIDTH, RandomNormal(0, 0.1))
        self.attention = [MultiHeadAttention(HEADS, WIDTH) for _ in range(3 * LAYERS)]
        self.hidden = [layers.Dense(2 * WIDTH, "relu") for _ in range(2 * LAYERS)]
        self.project = [layers.Dense(WIDTH) for _ in range(2 * LAYERS)]
        self.norms = [layers.LayerNormalization() for _ in range(5 * LAYERS)]
        self.positions, self.dropout = SinusoidalPositions(), layers.Dropout(0.1)

    def call(self, inputs):
        def add(x, sublayer):  # LayerNorm(x + Sublayer(x)) (§3.1)
            return next(norms)(x + self.dropout(sublayer))

        mask, norms = ops.not_equal(inputs["source"], PAD), iter(self.norms)
        # The previous tokens; embeddings times √d (§3.4), plus sines and cosines (§3.5)
        previous = ops.pad(inputs["target"][:, :-1], [[0, 0], [1, 0]], constant_values=BEGIN)
        z, x = (self.embedding(tokens) * WIDTH**0.5 for tokens in (inputs["source"], previous))
        z, x = self.dropout(self.positions(z)), self.dropout(self.positions(x))
        for i in range(LAYERS):
            # Each head is softmax(Q Kᵀ / √d_k) V (§3.2.1), and heads are concatenated (§3.2.2).
            z = add(z, self.attention[i](z, mask=mask, return_weights=False))
            # FFN(z) = max(0, z W_1 + b_1) W_2 + b_2 (§3.3)
            z = add(z, self.project[i](self.hidden[i](z)))
        for i in range(LAYERS):
            # Position t attends to positions up to t, so all steps are computed at once.
            x = add(x, self.attention[LAYERS + i](x, causal=True, return_weights=False))
            context, alignment = self.attention[2 * LAYERS + i](x, z, mask=mask)
            x = add(x, context)
            x = add(x, self.project[LAYERS + i](self.hidden[LAYERS + i](x)))
        # The embeddings are also the weights of the output (§3.4).
        return {"logits": ops.inner(x, self.embedding.embeddings), "alignment": alignment}


def draw(source, output, alignment):
    from matplotlib.figure import Figure  # To draw: pip install matplotlib

    axis = Figure(figsize=(6, 5), layout="constrained").subplots()
    axis.imshow(alignment[: len(output), : len(source)], cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source, rotation=90)
    axis.set_yticks(range(len(output)), output)
    axis.figure.savefig("transformer_multi30k.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="training steps, at least 10")
    steps, buffer = parser.parse_args().steps, io.BytesIO()
    texts, learn = (read("train.en"), read("train.de")), sentencepiece.SentencePieceTrainer.train
    learn(sentence_iterator=iter(texts[0] + texts[1]), model_writer=buffer, minloglevel=2, **IDS)
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=buffer.getvalue(), add_eos=True)
    pairs = sorted(zip(*map(tokenizer.encode, texts), strict=True), key=lambda p: len(p[0] + p[1]))
    keras.utils.set_random_seed(1)
    model = Transformer()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=PAD)
    rate = keras.optimizers.schedules.CosineDecay(0.0, steps, 0.0, "rate", 0.003, steps // 10)
    model.compile(keras.optimizers.Adam(rate, beta_2=0.98), loss={"logits": loss})
    data = batches(np.random.default_rng(1), pairs)
    model.fit(data, steps_per_epoch=steps // 10, epochs=10, shuffle=False, verbose=2)
    english, german, outputs = read("test_2016_flickr.en"), read("test_2016_flickr.de"), []
    for start in range(0, len(english), 100):
        source = pad(tokenizer.encode(english[start : start + 100]))
        target = np.full((len(source), LONGEST), PAD)
        for t in range(LONGEST):  # greedy decoding
            inputs = {"source": source, "target": target[:, : 20 if t < 20 else LONGEST]}
            result = model.predict_on_batch(inputs)
            best = np.argmax(result["logits"][:, t], axis=-1)
            target[:, t] = np.where(np.any(target == END, axis=1), PAD, best)
        outputs += tokenizer.decode(target.tolist())
    print(sacrebleu.corpus_bleu(outputs, [german]), *english[-3:], *outputs[-3:], sep="\n")
    texts = [tokenizer.id_to_piece(ids[ids != PAD].tolist()) for ids in (source[-1], target[-1])]
    draw(*texts, result["alignment"][-1])


if __name__ == "__main__":
    main()
