"""Answers from a SavedModel for the terminal: rows in, lines out, in order."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from components.errors import UserError
from pipeline.examples import told
from pipeline.typed_rows import TypedRow
from serving import saved_model
from serving.importing import uncollected
from serving.saved_model import Answer

T = TypeVar("T")
BATCH = 64
GATHER_SECONDS = 0.02  # how long a batch waits for more lines when they come slowly


class Model:
    """A loaded SavedModel.

    Args:
        path: its folder.

    Raises:
        UserError: the folder is no SavedModel of ours.
    """

    def __init__(self, path: Path):
        with uncollected():
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  (what loading a model imports too)

        try:
            self._model = saved_model.load(path)
        except (OSError, ValueError, tf.errors.OpError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise UserError(
                f"the model cannot be loaded: {reason}",
                where=str(path),
                remedy="Give the folder that holds saved_model.pb and variables/.",
            ) from error
        except saved_model.SavedModelError as error:
            raise UserError(
                f"the model cannot be asked: {error}",
                where=str(path),
                remedy="Train it again with `regard run`, or give another model.",
            ) from error
        self._path = path
        self.contract = self._model.contract

    def answers(
        self, batches: Iterable[list[TypedRow]], align: bool = False
    ) -> Iterator[tuple[TypedRow, Answer | None]]:
        """Each row with its answer, in order; a row where nothing was typed has none.

        Raises:
            UserError: the model refuses a row; the answers before it have been given.
        """
        name = self.contract["detail"] if align else "serving_default"
        try:
            self._model.signature(name)
        except saved_model.SavedModelError as error:
            raise UserError(str(error), where=str(self._path)) from error
        for batch in batches:
            answers = self._asked(name, [row for row in batch if row.asked is not None])
            for row in batch:
                yield row, next(answers) if row.asked is not None else None

    def _asked(self, name: str, rows: list[TypedRow]) -> Iterator[Answer]:
        """The answers to one batch; where a row is refused, those before it first."""
        try:
            asked = [row.asked for row in rows if row.asked is not None]
            yield from self._model.ask(name, asked) if rows else []
        except saved_model.SourceRefused as error:
            if len(rows) == 1:
                remedy = "Shorten it, or train with another search.max_source_length or "
                remedy += "search.long_source: truncate."
                if error.too_short:
                    remedy = "Give more points, or train with a smaller model.least."
                raise UserError(str(error), where=rows[0].shown, remedy=remedy) from None
            for row in rows:
                yield from self._asked(name, [row])


def one_line(answer: Answer | None) -> str:
    """The answer on one line: a text, whatever the model has learnt to write, or numbers."""
    return " ".join(told(answer.hypothesis).splitlines()) if answer else ""


def as_dict(row: TypedRow, answer: Answer | None, contract: Mapping[str, Any]) -> dict[str, Any]:
    """A row and its answer as JSON fields, with all that was answered besides.

    What shows where the model looked is one field: the weights with the names of their rows and
    columns. Outputs that only tell how long others are stay out.
    """
    is_text = contract["answer_kind"] == "text"
    fields = dict(row.inputs)
    fields[contract["answer"]] = one_line(answer) if is_text else answer and answer.hypothesis
    if contract["score"] is not None:
        fields["score"] = answer.score if answer else None
    if answer is None:
        return fields
    outputs = answer.outputs
    shown = {contract["answer"], contract["score"], *_lengths(contract)}
    looks = contract["looks"]
    if looks and looks["weights"] in outputs:
        sides = [looks[side] for side in ("columns", "rows")]
        sides = [side for side in sides if side in outputs and side not in shown]
        shown |= set(looks.values())
        fields[looks["weights"]] = {
            **{side.removesuffix("_pieces"): _plain(outputs[side]) for side in sides},
            "weights": _plain(outputs[looks["weights"]]),
        }
    return fields | {name: _plain(value) for name, value in outputs.items() if name not in shown}


def _lengths(contract: Mapping[str, Any]) -> set[str]:
    """The outputs that tell how much of another one is real."""
    outputs = contract["signatures"][contract["detail"]]["outputs"].values()
    return {name for dimensions in outputs for name in dimensions if name is not None}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Lists of at most ``size`` items."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
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
