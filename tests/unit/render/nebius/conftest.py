"""SlurmClusters of both shapes as the original's charts make them, with changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.translate.nebius.cluster import accounting_link
from support import nebius

Inputs = Callable[..., ConfigInputs]


def node_set(index: int, changes: dict[str, Any] | None = None) -> NodeSet:
    return cast("NodeSet", nebius.made(f"nodesets-5.0-{index}", changes))


@pytest.fixture
def current() -> Inputs:
    """Version 5.0, with NodeSets; keyword arguments are fields of ConfigInputs."""

    def made(changes: dict[str, Any] | None = None, **fields: Any) -> ConfigInputs:
        cluster = cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", changes))
        given: dict[str, Any] = {
            "node_sets": (node_set(0), node_set(1)),
            "prefix": "soperator-",
            "accounting": accounting_link(cluster),
            **fields,
        }
        return ConfigInputs(cluster=cluster, **given)

    return made


@pytest.fixture
def older() -> Inputs:
    """Version 1.23, with workers of its own; keyword arguments are fields of ConfigInputs."""

    def made(changes: dict[str, Any] | None = None, **fields: Any) -> ConfigInputs:
        cluster = cast("SlurmCluster", nebius.made("slurmcluster-1.23-0", changes))
        given: dict[str, Any] = {"accounting": accounting_link(cluster), **fields}
        return ConfigInputs(cluster=cluster, **given)

    return made
