"""Progress of long steps, with the time they took.

On a terminal the line of the running steps counts up in place; elsewhere each step gives one
plain line when it starts and one when it ends, so that a log stays readable. Steps may run beside
each other, in threads.
"""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TextIO

TERMINAL_TICK = 0.2
"""Seconds between two redraws of a running step on a terminal."""
PLAIN_TICK = 60.0
"""Seconds between two "still running" lines elsewhere."""


@dataclass
class Step:
    """A running step. `note` replaces what stands behind its title."""

    title: str
    note: str = ""

    def text(self, elapsed: float) -> str:
        """The step as one line; `elapsed` in seconds."""
        behind = f" ({self.note})" if self.note else ""
        return f"{elapsed:7.1f} s  {self.title}{behind}"


@dataclass
class Progress:
    """Writes steps to `stream` and keeps how long each took (`timings`, in seconds)."""

    stream: TextIO | None = None
    clock: Callable[[], float] = time.monotonic
    timings: dict[str, float] = field(default_factory=dict[str, float])
    _running: list[tuple[Step, float]] = field(default_factory=list[tuple[Step, float]])
    """Steps with the time at which they began."""

    @contextlib.contextmanager
    def step(self, title: str) -> Generator[Step]:
        """Show that `title` is going on until the block ends; an error ends it as "failed"."""
        step, start, done = Step(title), self.clock(), threading.Event()
        live = self._out().isatty()
        if not live:
            self._line(f"       …    {title}")
        ticker = threading.Thread(target=self._tick, args=(step, start, done, live), daemon=True)
        self._running.append((step, start))
        ticker.start()
        failed = True
        try:
            yield step
            failed = False
        finally:
            done.set()
            ticker.join()
            self._running.remove((step, start))
            elapsed = self.clock() - start
            self.timings[title] = elapsed
            end = step.text(elapsed) + (": failed" if failed else "")
            self._line(f"\r\x1b[K{end}" if live else end)

    def report(self, text: str) -> None:
        """One line without a time."""
        self._line(f"           {text}")

    def _tick(self, step: Step, start: float, done: threading.Event, live: bool) -> None:
        while not done.wait(TERMINAL_TICK if live else PLAIN_TICK):
            if live:
                steps = [one.text(self.clock() - began) for one, began in list(self._running)]
                out = self._out()
                # A longer line would not be taken back as a whole.
                columns = shutil.get_terminal_size().columns
                out.write(f"\r\x1b[K{'  '.join(steps)[: columns - 1]}")
                out.flush()
            else:
                self._line(f"{step.text(self.clock() - start)}: still running")

    def _line(self, text: str) -> None:
        out = self._out()
        out.write(f"{text}\n")
        out.flush()

    def _out(self) -> TextIO:
        # Looked up late: test runners and shells replace sys.stderr.
        return self.stream if self.stream is not None else sys.stderr


default = Progress()


def step(title: str) -> contextlib.AbstractContextManager[Step]:
    """Show `title` as going on, on standard error, until the block under `with` ends."""
    return default.step(title)
