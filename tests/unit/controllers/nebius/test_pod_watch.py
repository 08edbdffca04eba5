"""Which changes of pods lead to a reconcile of their SlurmCluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.api.cluster.labels import APP_COMPONENT
from penstock.api.kubernetes.kinds import Pod, PodStatus
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.controllers.nebius.slurmcluster import pod_matters


def pod(component: str, phase: str = "Running", **changes: str) -> Pod:
    meta = ObjectMeta(name="x", labels={APP_COMPONENT: component}, annotations=changes)
    return Pod(metadata=meta, status=PodStatus(phase=phase))


@pytest.mark.parametrize("component", ["worker", "controller", "login", "populate-jail"])
def test_each_change_of_a_pod_of_the_cluster_itself_matters(component: str) -> None:
    assert pod_matters(pod(component), pod(component, mark="new"))


def test_of_a_worker_of_a_node_set_matters_that_it_exists_and_has_ended() -> None:
    """200 workers that become ready at once would else reconcile the whole cluster each time."""
    one = pod("nodeset")
    ready = replace(one, metadata=replace(one.metadata, resource_version="2"))
    assert not pod_matters(one, ready)
    assert pod_matters(None, one)
    assert pod_matters(one, None)
    assert pod_matters(one, pod("nodeset", "Succeeded"))
