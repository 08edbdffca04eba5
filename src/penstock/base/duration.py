"""Durations as Go writes them, which Kubernetes' API takes for `metav1.Duration`."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Seconds of `1h30m`, `90s`, `0`; raises ValueError for anything else."""
    body = text[1:] if text[:1] in ("-", "+") else text
    sign = -1.0 if text.startswith("-") else 1.0
    if body == "0":
        return 0.0
    parts = list(_PART.finditer(body))
    if not parts or "".join(part.group() for part in parts) != body:
        raise ValueError(f"not a duration such as 1h30m: {text[:60]!r}")
    return sign * sum(float(part.group(1)) * _SECONDS[part.group(2)] for part in parts)
