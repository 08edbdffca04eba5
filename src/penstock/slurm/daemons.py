"""Ports and users of Slurm's daemons in pods, and parameters that a daemon does not take."""

from __future__ import annotations

from typing import Final

SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
SSH_PORT: Final = 22
SLURM_UID: Final = 401
SLURMRESTD_UID: Final = 65534
NOT_FOR_SLURMD: Final = ("comment", "extra")
"""Node parameters that slurmctld stores and slurmd's `--conf` rejects."""
