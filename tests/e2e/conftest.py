"""The cluster that the end-to-end tests share: one node, one operator, a namespace for each test.

`PENSTOCK_E2E_NODE=name` takes the built-in node of that name as it is, with the operator that is
there (`penstock demo up` leaves one called `penstock`), for work on tests.
"""

import os
import secrets
from collections.abc import Callable, Generator

import pytest

from e2e_kit.cluster import Cluster
from e2e_kit.site import Site
from penstock.local.node import Node


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Site:
    name = os.environ.get("PENSTOCK_E2E_NODE")
    if name:
        return Site(Node(name))
    node: Node = request.getfixturevalue("kube_node")
    site = Site(node)
    site.install()
    return site


@pytest.fixture(scope="module")
def clusters(site: Site) -> Generator[Callable[[str], Cluster]]:
    """Clusters of a module, each in a namespace of its own, removed at the end."""
    made: list[Cluster] = []

    def make(name: str) -> Cluster:
        cluster = Cluster(site, f"{name}-{secrets.token_hex(2)}")
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.remove()
