"""An orderly end of commands that have nodes of their own: signals end them as errors do."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def ends_in_order() -> Generator[None]:
    """Under `with` the first SIGTERM, SIGINT or SIGHUP raises SystemExit with 128 and its number.

    Python ends at once for most of them, and what stands under `finally` is left undone. Later
    ones are ignored, so that whoever presses Ctrl-C twice does not end the clearing up.
    """

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, end) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
