"""Downloads of the files of a model, with checksums and a cache."""

from collections.abc import Mapping
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import atomic_write, sha256_file
from regard.core.regular_files import read_regular
from regard.pipeline.datasets.dataset_files import Progress
from regard.pipeline.datasets.fetch import download_file, exists

CHECKSUMS = "SHA256SUMS"  # as the command sha256sum writes it
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# The files that `regard import marian` and `m2m` read, if the model has them.
_OTHERS = (
    "README.md",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "target_vocab.json",
    "source.spm",
    "target.spm",
    "sentencepiece.bpe.model",
    "tokenizer.json",
)
_MAX_BYTES = 64 << 20
_MAX_WEIGHTS_BYTES = 32 << 30
_MAX_CHECKSUMS_BYTES = 1 << 20


def download_model(
    url: str, folder: Path, checksums: Path | None = None, progress: Progress | None = None
) -> list[str]:
    """Download the files of a model from an address into a folder.

    The checksums are those of a file, or of an earlier download; those of other files are recorded
    in ``SHA256SUMS`` of the folder, so that a later download gets the same files. Correct files are
    not downloaded again.

    Args:
        url: the address of the files, for example
            ``https://huggingface.co/Helsinki-NLP/opus-mt-en-de/resolve/REVISION``.
        folder: created if missing.
        checksums: a file with the SHA-256 and the name of each file; all of them must exist.
        progress: receives the name of each file and the fraction that is done.

    Returns:
        The names of the files that were downloaded.

    Raises:
        UserError: no network, a missing file, another checksum, or a file that is too large.
    """
    url = url.rstrip("/")
    if not url.startswith(("https://", "http://")):
        remedy = "Give the address of the files, such as https://HOST/MODEL/resolve/REVISION."
        raise UserError(f"{url!r} is no address.", "URL", remedy)
    recorded = folder / CHECKSUMS
    known = read_checksums(checksums) if checksums else {}
    if not known and recorded.exists():
        known = read_checksums(recorded)
    names = list(known) or _available(url)
    downloaded = []
    for number, name in enumerate(names):
        if progress:
            progress(name, number / len(names))
        path, checksum = folder / name, known.get(name)
        if path.is_file() and checksum == sha256_file(path):
            continue
        # Without a checksum, a file that exists may be a part of another model.
        path.unlink(missing_ok=True)
        limit = _MAX_WEIGHTS_BYTES if name in _WEIGHTS else _MAX_BYTES
        download_file(url, name, folder, checksum, limit)
        downloaded.append(name)
    lines = [f"{sha256_file(folder / name)}  {name}\n" for name in sorted(names)]
    atomic_write(recorded, "".join(lines))
    return downloaded


def _available(url: str) -> list[str]:
    """Return the names of the files that an address has: one of the weights, and all others."""
    weights = next((name for name in _WEIGHTS if exists(f"{url}/{name}")), None)
    if weights is None:
        remedy = "Give the address of the files of a model, with its revision."
        raise UserError(f"There is neither {' nor '.join(_WEIGHTS)}.", url, remedy)
    return [*(name for name in _OTHERS if exists(f"{url}/{name}")), weights]


def read_checksums(path: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each file of a list.

    Raises:
        UserError: it cannot be read, or names a file that no import reads.
    """
    remedy = f"Write lines with a SHA-256, two spaces and a name, as `sha256sum * > {CHECKSUMS}`."
    try:
        text = read_regular(path, _MAX_CHECKSUMS_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"The checksums cannot be read: {error}", str(path), remedy) from None
    checksums = {}
    for number, line in enumerate(text.splitlines(), 1):
        checksum, _, name = line.partition("  ")
        is_checksum = len(checksum) == 64 and not set(checksum) - set("0123456789abcdef")
        if not is_checksum or name not in (*_WEIGHTS, *_OTHERS):
            message = f"{line[:100]!r} is not the SHA-256 of a file of a model."
            raise UserError(message, f"{path}:{number}", remedy)
        checksums[name] = checksum
    return checksums
