"""The API groups that a process leads, as an administrator names them."""

from __future__ import annotations

from typing import Final

SLINKY: Final = "slinky.slurm.net"
NEBIUS: Final = "slurm.nebius.ai"
APIS: Final = (SLINKY, NEBIUS)
"""Groups in which clusters are declared. A process leads one of them, or both."""
SHARED: Final = "penstock.dev"
"""The group whose kinds belong to a cluster of either; it is served beside each."""
VARIABLE: Final = "PENSTOCK_APIS"


def parse_apis(text: str) -> tuple[str, ...]:
    """The groups of a comma-separated list, in the order of APIS. Raises ValueError."""
    named = {word.strip() for word in text.split(",")} - {"", SHARED}
    unknown = sorted(named.difference(APIS))
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no API group of clusters: name {' or '.join(APIS)}, or both "
            "with a comma"
        )
    if not named:
        raise ValueError(
            f"{text!r} names no API group of clusters: name {' or '.join(APIS)}, or both with a "
            f"comma ({SHARED} is served beside either)"
        )
    return tuple(one for one in APIS if one in named)
