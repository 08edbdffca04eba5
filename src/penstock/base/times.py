"""RFC 3339 times, as Kubernetes writes them, from and to Unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: str | None) -> float | None:
    """Unix seconds of an RFC 3339 time, None for none or for what is no such time."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()


def write(seconds: float) -> str:
    """RFC 3339 in UTC with whole seconds, as `metav1.Time` does."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
