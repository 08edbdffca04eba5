"""A Prometheus that reads a SlurmCluster, its exporter and the operator, beside the node."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dashboards.picture import Series
from e2e_kit.site import eventually
from penstock.local import golang, programs

Json = dict[str, Any]
EVERY_S = 2
"""Between two scrapes."""
WINDOW = "20s"
"""In place of Grafana's window for rates."""


@dataclass(frozen=True)
class Target:
    """An address with a path, and the labels that Prometheus' operator gives to its series."""

    job: str
    address: str
    labels: Mapping[str, str]
    path: str = "/metrics"
    dropped: str = ""
    """Labels that its monitor drops, as a pattern."""


def _scrape(number: int, one: Target, file: Path) -> Json:
    found: Json = {
        "job_name": f"{number}",
        "metrics_path": one.path,
        "file_sd_configs": [{"files": [str(file)]}],
    }
    if one.dropped:
        found["metric_relabel_configs"] = [{"action": "labeldrop", "regex": one.dropped}]
    return found


class Prometheus:
    """A process that scrapes these targets, from its start to `stop`."""

    def __init__(self, folder: Path, targets: Sequence[Target]) -> None:
        self.began = time.time()
        self._folder = folder
        self.read_from(targets)
        port = _free_port()
        self._address = f"http://127.0.0.1:{port}"
        every = f"{EVERY_S}s"
        config: Json = {
            "global": {"scrape_interval": every, "scrape_timeout": every},
            "scrape_configs": [
                _scrape(number, one, self._file(number)) for number, one in enumerate(targets)
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                [
                    # It ends with a test process that is killed.
                    *("setpriv", "--pdeathsig", "KILL"),
                    str(golang.compiled(programs.PROMETHEUS_PROGRAM)),
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )

    def read_from(self, targets: Sequence[Target]) -> None:
        """Scrape the same targets at their present addresses: a replaced pod has another one."""
        for number, one in enumerate(targets):
            found = [{"targets": [one.address], "labels": {**one.labels, "job": one.job}}]
            whole = self._folder / f"{number}.new"
            whole.write_text(json.dumps(found))
            whole.rename(self._file(number))

    def _file(self, number: int) -> Path:
        return self._folder / f"target-{number}.json"

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(timeout=60)

    def until_ready(self) -> None:
        """Wait until it answers."""
        eventually("Prometheus answers", self._is_ready, 60)

    def _is_ready(self) -> bool:
        try:
            self._get("query", query="up")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def series(self, expr: str) -> list[Series]:
        """Series of an expression since the start. Raises HTTPError with what is wrong with it."""
        end = time.time()
        step = max(1, int((end - self.began) / 240))
        found = self._get("query_range", query=expr, start=self.began, end=end, step=step)
        return [
            Series(
                {key: value for key, value in one["metric"].items() if key != "__name__"},
                tuple((float(at), float(value)) for at, value in one["values"]),
            )
            for one in found["data"]["result"]
        ]

    def now(self, expr: str) -> list[Json]:
        """Series of an expression with their present values."""
        return self._get("query", query=expr)["data"]["result"]

    def _get(self, what: str, **values: Any) -> Json:
        query = urllib.parse.urlencode(values)
        with urllib.request.urlopen(f"{self._address}/api/v1/{what}?{query}", timeout=20) as answer:
            return json.loads(answer.read())


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
