"""The log of slurmctld's reconfigure container, in the place of simulated pods.

Each new configuration is accepted at once. Source: src/penstock/render/shell/reconfigure.sh.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from penstock.api.nebius.slurmcluster import SlurmCluster

RELEASE = "26.05.5"


class ReconfigureLog:
    """Writes the file that simulated kubelets serve. `reconfigured` is what each slurmd does."""

    def __init__(self, path: Path, reconfigured: Callable[[], None]) -> None:
        self._path = path
        self._reconfigured = reconfigured
        self._last = ""
        self._path.write_text(_line(f"slurm {RELEASE}"))

    def follow(self, _: SlurmCluster | None, new: SlurmCluster | None) -> None:
        """Accept the configuration of a SlurmCluster, if it is another one."""
        wanted = new.status.config_hash if new is not None else ""
        if not wanted or wanted == self._last:
            return
        self._last = wanted
        self._reconfigured()
        with self._path.open("a") as file:
            file.write(_line(f"tried {wanted} ok") + _line(f"effective {wanted}"))


def _line(words: str) -> str:
    """One line in the form of CRI, as containerd writes it."""
    return f"{datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f000Z')} stdout F penstock: {words}\n"
