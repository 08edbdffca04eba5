"""Which ordinals a NodeSet of a fixed size should have."""

from __future__ import annotations

from collections.abc import Collection


def wanted(replicas: int, kept: Collection[int]) -> tuple[int, ...]:
    """The ordinals of a NodeSet of that size: those kept, then the lowest free ones, sorted.

    Gaps that a scale-in left are filled before new numbers are used. More kept than replicas is
    the business of `scale_in_order`; then all kept ones are returned.
    """
    found = set(kept)
    number = 0
    while len(found) < replicas:
        found.add(number)
        number += 1
    return tuple(sorted(found))
