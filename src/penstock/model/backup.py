"""The program that copies parts of a cluster to a repository, or puts them back."""

from __future__ import annotations

from typing import Final

UNCHANGED: Final = 3
"""Its exit status when a restore failed before it changed anything: it is not repeated."""
