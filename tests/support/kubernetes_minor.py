"""The minor version of Kubernetes that tests run on."""

from __future__ import annotations

from penstock.local import versions

MINOR = int(versions.kubernetes().split(".")[1])
"""35 is that of 1.35."""
