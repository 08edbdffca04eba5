"""When objects of a namespace came to be in a state, by the watch events of kubectl.

Timestamps inside objects are whole seconds; the moment at which a watch event arrives is accurate
to some milliseconds, and is when the rest of the cluster can know of it.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from penstock.local.node import Node

Json = dict[str, Any]


@dataclass
class FirstSeen:
    """Moments (seconds of the epoch) at which something was first true, by what it is."""

    moments: dict[str, float] = field(default_factory=dict[str, float])
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def mark(self, what: str, at: float | None = None) -> None:
        """`what` is true now, unless that was known before."""
        with self._changed:
            self.moments.setdefault(what, time.time() if at is None else at)
            self._changed.notify_all()

    def until(self, *what: str, timeout: float) -> None:
        """Wait for all of them. Raises TimeoutError with what is missing."""

        def there() -> bool:
            return set(what) <= self.moments.keys()

        with self._changed:
            if not self._changed.wait_for(there, timeout):
                missing = sorted(set(what) - self.moments.keys())
                raise TimeoutError(f"not within {timeout:g} s: {', '.join(missing)}")

    def until_anything(self, timeout: float) -> None:
        """Wait for the first of all. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self.moments), timeout):
                raise TimeoutError(f"nothing within {timeout:g} s")


@contextmanager
def watching(
    node: Node, namespace: str, resources: Sequence[str], on_event: Callable[[str, Json], None]
) -> Generator[None]:
    """Call `tell(resource, object)` for each state of each object, until the block ends."""
    processes = [_watch(node, namespace, resource) for resource in resources]
    readers = [
        threading.Thread(target=_read, args=(process.stdout, resource, on_event))
        for process, resource in zip(processes, resources, strict=True)
    ]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for process, reader in zip(processes, readers, strict=True):
            process.terminate()
            reader.join()
            process.wait()


def _watch(node: Node, namespace: str, resource: str) -> subprocess.Popen[str]:
    command = ["kubectl", "get", resource, "-n", namespace, "--watch", "-o", "json"]
    return subprocess.Popen(command, env=node.env, stdout=subprocess.PIPE, text=True)


def _read(stream: IO[str] | None, resource: str, on_event: Callable[[str, Json], None]) -> None:
    """Each object ends with a brace of its own line at the margin."""
    lines: list[str] = []
    for line in stream or ():
        lines.append(line)
        if line == "}\n":
            on_event(resource, json.loads("".join(lines)))
            lines.clear()
