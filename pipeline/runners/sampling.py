"""Makes Beam's jobs end when their work has.

While a job's stage runs, a thread of Beam's looks now and then what it is at, for metrics that
nobody here reads, and the stage's end waits until it has looked once more: a fifth of a second,
again and again where there are few rows.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from apache_beam.runners.worker import statesampler

PERIOD_MS = 10  # at most between two looks; Beam's own is 200


@contextlib.contextmanager
def brief() -> Iterator[None]:
    """While the block runs, the stages of jobs in this process are looked at more often."""
    plain = statesampler.StateSampler
    often = functools.partial(plain, sampling_period_ms=PERIOD_MS)
    statesampler.StateSampler = often
    try:
        yield
    finally:
        statesampler.StateSampler = plain
