"""A shell in a container that stays: commands there without a new `kubectl exec` for each.

A `kubectl exec` costs a quarter of a CPU-second on both sides, and tests query Slurm some
thousand times.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import selectors
import shlex
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import IO

from penstock.local.errors import LocalError

ANSWER_S = 300.0
"""Longest wait for the end of one command."""
LOOK_S = 1.0
Start = Callable[[], subprocess.Popen[bytes]]


class Shell:
    """Runs one command after the other in the shell that `start` starts.

    Commands of several threads at once have a shell each. The container ends its shells; there are
    new ones for the next commands then.
    """

    def __init__(self, start: Start) -> None:
        self._start = start
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        # Nobody has to close it: not every test makes its cluster by the fixture that removes it.
        weakref.finalize(self, _end_all, self._idle)

    def run(self, command: Sequence[str], stdin: str | None = None) -> str:
        """What the command printed.

        Raises LocalError with its error output when it fails, and when the container ends.
        """
        process = self._take()
        mark = secrets.token_hex(8)
        assert process.stdin
        try:
            process.stdin.write(_line(command, stdin, mark))
            process.stdin.flush()
            output, errors = _read(process, mark.encode())
        except (OSError, EOFError) as error:
            _end(process)
            raise LocalError(f"kubectl exec {shlex.join(command)} failed: {error}") from error
        except BaseException:
            _end(process)
            raise
        with self._lock:
            self._idle.append(process)
        text, _, status = output.rpartition("\n")
        if status != "0":
            said = f"{errors.strip()}\ncommand terminated with exit code {status}"
            raise LocalError(f"kubectl exec {shlex.join(command)} failed: {said.strip()}")
        return text

    def close(self) -> None:
        """End all that wait."""
        with self._lock:
            _end_all(self._idle)

    def _take(self) -> subprocess.Popen[bytes]:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.poll() is None:
                    return process
                _end(process)
        return self._start()


def _end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        _end(processes.pop())


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe
        with contextlib.suppress(OSError):
            pipe.close()
    process.wait()


def _line(command: Sequence[str], stdin: str | None, mark: str) -> bytes:
    words = shlex.join(command)
    if stdin is None:
        given = f"{words} </dev/null"
    else:
        given = f"echo {base64.b64encode(stdin.encode()).decode()} | base64 -d | {words}"
    return f"{given}; printf '\\n%s%s' $? {mark}; printf %s {mark} >&2\n".encode()


def _read(process: subprocess.Popen[bytes], mark: bytes) -> tuple[str, str]:
    """Both outputs up to the mark. Raises EOFError with the output when they end before it."""
    assert process.stdout
    assert process.stderr
    found: dict[IO[bytes], bytes] = {process.stdout: b"", process.stderr: b""}
    deadline = time.monotonic() + ANSWER_S
    with selectors.DefaultSelector() as selector:
        for pipe in found:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(LOOK_S)
            # What it left behind may hold its outputs open.
            if not ready and process.poll() is not None:
                raise EOFError(f"it ended with {process.returncode}")
            if not ready and time.monotonic() > deadline:
                raise EOFError(f"no answer within {ANSWER_S:g} s")
            for key, _ in ready:
                pipe: IO[bytes] = key.fileobj  # pyright: ignore[reportAssignmentType]
                got = os.read(pipe.fileno(), 65536)
                if not got:
                    raise EOFError(found[process.stderr].decode().strip())
                found[pipe] += got
                if found[pipe].endswith(mark):
                    selector.unregister(pipe)
    output, errors = (text.removesuffix(mark).decode() for text in found.values())
    return output, errors
