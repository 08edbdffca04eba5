"""limits.conf of containers with processes of users. Source: limits.conf(5)."""

from __future__ import annotations

from typing import Final

_UNLIMITED: Final = "unlimited"
_WORKER: Final = {
    "core": _UNLIMITED,
    "data": _UNLIMITED,
    "fsize": _UNLIMITED,
    "sigpending": _UNLIMITED,
    "memlock": _UNLIMITED,
    "rss": _UNLIMITED,
    "nofile": "1048576",
    "msgqueue": _UNLIMITED,
    "rtprio": _UNLIMITED,
    "stack": _UNLIMITED,
    "cpu": _UNLIMITED,
    "nproc": _UNLIMITED,
    "as": _UNLIMITED,
    "locks": _UNLIMITED,
    "nice": "-20",
}
"""Limits of jobs: the container bounds them, not the session."""


def limits_conf(text: str, *, is_worker: bool) -> str:
    """The user's text; without one no limits of their own, and for workers the greatest."""
    if text.strip():
        return text
    if not is_worker:
        return "# No limits are declared.\n"
    lines = (
        f"* {kind} {item} {value}" for item, value in _WORKER.items() for kind in ("soft", "hard")
    )
    return "".join(f"{line}\n" for line in lines)
