"""Kills the operator right after chosen writes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

from e2e_kit.site import USER, Site, pid_in_pod
from e2e_kit.undying import COMMAND, undying_operator

_READS_S = 0.01
_READ_ONLY = ('"verb":"get"', '"verb":"list"', '"verb":"watch"')


@dataclass
class Kills:
    """What was killed after which write of a namespace."""

    after: list[str] = field(default_factory=list[str])


@contextlib.contextmanager
def killed_at_writes(site: Site, namespace: str, numbers: Sequence[int]) -> Generator[Kills]:
    """While it lasts, the operator is killed after these writes to a namespace, and starts again.

    Writes are counted from one. Those of a new process count on.
    """
    kills, over = Kills(), Event()
    with undying_operator(site) as uid, ThreadPoolExecutor(1) as pool:
        done = pool.submit(_kill, site, namespace, sorted(numbers), uid, kills, over)
        try:
            yield kills
        finally:
            over.set()
            done.result()


def _kill(
    site: Site, namespace: str, numbers: list[int], uid: str, kills: Kills, over: Event
) -> None:
    mark, seen = f"/namespaces/{namespace}/", 0
    with site.node.audit_log.open() as log:
        log.seek(0, os.SEEK_END)
        part = ""
        while numbers and not over.is_set():
            part += log.readline()
            if not part.endswith("\n"):
                time.sleep(_READS_S)
                continue
            line, part = part, ""
            if USER not in line or mark not in line or any(one in line for one in _READ_ONLY):
                continue
            seen += 1
            if seen >= numbers[0]:
                numbers.pop(0)
                of = json.loads(line)["objectRef"]
                kills.after.append(f"{of['resource']}/{of.get('name', '')}")
                _kill_now(uid)


def _kill_now(uid: str) -> None:
    try:
        process = os.pidfd_open(pid_in_pod(uid, COMMAND))
    except LookupError:
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], 10)
    finally:
        os.close(process)
