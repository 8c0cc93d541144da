"""Compare the conversion of an imported M2M-100 or NLLB model with that of CTranslate2 itself.

    benchmarks/peers/.venv-huggingface/bin/ct2-transformers-converter --model FOLDER \\
        --output_dir THEIRS
    python -m benchmarks.peers.ctranslate2_converter FOLDER THEIRS

FOLDER is one of tests/components/importing/huggingface, with ``expected.json.gz``. Both conversions
translate its 200 sentences with greedy search and beam 4, and rate the outputs of Hugging Face.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import numpy as np

from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.serving.export.ctranslate2 import (
    create_specification,
    first_token_pairs,
    target_prefixes,
)
from tests.components.importing.huggingface_fixtures import Fixture, load

EOS = 2  # of Hugging Face


def main() -> None:
    """Print how many outputs are equal, and the largest differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("theirs", type=Path, help="folder of the other conversion")
    arguments = parser.parse_args()
    fixture = load(arguments.folder.name)
    with tempfile.TemporaryDirectory() as folder:
        compare(fixture, Path(folder), arguments.theirs)


def compare(fixture: Fixture, own_folder: Path, their_folder: Path) -> None:
    """Compare both conversions on the sentences of a fixture."""
    settings = fixture.foreign.config.model_settings
    tokens = {side: read_vocabulary(model) for side, model in fixture.foreign.tokenizers.items()}
    weights = {weight.path: np.asarray(weight) for weight in fixture.model.weights}
    spec = create_specification(weights, settings, tokens)
    spec.validate()
    spec.optimize()
    spec.save(str(own_folder))
    own, their = (
        ctranslate2.Translator(str(folder), intra_threads=1)
        for folder in (own_folder, their_folder)
    )
    names = json.loads((their_folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    sentences = fixture.outputs["sentences"]

    ids = [fixture.tokenizers["source"].tokenize(fixture.text(row)).numpy() for row in sentences]
    own_sources = [[tokens["source"][number] for number in row] for row in ids]
    own_prefixes = target_prefixes(own_sources, first_token_pairs(settings, tokens))
    their_sources = [[names[number] for number in row["ids"]] for row in sentences]
    numbers = {token: number for number, token in enumerate(tokens["target"])}

    def to_foreign(texts: Sequence[str]) -> list[int]:
        return fixture.foreign_ids([numbers[text] for text in texts])

    their_prefixes = [[names[number] for number in to_foreign(row)] for row in own_prefixes]
    for beam_size in (1, 4):
        options = {
            "beam_size": beam_size,
            "return_scores": True,
            "min_decoding_length": 0,
            "max_decoding_length": 30,
        }
        ours = own.translate_batch(own_sources, target_prefix=own_prefixes, **options)
        theirs = their.translate_batch(their_sources, target_prefix=their_prefixes, **options)
        pairs = list(zip(ours, theirs, strict=True))
        same = [
            to_foreign(a.hypotheses[0]) == [names.index(token) for token in b.hypotheses[0]]
            for a, b in pairs
        ]
        worst = max(abs(a.scores[0] - b.scores[0]) for a, b in pairs)
        print(f"beam {beam_size}: {sum(same)} of {len(same)} equal, scores within {worst:.1e}")

    outputs = [[x for x in row["ids"][1:] if x != EOS] for row in fixture.outputs["beam"]]
    own_targets = [
        [tokens["target"][number] for number in fixture.own_ids(np.array(row), "decoder")]
        for row in outputs
    ]
    their_targets = [[names[number] for number in row] for row in outputs]
    differences = [
        abs(a - b)
        for ours, theirs in zip(
            own.score_batch(own_sources, own_targets),
            their.score_batch(their_sources, their_targets),
            strict=True,
        )
        for a, b in zip(ours.log_probs[1:], theirs.log_probs[1:], strict=True)
    ]
    print(f"{len(differences)} tokens: log-probabilities within {max(differences):.1e}")


if __name__ == "__main__":
    main()
