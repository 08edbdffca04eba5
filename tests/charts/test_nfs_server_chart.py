"""The chart `nfs-server`: a server on a ReadWriteOnce PVC, and a ReadWriteMany PVC of it.

S178, without a class of ReadWriteMany.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.local import images
from support.charts import REGISTRY, leaves, put, rejection, render, schema

# The first test that needs Helm compiles it.
pytestmark = pytest.mark.timeout(1800)

CHART = "nfs-server"
NEEDED: Json = {"service": {"clusterIP": "10.96.0.77"}}
SERVER = "StatefulSet jail-nfs"


def chart(given: Json | None = None) -> dict[str, Json]:
    return render({**NEEDED, **(given or {})}, chart=CHART, release="jail-nfs", namespace="ml")


def pod(given: Json | None = None) -> Json:
    return chart(given)[SERVER]["spec"]["template"]["spec"]


def test_a_pvc_of_read_write_many_leads_to_the_server_alone() -> None:
    found = chart()
    volume, pvc = found["PersistentVolume ml-jail-nfs"], found["PersistentVolumeClaim jail-pvc"]
    assert volume["spec"]["nfs"] == {"server": "10.96.0.77", "path": "/export"}
    assert volume["spec"]["claimRef"]["namespace"] == pvc["metadata"]["namespace"] == "ml"
    assert volume["spec"]["claimRef"]["name"] == "jail-pvc"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert pvc["spec"]["volumeName"] == volume["metadata"]["name"]
    for one in (volume["spec"], pvc["spec"]):
        assert (one["accessModes"], one["storageClassName"]) == (["ReadWriteMany"], "")
    assert found["Service jail-nfs"]["spec"]["clusterIP"] == "10.96.0.77"


def test_its_files_are_on_a_pvc_that_outlives_the_release() -> None:
    spec: Json = chart()[SERVER]["spec"]
    (template,) = spec["volumeClaimTemplates"]
    assert template["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "persistentVolumeClaimRetentionPolicy" not in spec
    (server,) = spec["template"]["spec"]["containers"]
    paths = {one["mountPath"]: one.get("subPath") for one in server["volumeMounts"]}
    assert paths["/export"] != paths["/var/lib/nfs/ganesha"]
    given: Json = {"storage": {"existingClaim": "disk"}}
    assert "volumeClaimTemplates" not in chart(given)[SERVER]["spec"]
    own = {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}
    assert own in pod(given)["volumes"]


def test_it_opens_files_by_their_handles_without_being_privileged() -> None:
    (server,) = pod()["containers"]
    security = server["securityContext"]
    assert "privileged" not in security
    assert security["capabilities"]["drop"] == ["ALL"]
    assert "DAC_READ_SEARCH" in security["capabilities"]["add"]


def test_its_image_has_the_name_under_which_it_is_pushed() -> None:
    (server,) = pod()["containers"]
    assert server["image"] in images.names(REGISTRY, jail=True)


def test_a_changed_export_restarts_the_server() -> None:
    nodes = {"nfs": {"permitted": ["192.0.2.0/24"]}}
    templates = [chart(given)[SERVER]["spec"]["template"] for given in (nodes, {})]
    assert templates[0] != templates[1]
    (conf,) = chart(nodes)["ConfigMap jail-nfs"]["data"].values()
    assert "Clients = 127.0.0.0/8, 192.0.2.0/24;" in conf


def test_with_csi_driver_nfs_no_address_is_needed() -> None:
    found = chart({"service": {}, "volume": {"csi": True}})
    csi: Json = found["PersistentVolume ml-jail-nfs"]["spec"]["csi"]
    assert csi["driver"] == "nfs.csi.k8s.io"
    assert csi["volumeAttributes"]["server"] == "jail-nfs.ml.svc.cluster.local"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "service.clusterIP: write a free address"),
        ({**NEEDED, "nfs": {"permitted": []}}, "permitted"),
        ({**NEEDED, "global": {}}, "image: name an image, or set global.imageRegistry"),
        ({**NEEDED, "size": "1Gi"}, "size"),
        ({"service": {"port": 12049}, "volume": {"csi": True}}, "mounts by port 2049"),
    ],
)
def test_values_that_cannot_work_are_named(given: Json, words: str) -> None:
    assert words in rejection(given, chart=CHART)


OTHER: dict[str, Any] = {
    "global.imagePullSecrets": ["login"],
    "imagePullPolicy": "Always",
    "imagePullSecrets": ["login"],
    "storage.accessMode": "ReadWriteOncePod",
    "volume.enabled": False,
    "volume.csi": True,
    "volume.mountOptions": ["soft"],
    "nfs.permitted": ["192.0.2.1"],
    "nfs.leaseTime": 7,
    "nfs.graceTime": 8,
    "service.port": 12049,
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"nodeAffinity": {}},
    "tolerations": [{"operator": "Exists"}],
    "resources": {"requests": {"cpu": "1"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
}
"""Values for keys that do not take any text."""


def test_every_key_of_the_schema_changes_an_object() -> None:
    base: Json = {**NEEDED, "global": {"imageRegistry": REGISTRY}}
    by_name: Json = {**base, "service": {}, "volume": {"csi": True}}
    whole = schema(CHART)
    for leaf in leaves(whole, whole):
        name = str(leaf)
        before = by_name if name == "kubernetesClusterDomain" else base
        after = put(before, leaf.path, OTHER.get(name, "r.example.com/x"))
        assert chart(after) != chart(before), name
