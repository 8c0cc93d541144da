"""Protected spans in Multi30k, English to German: generated data, and how outputs keep the spans.

    pip install systran-align                                # in an environment of its own
    python benchmarks/protect.py links WORK                  # needs it, and $REGARD_DATA
    python benchmarks/protect.py data WORK                   # WORK/{train,val,test,...}.{en,de}
    regard run WORK/protect.yaml                             # with data.protect
    regard run WORK/same.yaml                                # the same data without
    regard run WORK/clean.yaml                               # the data without spans
    python benchmarks/protect.py guided WORK                 # needs systran-align again
    regard run WORK/guided.yaml                              # tags placed by supervised attention
    python -m benchmarks.protect outputs WORK MODEL NAME     # translates the texts with spans
    python benchmarks/protect.py judge WORK NAME             # needs systran-align again

Half of the training rows, and all rows of the test with spans, get tags around linked words, URLs
and addresses, and placeholders and numbers in place of linked words. A tag is on the right word if
its words in the output are linked to the words that it encloses in the source.
"""

import gzip
import itertools
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

_FILES = {"train": "train", "val": "val", "test": "test_2016_flickr"}
_TOKEN = re.compile(r"\w+|[^\w\s]")
_TAGS = ["b", "i", "em", "u", 'a href="https://example.org/{}"', 'span class="x{}"', "g id={}"]
_TAG = re.compile(r" *</[a-z]+>|<[a-z][^<>]*> *")
_INLINE = re.compile(r"<[^<>]*>|\{[0-9]\}|%s")
_SPAN = re.compile(r"<[^<>]*>|https?://[^\s)<]+|\{[0-9]\}|%s|\b[0-9][0-9.]*\b|[\w.]+@\S+?\.org")

_CONFIG = """name: {name}
task: translation
data:
  root: {folder}
  train: {train}
  eval: {val}
  test: {test}
{data}  checks: {{target_overlap: null, near_overlap: null}}
tokenizer: {{type: bpe, vocab_size: 4000, shared: true}}
model:
  embedding: 128
  dropout: 0.2
  tie_embeddings: all
  encoder: {{type: recurrent, cell: gru, units: 128, layers: 1, bidirectional: true}}
  decoder: {{type: luong, cell: gru, units: 128, layers: 1, input_feeding: true}}
  attention: {{score: general, alignment: soft}}
training:
  batch_tokens: 2048
  max_length: 80
  max_epochs: null
  max_steps: 1800
  learning_rate: 0.003
  schedule: {{type: inverse_sqrt, warmup_steps: 200}}
  label_smoothing: 0.1
  clip_norm: 1.0
  early_stopping: null
  precision: float32
  backend: jax
  seed: 17
{training}search: {{type: beam, beam_size: 5, length_penalty: 1.0}}
evaluation: {{metrics: [bleu], tokenize: 13a, thresholds: {{bleu: 3.0}}}}
"""


def _words(text: str) -> list[str]:
    return [word.lower() for word in _TOKEN.findall(text)]


def _align(
    work: Path, pairs: Sequence[tuple[str, str]], name: str = "clean"
) -> Iterator[list[tuple[int, int]]]:
    import systran_align

    aligner = systran_align.Aligner(*_aligner_files(work, name))
    for source, target in pairs:
        links = aligner.align(_words(source), _words(target))["alignments"]
        yield [(int(s), int(t)) for s, t in links]


def _train_aligner(work: Path, name: str, splits: Iterable[Sequence[tuple[str, str]]]) -> None:
    import systran_align

    texts = work / f"{name}-pairs.txt"
    with open(texts, "w", encoding="utf-8") as file:
        for source, target in itertools.chain.from_iterable(splits):
            file.write(f"{' '.join(_words(source))} ||| {' '.join(_words(target))}\n")
    systran_align.generate_alignment_probabilities(
        str(texts), *_aligner_files(work, name), favor_diagonal=True, optimize_tension=True
    )


def _aligner_files(work: Path, name: str) -> list[str]:
    return [str(work / f"{name}-{side}.bin") for side in ("forward", "backward")]


def write_links(work: Path) -> None:
    """Write the pairs of each split with their links."""
    root = Path(os.environ["REGARD_DATA"], "multi30k")
    splits = {
        split: list(
            zip(*(_lines(root / f"{name}.{side}.gz") for side in ("en", "de")), strict=True)
        )
        for split, name in _FILES.items()
    }
    _train_aligner(work, "clean", splits.values())
    for split, pairs in splits.items():
        rows = [[*pair, links] for pair, links in zip(pairs, _align(work, pairs), strict=True)]
        (work / f"{split}.links.json").write_text(json.dumps(rows), encoding="utf-8")


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def write_data(work: Path) -> None:
    """Write the texts with spans, the clean ones, and the configurations."""
    generator = random.Random(17)
    for split in _FILES:
        rows = json.loads((work / f"{split}.links.json").read_text(encoding="utf-8"))
        share = {"train": 0.5, "val": 0.5, "test": 1.0}[split]
        pairs = [
            _with_spans(*row, generator) if generator.random() < share else row[:2] for row in rows
        ]
        for side, column in (("en", 0), ("de", 1)):
            text = "".join(f"{pair[column]}\n" for pair in pairs)
            (work / f"{split}.{side}").write_text(text, encoding="utf-8")
            clean = "".join(f"{row[column]}\n" for row in rows)
            (work / f"clean-{split}.{side}").write_text(clean, encoding="utf-8")
    protect = "  protect: {kinds: [urls, emails, numbers, markup, placeholders]}\n"
    for name, prefix, section in (
        ("protect", "", protect),
        ("same", "", ""),
        ("clean", "clean-", ""),
    ):
        names = {"train": f"{prefix}train", "val": f"{prefix}val", "test": "clean-test"}
        files = {key: f"{{source: {x}.en, target: {x}.de}}" for key, x in names.items()}
        _write_config(work, name, files, section)


def _write_config(
    work: Path, name: str, files: dict[str, str], data: str, training: str = ""
) -> None:
    text = _CONFIG.format(name=name, folder=work.absolute(), **files, data=data, training=training)
    (work / f"{name}.yaml").write_text(text, encoding="utf-8")


def _with_spans(
    source: str, target: str, links: list[list[int]], generator: random.Random
) -> tuple[str, str]:
    """Return a pair with spans on linked words."""
    sides = [list(_TOKEN.finditer(text)) for text in (source, target)]
    runs = _runs(sides, links)
    generator.shuffle(runs)
    edits: list[list[tuple[int, int, str, str]]] = [[], []]  # from, to, before, after
    used: list[set[int]] = [set(), set()]
    kinds = [
        "tag",
        *generator.choices(["tag", "tag", "placeholder", "number", "url", "email"], k=3),
    ]
    for kind in kinds[: generator.randint(1, 4)]:
        for run in runs:
            spans = [set(range(*run[0])), set(range(*run[1]))]
            is_single = len(spans[0]) == len(spans[1]) == 1
            if used[0] & spans[0] or used[1] & spans[1] or (kind != "tag" and not is_single):
                continue
            new = _span(kind, generator)
            for side in (0, 1):
                used[side] |= spans[side]
                words = sides[side][run[side][0] : run[side][1]]
                edits[side].append((words[0].start(), words[-1].end(), *new))
            break
    return _edit(source, edits[0]), _edit(target, edits[1])


def _span(kind: str, generator: random.Random) -> tuple[str, str]:
    """Return the texts before and after words; a single text replaces the word."""
    number = generator.randint(0, 9)
    if kind == "tag":
        tag = generator.choice(_TAGS).format(number)
        return f"<{tag}>", f"</{tag.split()[0]}>"
    if kind == "url":
        name = "".join(generator.choices("abcdefgh/", k=6))
        return "", f" (https://{name}.example.org/?q={number})"
    if kind == "email":
        return "", f" ({''.join(generator.choices('abcdefgh', k=5))}@example.org)"
    if kind == "number":
        return f"\0{generator.choice([generator.randint(2, 99999), f'{number}.{number + 1}'])}", ""
    return f"\0{generator.choice([f'{{{number}}}', '%s'])}", ""


def _edit(text: str, edits: list[tuple[int, int, str, str]]) -> str:
    for start, end, before, after in sorted(edits, reverse=True):
        middle = before[1:] if before.startswith("\0") else before + text[start:end]
        text = text[:start] + middle + after + text[end:]
    return text


def _runs(sides: Any, links: list[list[int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return runs of up to three source words with the target words linked to them only."""
    runs = []
    for start in range(len(sides[0])):
        for end in range(start + 1, min(start + 4, len(sides[0]) + 1)):
            targets = {t for s, t in links if start <= s < end}
            if not targets:
                continue
            low, high = min(targets), max(targets) + 1
            sources = {s for s, t in links if low <= t < high}
            words = [*sides[0][start:end], *sides[1][low:high]]
            is_tight = {start, end - 1} <= sources and high - low <= 4
            if (
                is_tight
                and sources <= set(range(start, end))
                and all(w[0][0].isalnum() for w in words)
            ):
                runs.append(((start, end), (low, high)))
    return runs


def write_guided(work: Path) -> None:
    """Write the texts with spans, with links for guided alignment, and the configuration.

    The links count the words that the model reads: without tags and placeholders.
    """
    files = {"train": "train", "val": "val", "test": "clean-test"}
    pairs = {
        split: [*zip(*(_read(work / f"{name}.{side}") for side in ("en", "de")), strict=True)]
        for split, name in files.items()
    }
    plain = {
        split: [(_INLINE.sub("", source), _INLINE.sub("", target)) for source, target in rows]
        for split, rows in pairs.items()
    }
    _train_aligner(work, "guided", plain.values())
    for split, texts in plain.items():
        links = [
            _word_links(*row) for row in zip(texts, _align(work, texts, "guided"), strict=True)
        ]
        cells = zip(*zip(*pairs[split], strict=True), links, strict=True)
        rows = ["\t".join(cell.replace("\t", " ") for cell in row) for row in cells]
        (work / f"guided-{split}.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    _write_config(
        work,
        "guided",
        {split: f"guided-{split}.tsv" for split in files},
        "  extra: [links]\n"
        "  protect: {kinds: [urls, emails, numbers, markup, placeholders], placement: attention}\n",
        "  guided_alignment: {links: links, weight: 0.2}\n",
    )


def _word_links(texts: tuple[str, str], links: Sequence[tuple[int, int]]) -> str:
    """Return links of tokens as links of the words between spaces, in Pharaoh format."""
    source, target = (
        [len(text[: token.end()].split()) - 1 for token in _TOKEN.finditer(text)] for text in texts
    )
    return " ".join(f"{s}-{t}" for s, t in sorted({(source[s], target[t]) for s, t in links}))


def _read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def translate(work: Path, model: str, name: str) -> None:
    """Write the outputs of a model for the texts with spans, and for the clean ones."""
    from regard.pipeline.api.models import load_model, predict

    loaded = load_model(model)
    for split in ("test", "clean-test"):
        sources = _read(work / f"{split}.en")
        outputs = [row.hypothesis if row else "" for row in predict(loaded, sources)]
        (work / f"{split}.{name}").write_text("".join(f"{x}\n" for x in outputs), encoding="utf-8")


def judge(work: Path, name: str) -> None:
    """Print how many outputs are well-formed, have all spans, and have tags on the right words."""
    sources, outputs = (_read(work / f"test.{side}") for side in ("en", name))
    plain = [
        (_TAG.sub(_space, s), _TAG.sub(_space, t)) for s, t in zip(sources, outputs, strict=True)
    ]
    well_formed = unchanged = right = tags = 0
    for source, output, links in zip(sources, outputs, _align(work, plain), strict=True):
        well_formed += _is_well_formed(output)
        unchanged += sorted(_SPAN.findall(source)) == sorted(_SPAN.findall(output))
        inside = _enclosed(output)
        for tag, words in _enclosed(source).items():
            linked = {t for s, t in links if s in words}
            if linked and tag in inside:
                tags += 1
                right += bool(inside[tag]) and inside[tag] <= linked
    print(f"well-formed {well_formed} of {len(sources)}, unchanged spans {unchanged}")
    print(f"tags on the right words {right} of {tags} ({right / max(tags, 1):.3f})")


def _space(match: re.Match[str]) -> str:
    return " " if " " in match[0].strip("<>/")[-1:] else ""


def _is_well_formed(text: str) -> bool:
    stack = []
    for tag in re.findall(r"</?[a-z]+", text):
        if tag.startswith("</"):
            if not stack or stack.pop() != tag[2:]:
                return False
        else:
            stack.append(tag[1:])
    return not stack


def _enclosed(text: str) -> dict[str, set[int]]:
    """Return the numbers of the words that each tag encloses, by the tag and its occurrence."""
    result: dict[str, set[int]] = {}
    stack: list[str] = []
    number = 0
    for part in re.split(r"(<[^<>]*>)", text):
        if part.startswith("</"):
            stack[-1:] = []
        elif part.startswith("<"):
            count = sum(key.startswith(f"{part} ") for key in result)
            stack.append(f"{part} {count}")
            result[stack[-1]] = set()
        else:
            for _ in _TOKEN.findall(part):
                for key in stack:
                    result[key].add(number)
                number += 1
    return result


def main() -> None:
    """Run one of the steps above."""
    steps: Any = {
        "links": write_links,
        "data": write_data,
        "guided": write_guided,
        "outputs": translate,
        "judge": judge,
    }
    step, work, *rest = sys.argv[1:]
    steps[step](Path(work), *rest)


if __name__ == "__main__":
    main()
