"""The operator's own process, as its Deployment runs it, outside of the cluster."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.fleet import usage
from bench.fleet.target import NEBIUS, SLINKY, Target

METRICS_PORT = 18080
HEALTH_PORT = 18081
KUBECONFIG, HOSTS, LOG = "operator.yaml", "hosts", "operator.log"
"""Files of its folder."""
NODESETS = frozenset({SLINKY.nodesets, NEBIUS.nodesets})
LOOK_S = 0.5
"""Pause between looks at its counters: they cost it some milliseconds."""
SETTLE_S = 300.0
IN_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'
"""Its own names for addresses: it asks for the Service of a RestApi, and there is no DNS here."""


@dataclass(frozen=True)
class Counts:
    """What the operator itself counted since it started."""

    requests: Counter[str]
    """Requests to the API server as `verb resource`, watches and the Lease left out."""
    reconciles: int
    """Reconciles of NodeSets."""
    finished: int
    """Those that wait for nothing."""

    @property
    def by_verb(self) -> Counter[str]:
        """Requests by their verb."""
        found: Counter[str] = Counter()
        for what, count in self.requests.items():
            found[what.partition(" ")[0]] += count
        return found

    @property
    def writes(self) -> int:
        """Requests that change something, events for users too."""
        return sum(
            count
            for what, count in self.requests.items()
            if what.partition(" ")[0] not in {"get", "list"}
        )

    def since(self, before: Counts) -> Counts:
        """What came after."""
        return Counts(
            self.requests - before.requests,
            self.reconciles - before.reconciles,
            self.finished - before.finished,
        )


class Operator:
    """One process; `async with` ends it in order."""

    def __init__(self, process: asyncio.subprocess.Process, session: aiohttp.ClientSession) -> None:
        self._process = process
        self._session = session

    @classmethod
    async def start(cls, folder: Path, target: Target = SLINKY) -> Operator:
        """Start it with the files of a folder, where its log is too; it is not ready yet."""
        kubeconfig, hosts, log = (folder / name for name in (KUBECONFIG, HOSTS, LOG))
        command = [
            *("unshare", "--mount", "--propagation=private", "sh", "-c", IN_HOSTS, str(hosts)),
            *(sys.executable, "-m", "penstock.controllers"),
            # As its chart starts it.
            *(f"--apis={target.api}", f"--metrics-port={METRICS_PORT}"),
            f"--health-port={HEALTH_PORT}",
        ]
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "KUBECONFIG": str(kubeconfig)},
                stdout=output,
                stderr=output,
            )
        return cls(process, aiohttp.ClientSession())

    async def __aenter__(self) -> Operator:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.wait()

    async def ended(self) -> None:
        """Wait until it ends by itself, which it should not. Raises RuntimeError then."""
        raise RuntimeError(f"the operator ended with {await self._process.wait()}; see its log")

    @property
    def cpu(self) -> float:
        """CPU-seconds so far."""
        return usage.cpu_seconds(self._process.pid)

    @property
    def memory(self) -> float:
        """MiB now."""
        return usage.resident_mib(self._process.pid)

    @property
    def peak(self) -> float:
        """MiB at most so far."""
        return usage.peak_mib(self._process.pid)

    async def ready(self) -> None:
        """Wait until its caches are filled. Raises RuntimeError when it ended instead."""
        while True:
            try:
                async with self._session.get(f"http://127.0.0.1:{HEALTH_PORT}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            if self._process.returncode is not None:
                raise RuntimeError(f"the operator ended with {self._process.returncode}")
            await asyncio.sleep(0.02)

    async def counts(self) -> Counts:
        """What it counted so far."""
        async with self._session.get(f"http://127.0.0.1:{METRICS_PORT}/metrics") as answer:
            text = await answer.text()
        requests: Counter[str] = Counter()
        reconciles = finished = 0
        for name, labels, value in _samples(text):
            if name == "penstock_api_requests_total":
                verb, resource = labels["verb"], labels["resource"]
                if verb != "watch" and resource != "leases":
                    requests[f"{verb} {resource}"] += int(value)
            elif name == "penstock_reconcile_seconds_count" and labels["controller"] in NODESETS:
                reconciles += int(value)
                finished += int(value) if labels["result"] == "ok" else 0
        return Counts(requests, reconciles, finished)

    async def settled(self, idle: float = 3.0) -> float:
        """Wait until it has done nothing for so many seconds; when that began (monotonic).

        Raises TimeoutError.
        """
        begun = time.monotonic()
        before, since = await self.counts(), begun
        while time.monotonic() - since < idle or not before.finished:
            await asyncio.sleep(LOOK_S)
            now = await self.counts()
            if time.monotonic() - begun > SETTLE_S:
                raise TimeoutError(f"the operator has not come to rest in {SETTLE_S:g} s: {now}")
            if now != before:
                before, since = now, time.monotonic()
        return since


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value
