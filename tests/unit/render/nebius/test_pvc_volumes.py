"""One volume for each PVC of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.render.nebius.pvc_volumes import merge_pvcs
from support.nebius_clusters import CURRENT, OLDER, of_shape

VOLUMES = "spec.slurmd.volumes"
JAIL = {"persistentVolumeClaim": {"claimName": "jail-pvc"}}
DATA = {"persistentVolumeClaim": {"claimName": "data"}}


def pvc_volume(name: str, of: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": of, **more}}


def pvcs_of(spec: dict[str, Any]) -> list[str]:
    found = (one.get("persistentVolumeClaim", {}).get("claimName") for one in spec["volumes"])
    return [one for one in found if one]


def test_two_sub_mounts_of_one_pvc_are_of_one_volume():
    """S108."""
    mounts = [
        {"name": "first", "mountPath": "/a", "subPath": "a", "volumeSource": DATA},
        {"name": "second", "mountPath": "/b", "subPath": "b", "volumeSource": DATA},
        {"name": "third", "mountPath": "/c", "volumeSource": JAIL},
    ]
    changes = {f"{VOLUMES}.jail": JAIL, f"{VOLUMES}.jailSubMounts": mounts}
    spec = of_shape(CURRENT, node_set=changes).pod()["spec"]
    assert sorted(pvcs_of(spec)) == sorted(set(pvcs_of(spec)))
    found = {
        one["mountPath"]: (one["name"], one.get("subPath"))
        for one in spec["containers"][0]["volumeMounts"]
    }
    upper = "/mnt/jail.upper"
    assert found[f"{upper}/a"] == ("first", "a")
    assert found[f"{upper}/b"] == ("first", "b")
    assert found[f"{upper}/c"] == ("jail", None)


def test_a_login_has_one_volume_for_each_pvc():
    mounts = [
        {"name": name, "mountPath": f"/{name}", "volumeSourceName": "jail"} for name in ("a", "b")
    ]
    changes = {"spec.slurmNodes.login.volumes.jailSubMounts": mounts}
    found = of_shape(OLDER, changes).find("StatefulSet", "login")["spec"]["template"]["spec"]
    assert sorted(pvcs_of(found)) == sorted(set(pvcs_of(found)))


@pytest.mark.parametrize("first", ["ro", "rw"])
def test_a_merged_volume_is_writable_where_one_was(first: str):
    volumes = [pvc_volume("ro", "c", readOnly=True), pvc_volume("rw", "c")]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("ro", "rw")]
    spec = {
        "volumes": volumes if first == "ro" else volumes[::-1],
        "initContainers": [{"name": "i", "volumeMounts": mounts[:1]}],
        "containers": [{"name": "c", "volumeMounts": mounts}],
    }
    found = merge_pvcs(spec)
    assert found["volumes"] == [pvc_volume(first, "c")]
    read_only = {"name": first, "mountPath": "/ro", "readOnly": True}
    assert found["initContainers"][0]["volumeMounts"] == [read_only]
    assert found["containers"][0]["volumeMounts"] == [
        read_only,
        {"name": first, "mountPath": "/rw"},
    ]


def test_a_pod_whose_pvcs_differ_stays_as_it_is():
    spec = {
        "volumes": [pvc_volume("a", "a"), pvc_volume("b", "b", readOnly=True)],
        "containers": [],
    }
    assert merge_pvcs(spec) is spec


def test_volumes_that_are_all_read_only_stay_read_only():
    spec = {
        "volumes": [pvc_volume("a", "c", readOnly=True), pvc_volume("b", "c", readOnly=True)],
        "containers": [{"name": "c", "volumeMounts": [{"name": "b", "mountPath": "/b"}]}],
    }
    found = merge_pvcs(spec)
    assert found["volumes"] == [pvc_volume("a", "c", readOnly=True)]
    assert found["containers"][0]["volumeMounts"] == [{"name": "a", "mountPath": "/b"}]
