"""Whether slurmctld's port in slurm.conf is one at which anybody finds it.

A trial start listens elsewhere, so it cannot see that.
"""

from __future__ import annotations

from penstock.slurm.conf.document import Document
from penstock.slurm.daemons import SLURMCTLD_PORT

KEY = "SlurmctldPort"
_HIGHEST = 65535


def unfit(slurm_conf: str) -> str:
    """Why slurmctld in our pods cannot work with its port; empty when it can.

    Source: slurm.conf(5), SlurmctldPort: a number, or a range of them.
    """
    given = (Document.parse(slurm_conf).get(KEY) or str(SLURMCTLD_PORT)).strip()
    advice = f"Take {KEY} out of spec.extraConf; spec.service.port is the port of the Service"
    low, dash, high = given.partition("-")
    numbers = [low, high] if dash else [low]
    if not all(one.isascii() and one.isdigit() and len(one) <= len("65535") for one in numbers):
        return f"{KEY}={given} is no port number. {advice}"
    first, last = int(numbers[0]), int(numbers[-1])
    if not 0 < first <= last <= _HIGHEST:
        return f"{KEY}={given} is not in 1 to {_HIGHEST}. {advice}"
    if not first <= SLURMCTLD_PORT <= last:
        message = f"leaves out {SLURMCTLD_PORT}, to which probes and Services of its pod lead"
        return f"{KEY}={given} {message}. {advice}"
    return ""
