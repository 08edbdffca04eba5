"""Workers with a root of their own: volumes, the container that fills it, and its keeper."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from support.nebius_clusters import CLAIM, CURRENT, OLDER, SHAPES, of_shape, per_worker

WORKER = "spec.slurmNodes.worker"
SHARED = "penstock-shared-jail"
SUB = [
    {"name": "data", "mountPath": "/data", "subPath": "data", "volumeSourceName": "jail"},
    {"name": "own-home", "mountPath": "/home", "volumeSourceName": "controller-spool"},
    {"name": "job", "mountPath": "/job", "subPath": "${SLURM_JOB_ID}", "volumeSourceName": "jail"},
]


def containers(pod: Json) -> dict[str, Json]:
    spec = pod["spec"]
    return {one["name"]: one for one in (*spec["initContainers"], *spec["containers"])}


def mounts(container: Json) -> dict[str, tuple[Any, ...]]:
    return {
        one["mountPath"]: (one["name"], one.get("subPath"), one.get("readOnly", False))
        for one in container["volumeMounts"]
    }


def volume(pod: Json, name: str) -> Json:
    return next(one for one in pod["spec"]["volumes"] if one["name"] == name)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_worker_has_a_pvc_named_as_its_others(shape: str):
    """S177."""
    found = per_worker(shape)
    pvc = next(one for one in found.pvcs() if one["metadata"]["name"].startswith("jail-"))
    name = found.workers[0].names.pod(1)
    assert pvc["metadata"]["name"] == f"jail-{name}"
    assert pvc["spec"] == CLAIM
    assert volume(found.pod(), "jail")["persistentVolumeClaim"] == {"claimName": f"jail-{name}"}
    assert "jail" in found.workers[0].pvcs.templates
    policy = of_shape(shape).workers[0].pvcs
    kept = found.workers[0].pvcs
    assert (kept.when_deleted, kept.when_scaled) == (policy.when_deleted, policy.when_scaled)


@pytest.mark.parametrize("shape", SHAPES)
def test_home_and_configuration_are_those_of_the_shared_jail(shape: str):
    found = mounts(containers(per_worker(shape).pod())["slurmd"])
    assert found["/mnt/jail"] == ("jail", None, False)
    assert found["/mnt/jail.upper/home"] == (SHARED, "home", False)
    assert found["/mnt/jail/etc/slurm"] == (SHARED, "etc/slurm", True)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_root_is_filled_and_has_its_users_before_slurmd_starts(shape: str):
    pod = per_worker(shape).pod()
    names = [one["name"] for one in pod["spec"]["initContainers"]]
    assert names[-3:] == ["populate-jail", "jail-root", "munge"]
    by_name = containers(pod)
    fill, keep = by_name["populate-jail"], by_name["jail-root"]
    assert "restartPolicy" not in fill
    etc = (SHARED, "etc", True)
    assert mounts(fill) == {"/mnt/jail": ("jail", None, False), "/mnt/jail.shared": etc}
    assert mounts(keep) == mounts(fill)
    assert fill["env"] == [{"name": "FOLLOW", "value": "/mnt/jail.shared/soperator-jail-populated"}]
    assert (keep["restartPolicy"], keep["image"]) == ("Always", by_name["slurmd"]["image"])
    assert keep["startupProbe"]["exec"]["command"] == ["test", "-e", "/run/jail-root-ready"]


def test_the_image_that_fills_the_root_has_its_secrets_and_snapshot():
    given = {
        "spec.populateJail.imagePullSecrets": [{"name": "registry"}],
        "spec.populateJail.jailSnapshotVolume": {"volumeSourceName": "controller-spool"},
    }
    pod = per_worker(OLDER, given).pod()
    assert {"name": "registry"} in pod["spec"]["imagePullSecrets"]
    assert mounts(containers(pod)["populate-jail"])["/jail"][0] == "jail-snapshot"
    assert volume(pod, "jail-snapshot")


def test_a_new_image_for_filling_replaces_no_worker():
    """As with the Job of the shared jail: a filled root stays as it is."""
    other = per_worker(OLDER, {"spec.populateJail.image": "another"})
    assert other.revision_hash() == per_worker(OLDER).revision_hash()


def test_sub_mounts_are_of_the_shared_volume_or_of_others():
    pod = per_worker(OLDER, {f"{WORKER}.volumes.jailSubMounts": SUB}).pod()
    slurmd = containers(pod)["slurmd"]
    found = mounts(slurmd)
    assert found["/mnt/jail.upper/data"] == (SHARED, "data", False)
    assert found["/mnt/jail.upper/home"][0] == "own-home"
    assert found[f"/mnt/jail.jobs/{SHARED}"] == (SHARED, None, False)
    variables = {one["name"]: one.get("value", "") for one in slurmd["env"]}
    assert variables["PENSTOCK_JOB_MOUNTS"].startswith(f"/mnt/jail.jobs/{SHARED}\t")
    claims = [
        one["persistentVolumeClaim"]["claimName"]
        for one in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in one
    ]
    assert len(claims) == len(set(claims))


@pytest.mark.parametrize("shape", SHAPES)
def test_logins_slurmctld_and_the_job_are_as_with_a_shared_jail(shape: str):
    def others(found: Any) -> list[Json]:
        return [
            one for one in found.objects() if one["kind"] in ("StatefulSet", "Deployment", "Job")
        ]

    assert others(per_worker(shape)) == others(of_shape(shape))


def test_a_shared_jail_has_no_container_for_roots():
    assert not {"populate-jail", "jail-root"} & containers(of_shape(CURRENT).pod()).keys()
