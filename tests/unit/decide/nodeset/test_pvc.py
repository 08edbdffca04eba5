"""Claims of worker pods: there before the pod, and who takes them along. Feature row 42, S050."""

from __future__ import annotations

from typing import Literal

import pytest

from penstock.api.cluster.marks import CORDONED_FOR
from penstock.api.kubernetes.kinds import PersistentVolumeClaim
from penstock.api.kubernetes.meta import ObjectMeta, OwnerReference
from penstock.api.slinky.labels import POD_CORDON
from penstock.api.slinky.nodeset import NodeSet, PvcRetentionPolicy
from penstock.decide.action import CreatePod, CreatePvcs, DeletePod, RemoveFinalizer, SetPvcOwners
from penstock.decide.nodeset.plan import Plan, plan
from penstock.slurm import state as model
from support.nodesets import NOW, known_nodes, node, nodeset, pod, view

TEMPLATE = {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
POD_OWNER = OwnerReference(api_version="v1", kind="Pod", name="compute-1", uid="uid-compute-1")
SET_OWNER = OwnerReference(
    api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="compute", uid="nodeset-uid"
)
FORMER_SET = OwnerReference(
    api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="compute", uid="former-uid"
)
GOING = {POD_CORDON: "true", CORDONED_FOR: "scale-in since 2026-01-01T00:00:00Z"}
DRAINED = model.Node(
    "compute-1",
    frozenset({"IDLE", "DRAIN"}),
    "slurm-operator: Pod (slurm/compute-1) is pending termination for scale-in",
)


Policy = Literal["Retain", "Delete"]


def claimed(
    replicas: int,
    *,
    deleted: Policy = "Retain",
    scaled: Policy = "Retain",
    deleted_at: float | None = None,
) -> NodeSet:
    policy = PvcRetentionPolicy(when_deleted=deleted, when_scaled=scaled)
    return nodeset(
        replicas,
        volume_claim_templates=(TEMPLATE,),
        persistent_volume_claim_retention_policy=policy,
        deleted=deleted_at,
    )


def claim(
    ordinal: int, *owners: OwnerReference, deleting: bool = False
) -> dict[str, PersistentVolumeClaim]:
    name = f"cache-compute-{ordinal}"
    meta = ObjectMeta(
        name=name,
        namespace="slurm",
        uid=f"uid-{name}",
        resource_version="5",
        owner_references=owners,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
    )
    return {name: PersistentVolumeClaim(metadata=meta)}


def owned(found: Plan) -> dict[str, list[str]]:
    return {
        one.name: [o.kind for o in one.owners]
        for one in found.actions
        if isinstance(one, SetPvcOwners)
    }


def shrinking(deleted: Policy, scaled: Policy, *owners: OwnerReference) -> Plan:
    """`compute-1` is drained and goes."""
    pods = (pod(0), pod(1, annotations=GOING))
    nodes = known_nodes(node(0), DRAINED)
    wanted = claimed(1, deleted=deleted, scaled=scaled)
    return plan(view(wanted, *pods, nodes=nodes, pvcs={**claim(0), **claim(1, *owners)}))


@pytest.mark.parametrize(
    ("deleted", "scaled", "owners"),
    [
        ("Retain", "Retain", {}),
        ("Retain", "Delete", {"cache-compute-1": ["Pod"]}),
        ("Delete", "Retain", {"cache-compute-0": ["NodeSet"], "cache-compute-1": ["NodeSet"]}),
        ("Delete", "Delete", {"cache-compute-0": ["NodeSet"], "cache-compute-1": ["Pod"]}),
    ],
)
def test_who_takes_a_claim_along_is_as_declared(
    deleted: Policy, scaled: Policy, owners: dict[str, list[str]]
):
    assert owned(shrinking(deleted, scaled)) == owners


def test_a_pod_is_not_deleted_before_its_claim_knows():
    waits = shrinking("Retain", "Delete")
    assert not [one for one in waits.actions if isinstance(one, DeletePod)]
    ready = shrinking("Retain", "Delete", POD_OWNER)
    assert [one.name for one in ready.actions if isinstance(one, DeletePod)] == ["compute-1"]


def test_a_claim_is_let_go_when_its_pod_stays_after_all():
    wanted = claimed(2, scaled="Delete")
    pods = (pod(0), pod(1, annotations=GOING))
    found = plan(view(wanted, *pods, pvcs={**claim(0), **claim(1, POD_OWNER)}))
    assert owned(found) == {"cache-compute-1": []}


def test_a_cordon_of_a_user_is_no_scale_in():
    """Upstream takes every cordoned pod for one that is scaled in, and its claim with it."""
    cordoned = pod(0, annotations={POD_CORDON: "true"})
    found = plan(view(claimed(1, scaled="Delete"), cordoned, pvcs=claim(0)))
    assert owned(found) == {}


def test_nor_is_the_deletion_of_the_nodeset():
    wanted = claimed(1, scaled="Delete", deleted_at=NOW)
    found = plan(view(wanted, pod(0), pvcs=claim(0)))
    assert owned(found) == {}


@pytest.mark.parametrize("deleted", ["Retain", "Delete"])
def test_a_claim_of_a_place_without_a_pod_is_let_go_once_claims_shall_stay(deleted: Policy):
    """Scale-in left it while `whenDeleted` was Delete."""
    found = plan(view(claimed(0, deleted=deleted), pvcs=claim(0, SET_OWNER)))
    assert owned(found) == ({} if deleted == "Delete" else {"cache-compute-0": []})


def test_a_nodeset_that_goes_lets_its_claims_go_before():
    """Its policy was changed, and it was deleted, while no operator ran."""
    wanted = claimed(0, deleted_at=NOW)
    found = plan(view(wanted, pvcs=claim(0, SET_OWNER)))
    assert owned(found) == {"cache-compute-0": []}
    assert not [one for one in found.actions if isinstance(one, RemoveFinalizer)]
    found = plan(view(wanted, pvcs=claim(0)))
    assert [one for one in found.actions if isinstance(one, RemoveFinalizer)]


@pytest.mark.parametrize("other", [POD_OWNER, FORMER_SET])
def test_a_claim_that_goes_with_somebody_else_is_left_alone(other: OwnerReference):
    assert owned(plan(view(claimed(0), pvcs=claim(0, other)))) == {}


def test_nobody_takes_a_claim_along_that_scale_in_has_left():
    assert owned(plan(view(claimed(0, deleted="Delete"), pvcs=claim(0)))) == {}


def test_owners_that_others_set_stay():
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="x")
    found = plan(view(claimed(1, deleted="Delete"), pod(0), pvcs=claim(0, other)))
    assert owned(found) == {"cache-compute-0": ["ConfigMap", "NodeSet"]}


def test_an_owner_of_another_group_stays_whatever_its_kind_is_called():
    other = OwnerReference(api_version="apps.example.org/v1", kind="NodeSet", name="x", uid="x")
    found = plan(view(claimed(1, deleted="Delete"), pod(0), pvcs=claim(0, other)))
    (own,) = (one for one in found.actions if isinstance(one, SetPvcOwners))
    assert [one.api_version for one in own.owners] == [
        "apps.example.org/v1",
        "slinky.slurm.net/v1beta1",
    ]


@pytest.mark.parametrize(
    "left", [claim(0, deleting=True), claim(0, POD_OWNER), claim(0, FORMER_SET)]
)
def test_no_pod_comes_to_a_claim_that_is_on_its_way_out(left: dict[str, PersistentVolumeClaim]):
    found = plan(view(claimed(1), pvcs=left))
    assert not [one for one in found.actions if isinstance(one, CreatePod)]
    assert "ClaimsTerminating" in [one.reason for one in found.findings]


def test_a_pod_that_waits_for_a_claim_which_somebody_deleted_gets_another():
    waits = pod(0, bound=False, phase="Pending", ready=False)
    found = plan(view(claimed(1), waits))
    assert [one.slot.ordinal for one in found.actions if isinstance(one, CreatePvcs)] == [0]
    runs = plan(view(claimed(1), pod(0)))
    assert not [one for one in runs.actions if isinstance(one, CreatePvcs)]
