"""All kinds that the operator serves, of both groups."""

from __future__ import annotations

from penstock.api.penstock import partition
from penstock.api.slinky import group as kinds

KINDS = (*kinds.KINDS, partition.INFO)
