"""A changed claim template of a StatefulSet that is there: told, and nothing else waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from fault_plans.world import GROUP
from penstock.api.kubernetes.meta import Json
from penstock.controllers.cluster.claim_templates import keep
from unit.controllers.slinky.test_accounting import Lab, played


def workload(*templates: Json) -> Json:
    return {"spec": {"replicas": 1, "volumeClaimTemplates": list(templates)}}


def template(**spec: Any) -> Json:
    usual = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}}
    return {"metadata": {"name": "statesave"}, "spec": {**usual, **spec}}


def storage(size: str) -> Json:
    return {"resources": {"requests": {"storage": size}}}


@pytest.mark.parametrize(
    "live",
    [None, workload(template(volumeMode="Filesystem")), workload(template(**storage("4096Mi")))],
)
@pytest.mark.parametrize("modes", [["ReadWriteOnce"], ("ReadWriteOnce",)])
def test_what_means_the_same_is_asked_for_as_it_is_declared(live: Json | None, modes: Any) -> None:
    asked = workload(template(accessModes=modes))
    assert keep(asked, live) == (asked, [])


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        (template(**storage("8Gi")), "statesave.resources.requests.storage"),
        (template(storageClassName="fast"), "statesave.storageClassName"),
        (template(accessModes=["ReadWriteMany"]), "statesave.accessModes"),
        (template(accessModes=("ReadWriteOnce", "ReadOnlyMany")), "statesave.accessModes"),
    ],
)
def test_another_claim_is_told_and_the_one_that_is_there_kept(asked: Json, path: str) -> None:
    live = workload(template(volumeMode="Filesystem"))
    manifest, (finding,) = keep(workload(asked), live)
    assert manifest == workload(template(volumeMode="Filesystem"))
    assert (finding.ok, finding.reason) == (True, "ClaimKept")
    assert f"({path})" in finding.message


def test_a_claim_that_is_there_no_more_in_words_stays() -> None:
    manifest, (finding,) = keep({"spec": {"replicas": 1}}, workload(template()))
    assert manifest == workload(template())
    assert "(statesave)" in finding.message


def test_labels_of_another_version_stay_as_kubernetes_changes_no_template() -> None:
    live = workload(labelled(release="1"))
    assert keep(workload(labelled(release="2")), live) == (live, [])


def labelled(**labels: str) -> Json:
    made = template()
    return {**made, "metadata": {**made["metadata"], "labels": labels}}


def test_pods_stay_while_the_stateful_set_lacks_a_pvc_that_they_are_to_mount() -> None:
    """A pod that mounts it could not be created, and the one that works would be deleted for it."""
    live = workload(template())
    live["metadata"], live["spec"]["template"] = {"name": "login"}, {"old": True}
    asked = workload(template(), {"metadata": {"name": "data"}, "spec": {}})
    asked["spec"]["template"] = {"new": True}
    manifest, (finding,) = keep(asked, live, "spec.slurmNodes.login.volumes")
    assert manifest["spec"] == live["spec"]
    assert (finding.ok, finding.reason) == (False, "ClaimTemplateMissing")
    assert finding.message.startswith("spec.slurmNodes.login.volumes: StatefulSet login lacks")
    words = "kubectl delete statefulset login --cascade=orphan --wait=false; the operator"
    assert words in finding.message


def test_a_larger_claim_is_told_and_the_rest_of_the_declaration_acts() -> None:
    async def play(lab: Lab) -> None:
        await lab.ready("controllers", "slurm")
        larger = {"enabled": True, **storage("8Gi")}
        spec = {"persistence": larger, "extraConf": "MinJobAge=3\n"}
        lab.patch(f"{GROUP}/controllers/slurm", {"spec": spec})
        await lab.until(lambda: "MinJobAge=3\n" in lab.slurm_conf())
        await lab.until(lambda: "the PVC stays" in lab.says("controllers", "slurm")[2])
        await lab.ready("controllers", "slurm")
        found = lab.world.find("apps/statefulsets", "slurm-controller")
        assert found is not None
        (claim,) = found["spec"]["volumeClaimTemplates"]
        assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"

    played(play)
