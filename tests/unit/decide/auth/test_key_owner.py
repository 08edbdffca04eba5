"""Secrets of generated keys, by whose they are."""

from __future__ import annotations

from typing import Final

import pytest

from penstock.api.cluster.labels import labels
from penstock.api.kubernetes.meta import ObjectMeta, OwnerReference
from penstock.catalog.reasons.keys import KeyReason
from penstock.decide.auth.key_owner import CONTROLLER, SLURM_CLUSTER, foreign_key

OF: Final = ObjectMeta(name="slurm", namespace="slurm", uid="own")
GROUPS: Final = {CONTROLLER: "slinky.slurm.net/v1beta1", SLURM_CLUSTER: "slurm.nebius.ai/v1"}


def owned(kind: str, name: str = "slurm", uid: str = "other", group: str = "") -> ObjectMeta:
    owner = OwnerReference(
        api_version=group or GROUPS[kind], kind=kind, name=name, uid=uid, controller=True
    )
    return ObjectMeta(name="slurm-auth-slurm", owner_references=(owner,))


@pytest.mark.parametrize(
    "secret",
    [
        ObjectMeta(name="slurm-auth-slurm"),
        owned(CONTROLLER, uid="own"),
        owned("ExternalSecret", group="external-secrets.io/v1"),
        owned(CONTROLLER, group="example.org/v1"),
        ObjectMeta(name="slurm-auth-slurm", labels=labels("slurmctld", "slurm")),
    ],
)
def test_a_controller_uses_its_own_secret_and_one_of_the_user(secret: ObjectMeta) -> None:
    assert foreign_key(secret, CONTROLLER, OF, "") is None


@pytest.mark.parametrize(
    ("secret", "kind", "owner"),
    [
        (owned(SLURM_CLUSTER), CONTROLLER, "SlurmCluster slurm"),
        (owned(CONTROLLER), SLURM_CLUSTER, "Controller slurm"),
        (owned(SLURM_CLUSTER, "blue"), SLURM_CLUSTER, "SlurmCluster blue"),
        (
            ObjectMeta(name="slurm-auth-slurm", labels=labels("slurmctld", "slurm")),
            SLURM_CLUSTER,
            "Controller slurm",
        ),
    ],
)
def test_the_key_of_another_cluster_is_named_with_its_owner(
    secret: ObjectMeta, kind: str, owner: str
) -> None:
    found = foreign_key(secret, kind, OF, "Choose another name")
    assert found is not None
    assert (found.ok, found.reason) == (False, KeyReason.OF_OTHER_CLUSTER)
    assert found.message == (
        f"Secret slurm-auth-slurm was generated for {owner}, whose key stays its own. Choose "
        "another name"
    )


@pytest.mark.parametrize("kind", [CONTROLLER, SLURM_CLUSTER])
def test_the_key_of_a_deleted_cluster_of_the_same_name_is_waited_out(kind: str) -> None:
    """The garbage collector deletes it soon, and with it the key that pods would begin with."""
    found = foreign_key(owned(kind), kind, OF, "")
    assert found is not None
    assert (found.ok, found.reason) == (None, KeyReason.CREATING)
