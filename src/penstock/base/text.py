"""Short lists in messages: enough to act on, never a wall of text."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 5
"""Number of objects that a message names."""


def list_some(parts: Sequence[str], separator: str = ", ") -> str:
    """The first few parts, and how many more there are."""
    shown = separator.join(parts[:SHOWN])
    rest = len(parts) - SHOWN
    return f"{shown}{separator.rstrip()} and {rest} more" if rest > 0 else shown
