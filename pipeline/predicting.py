"""Answers from a SavedModel for the terminal: lines in, lines out, in order."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from components.errors import UserError

BATCH = 64
GATHER_SECONDS = 0.02  # how long a batch waits for more lines when they come slowly


@dataclasses.dataclass(frozen=True)
class Alignment:
    """Which source pieces each target piece was made from; ``weights`` is [target][source]."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the model makes of one line; an empty line has an empty answer and no score."""

    source: str
    translation: str
    score: float | None = None
    alignment: Alignment | None = None

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON fields; the alignment only where it was asked for."""
        fields: dict[str, Any] = {
            "source": self.source,
            "translation": self.translation,
            "score": self.score,
        }
        if self.alignment is not None:
            fields["alignment"] = dataclasses.asdict(self.alignment)
        return fields


class Translator:
    """A loaded SavedModel.

    Args:
        path: its folder.

    Raises:
        UserError: the folder is no SavedModel of ours.
    """

    def __init__(self, path: Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        try:
            self._model = tf.saved_model.load(str(path))
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise UserError(
                f"the model cannot be loaded: {reason}",
                where=str(path),
                remedy="Give the folder that holds saved_model.pb and variables/.",
            ) from error
        self._path = path

    def answers(self, lines: Iterable[list[str]], align: bool = False) -> Iterator[Answer]:
        """Answers batches of lines, one answer a line, in order."""
        call = self._signature("align" if align else "serving_default")
        for batch in lines:
            yield from self._batch(call, batch, align)

    def _signature(self, name: str) -> Any:
        if name not in self._model.signatures:
            there = ", ".join(sorted(self._model.signatures)) or "none"
            raise UserError(
                f"the model has no signature {name!r} (it has: {there})", where=str(self._path)
            )
        return self._model.signatures[name]

    def _batch(self, call: Any, batch: list[str], align: bool) -> Iterator[Answer]:
        import tensorflow as tf

        asked = [line for line in batch if line.strip()]
        rows: Iterator[Answer] = iter(())
        if asked:
            output = {key: value.numpy() for key, value in call(source=tf.constant(asked)).items()}
            rows = (_answer(text, output, row, align) for row, text in enumerate(asked))
        for line in batch:
            yield next(rows) if line.strip() else Answer(line, "")


def _answer(source: str, output: dict[str, Any], row: int, align: bool) -> Answer:
    # One answer is one line, whatever the model has learnt to write.
    text = " ".join(output["translation"][row].decode("utf-8", "replace").splitlines())
    alignment = None
    if align:
        wide, high = int(output["source_length"][row]), int(output["target_length"][row])
        alignment = Alignment(
            [piece.decode("utf-8", "replace") for piece in output["source_pieces"][row][:wide]],
            [piece.decode("utf-8", "replace") for piece in output["target_pieces"][row][:high]],
            [[float(w) for w in line[:wide]] for line in output["alignment"][row][:high]],
        )
    return Answer(source, text, float(output["score"][row]), alignment)


def batches(texts: Iterable[str], size: int = BATCH) -> Iterator[list[str]]:
    """Lists of at most ``size`` texts."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def stream_batches(file: BinaryIO, size: int = BATCH) -> Iterator[list[str]]:
    """Batches of the lines of a file: full ones where lines come fast, none held back where not.

    Only the line feed ends a line (a carriage return before it is dropped).

    Raises:
        UserError: a line is not UTF-8; the lines before it have been given.
    """
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=4 * size)

    def read() -> None:
        for line in file:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="stdin-reader", daemon=True).start()
    number, ended = 0, False
    while not ended:
        batch: list[str] = []
        try:
            while len(batch) < size and not ended:
                line = lines.get(timeout=GATHER_SECONDS if batch else None)
                ended = line is None
                if line is not None:
                    number += 1
                    batch.append(_decode(line, number))
        except queue.Empty:
            pass
        except UserError:
            if batch:
                yield batch
            raise
        if batch:
            yield batch


def _decode(line: bytes, number: int) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"byte {error.start + 1} of the line is not UTF-8",
            where=f"standard input:{number}",
            remedy="Convert the input first, for example with `iconv -t UTF-8`.",
        ) from error


@contextlib.contextmanager
def quiet() -> Iterator[IO[str]]:
    """Gives the real standard output; what libraries print goes to a file that is thrown away.

    TensorFlow's C++ side writes to the descriptors themselves, so these are replaced. When the
    block fails other than by the user, the end of that file is shown with the error.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as chatter:
        os.dup2(chatter.fileno(), 1)
        os.dup2(chatter.fileno(), 2)
        try:
            with open(os.dup(saved[0]), "w", encoding="utf-8", newline="\n") as out:
                yield out
        except (UserError, BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception:
            sys.stderr.flush()
            chatter.seek(0)
            os.write(saved[1], chatter.read()[-4000:])
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(saved, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
