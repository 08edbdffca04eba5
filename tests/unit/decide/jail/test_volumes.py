"""PVCs that a SlurmCluster names, and the access modes of its jail. S009."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import conditions
from penstock.decide.jail.volumes import JAIL_SHARED, NamedPvc, findings

FIELD = "spec.volumeSources[0].persistentVolumeClaim.claimName"


def pvc(*modes: str, is_jail: bool = True, exists: bool = True) -> NamedPvc:
    return NamedPvc(FIELD, "jail-pvc", "ml", is_jail, modes if exists else None)


def test_an_absent_pvc_is_named_with_its_field_and_namespace() -> None:
    (found,) = findings([pvc(exists=False), pvc("ReadWriteOnce", is_jail=False)], ())
    assert (found.ok, found.reason) == (False, "PvcNotFound")
    assert found.message == (
        f"{FIELD}: PVC jail-pvc does not exist in namespace ml. Create it; pods that mount it wait "
        "until then"
    )


def test_a_jail_of_one_node_is_reported_and_the_cluster_is_ready() -> None:
    (found,) = findings([pvc("ReadWriteOnce")], ())
    shown = {one.type: one for one in conditions([found])}
    assert shown["Ready"].status == "True"
    assert (shown[JAIL_SHARED].status, shown[JAIL_SHARED].reason) == ("False", "NotReadWriteMany")
    assert "PVC jail-pvc has ReadWriteOnce" in shown[JAIL_SHARED].message


def test_the_condition_is_true_once_another_pvc_is_named_and_else_absent() -> None:
    old = conditions(list(findings([pvc("ReadWriteOnce")], ())))
    (found,) = findings([pvc("ReadWriteOnce", "ReadWriteMany")], old)
    assert (found.type, found.ok) == (JAIL_SHARED, True)
    assert list(findings([pvc("ReadWriteMany")], ())) == []


def test_modes_that_are_not_known_are_no_fault() -> None:
    assert list(findings([pvc()], ())) == []
