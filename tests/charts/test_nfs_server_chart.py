"""The chart `nfs-server`: a server on a ReadWriteOnce PVC, and a ReadWriteMany PVC of it.

S178, without a class of ReadWriteMany.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.local import images
from penstock.local.charts import CHARTS, helm, objects
from penstock.local.errors import LocalError
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


_GROUPS: Json = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
_KINDS = {
    "/api/v1": ("v1", "PersistentVolume", "persistentvolumes", False),
    "/apis/apps/v1": ("apps/v1", "StatefulSet", "statefulsets", True),
}


@contextmanager
def api_server(live: Mapping[str, Json]) -> Generator[str]:
    """Address of an API server that has these objects, by path."""
    found: dict[str, Json] = {"/apis": _GROUPS, **live}
    for path, (version, kind, plural, namespaced) in _KINDS.items():
        one = {"name": plural, "kind": kind, "namespaced": namespaced, "verbs": ["get"]}
        found[path] = {"kind": "APIResourceList", "groupVersion": version, "resources": [one]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            missing: Json = {"kind": "Status", "apiVersion": "v1", "code": 404}
            one = found.get(self.path.partition("?")[0])
            body = json.dumps(one or {**missing, "reason": "NotFound"}).encode()
            self.send_response(200 if one else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            del code, size

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def upgraded(live: Mapping[str, Json], folder: Path, **given: Any) -> list[Any]:
    """The objects where these live in the cluster."""
    values = json.dumps({"global": {"imageRegistry": REGISTRY}, **NEEDED, **given})
    with api_server(live) as address:
        text = helm(
            *("template", "jail-nfs", str(CHARTS / CHART), "--namespace", "ml", "--values", "-"),
            *("--dry-run=server", "--kube-apiserver", address),
            stdin=values,
            environment={"HOME": str(folder)},
        )
    return objects(text)


def volume(phase: str) -> Mapping[str, Json]:
    one: Json = {"apiVersion": "v1", "kind": "PersistentVolume", "status": {"phase": phase}}
    return {"/api/v1/persistentvolumes/ml-jail-nfs": one}


def test_the_volume_of_a_deleted_pvc_is_named_with_its_cure(tmp_path: Path) -> None:
    """It outlives its namespace, and a new PVC would wait for it for ever."""
    assert upgraded({}, tmp_path) == upgraded(volume("Bound"), tmp_path)
    with pytest.raises(LocalError, match="run `kubectl delete pv ml-jail-nfs`, which deletes no"):
        upgraded(volume("Released"), tmp_path)


def test_a_changed_size_is_rejected_before_anything_changes(tmp_path: Path) -> None:
    template: Json = {
        "metadata": {"name": "data"},
        "spec": {"resources": {"requests": {"storage": "100Gi"}}},
    }
    one: Json = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {"volumeClaimTemplates": [template]},
    }
    live: dict[str, Json] = {"/apis/apps/v1/namespaces/ml/statefulsets/jail-nfs": one}
    assert upgraded(live, tmp_path) == upgraded({}, tmp_path)
    # The API server changes the unit to the largest one.
    assert upgraded(live, tmp_path, storage={"size": "102400Mi"})
    with pytest.raises(LocalError, match=r"storage\.size: it is 100Gi and cannot change") as found:
        upgraded(live, tmp_path, storage={"size": "200Gi"})
    assert "enlarge PVC data-jail-nfs-0 itself" in str(found.value)


def test_another_port_is_an_option_of_the_mount_also_alone() -> None:
    given: Json = {"service": {**NEEDED["service"], "port": 12049}, "volume": {"mountOptions": []}}
    assert chart(given)["PersistentVolume ml-jail-nfs"]["spec"]["mountOptions"] == ["port=12049"]


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
