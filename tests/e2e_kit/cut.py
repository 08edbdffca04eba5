"""A pod that is cut off, as by a NetworkPolicy.

The built-in node's network plugin enforces no NetworkPolicy, so a packet filter in the pod's own
network stands in for one: what it forbids is dropped without a word, as most plugins do it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence

from e2e_kit.api import Json
from e2e_kit.external_hosts import first, inner
from e2e_kit.site import Site, pid_in_pod
from penstock.local.process import Process


@contextlib.contextmanager
def cut(site: Site, pod: Json, program: str, *rules: Sequence[str]) -> Generator[None]:
    """While it lasts packets of these rules (`iptables -I`) are dropped in the network of a pod.

    `program` is a part of the command line of a process of the pod. Raises LocalError.
    """
    process = Process.of(pid_in_pod(pod["metadata"]["uid"], program))
    if process is None:
        raise LookupError(f"{program} has ended")
    target = str(inner(process, first(site.node)))
    iptables = ("nsenter", "--target", target, "--net", "--", "iptables", "-w")
    done: list[Sequence[str]] = []
    try:
        for rule in rules:
            site.node.run(*iptables, "-I", *rule, "-j", "DROP")
            done.append(rule)
        yield
    finally:
        for rule in done:
            site.node.run(*iptables, "-D", *rule, "-j", "DROP")
