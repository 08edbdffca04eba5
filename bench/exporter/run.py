"""Scrapes of the exporter at 5,000 nodes and 20,000 jobs, of which all move in each interval.

slurmrestd is a stand-in with records as large as real ones. The exporter is the process of the pod.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Result, gathered
from bench.registry import Bench, Settings

NODES, JOBS = 5000, 20000
SCRAPES = 20
INTERVAL_S = 5


@contextmanager
def _process(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A process of Python, and the first line that it prints."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


def _get(url: str) -> tuple[float, bytes]:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = answer.read()
    return time.monotonic() - began, body


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _once(slurmrestd: str) -> tuple[dict[str, float], dict[str, float], str]:
    exporter = [
        *("-m", "penstock.controllers.exporter", "--standalone", "--static-token=t"),
        *("--cluster-name=bench", f"--slurm-api-server=http://127.0.0.1:{slurmrestd}"),
        *("--metrics-bind-address=127.0.0.1:0", "--monitoring-bind-address=0"),
        f"--collection-interval={INTERVAL_S}s",
    ]
    with _process(*exporter) as (process, line):
        url = f"http://127.0.0.1:{json.loads(line)['ports'][0]}/metrics"
        first, _ = _get(url)
        while len(zlib.decompress(_get(url)[1], 31)) < 10**6:
            time.sleep(0.2)
        cpu, began = _cpu_s(process.pid), time.monotonic()
        took: list[float] = []
        for _ in range(SCRAPES):
            took.append(_get(url)[0])
            time.sleep(1)
        collections = (time.monotonic() - began) / INTERVAL_S
        cpu = (_cpu_s(process.pid) - cpu) / collections
        text = zlib.decompress(_get(url)[1], 31)
        series = sum(not row.startswith(b"#") for row in text.splitlines())
        size = f"{series:,} series, {len(text) / 2**20:.1f} MiB of text"
        seconds = {
            "first scrape after a pause, with its collection": first,
            "scrape, median": sorted(took)[len(took) // 2],
            "scrape, longest": max(took),
            "CPU of one collection of changed nodes and jobs": cpu,
        }
        return seconds, {"peak memory of the process": _peak_mib(process.pid)}, size


def run(given: Settings) -> Result:
    """Measure."""
    times: list[dict[str, float]] = []
    memory: list[dict[str, float]] = []
    size = ""
    with _process("-m", "bench.exporter.stand_in", str(NODES), str(JOBS)) as (_, slurmrestd):
        for _ in range(given.runs):
            seconds, mib, size = _once(slurmrestd)
            times.append(seconds)
            memory.append(mib)
    return Result((*gathered(list(times), "s"), *gathered(list(memory), "MiB")), size)


TITLE = f"scrapes of the exporter, {NODES:,} nodes and {JOBS:,} jobs"
BENCH = Bench("exporter", TITLE, 3, None, run)
