"""Hide what TensorFlow and other native libraries print to the terminal."""

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

from regard.core.errors import UserError

_SHOWN_BYTES = 4000
_lock = threading.RLock()  # the descriptors are those of all threads


@contextlib.contextmanager
def silence_output() -> Iterator[IO[str]]:
    """Redirect standard output and standard error while the block runs.

    Native code writes to the file descriptors, so these are redirected, into a temporary file. If
    the block fails with an unexpected error, the end of that file is printed.

    Yields:
        The real standard output.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _lock, tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            with open(os.dup(saved[0]), "w", encoding="utf-8", newline="\n") as output:
                yield output
        except (UserError, BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception:
            sys.stderr.flush()
            log.seek(0)
            os.write(saved[1], log.read()[-_SHOWN_BYTES:])
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(saved, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
