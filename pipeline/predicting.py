"""Answers from a SavedModel for the terminal: lines in, lines out, in order."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from components.errors import UserError
from serving import saved_model
from serving.saved_model import Answer

BATCH = 64
GATHER_SECONDS = 0.02  # how long a batch waits for more lines when they come slowly


class Translator:
    """A loaded SavedModel.

    Args:
        path: its folder.

    Raises:
        UserError: the folder is no SavedModel of ours.
    """

    def __init__(self, path: Path):
        import tensorflow as tf

        try:
            self._model = saved_model.load(path)
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise UserError(
                f"the model cannot be loaded: {reason}",
                where=str(path),
                remedy="Give the folder that holds saved_model.pb and variables/.",
            ) from error
        self._path = path

    def answers(
        self, batches: Iterable[list[str]], align: bool = False
    ) -> Iterator[tuple[str, Answer | None]]:
        """Each line with its answer, in order; a line without text has none.

        Raises:
            UserError: the model refuses a source; the answers before it have been given.
        """
        try:
            function = saved_model.signature(self._model, "align" if align else "serving_default")
        except saved_model.SavedModelError as error:
            raise UserError(str(error), where=str(self._path)) from error
        for batch in batches:
            asked = [line for line in batch if line.strip()]
            rows = _asked(function, asked)
            for line in batch:
                yield line, next(rows) if line.strip() else None


def _asked(function: Any, sources: list[str]) -> Iterator[Answer]:
    """The answers to one batch; where a source is refused, those before it first."""
    try:
        yield from saved_model.ask(function, sources) if sources else []
    except saved_model.SourceRefused as error:
        if len(sources) == 1:
            shown = sources[0] if len(sources[0]) <= 60 else f"{sources[0][:59]}…"
            raise UserError(
                str(error),
                where=shown,
                remedy="Shorten it, or train with another search.max_source_length or "
                "search.long_source: truncate.",
            ) from None
        for source in sources:
            yield from _asked(function, [source])


def one_line(answer: Answer | None) -> str:
    """The text on one line, whatever the model has learnt to write."""
    return " ".join(answer.hypothesis.splitlines()) if answer else ""


def as_dict(source: str, answer: Answer | None) -> dict[str, Any]:
    """An answer as JSON fields; the alignment only where it was asked for."""
    fields: dict[str, Any] = {
        "source": source,
        "translation": one_line(answer),
        "score": answer.score if answer else None,
    }
    if answer and answer.alignment is not None:
        fields["alignment"] = {
            "source": answer.source_pieces,
            "target": answer.target_pieces,
            "weights": answer.alignment.tolist(),
        }
    return fields


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
