"""A stand-in for mariadb-operator: definitions of its kinds, and a real MariaDB for an object.

It does of mariadb-operator what slurmdbd depends on: a Secret for `generate`, a Service of the
name of the MariaDB, user and database, and the condition Ready. It runs no replicas.
"""

from __future__ import annotations

import json
import secrets

from e2e_kit import mariadb
from e2e_kit.api import Json
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite

GROUP = "k8s.mariadb.com"
KINDS = (("MariaDB", "mariadbs"), ("Grant", "grants"))


def definitions() -> list[Json]:
    """CustomResourceDefinitions that keep all fields."""
    schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [version],
            },
        }
        for kind, plural in KINDS
    ]


def install(site: Site) -> None:
    """Create the definitions."""
    site.apply(*definitions())


def remove(site: Site) -> None:
    """Delete the definitions, with all objects."""
    names = [f"{plural}.{GROUP}" for _, plural in KINDS]
    site.kubectl("delete", "crd", *names, "--ignore-not-found", "--wait=false")


def find(cluster: SlurmClusterSite, plural: str, name: str) -> Json | None:
    """An object of mariadb-operator."""
    listed = json.loads(cluster.kubectl("get", f"{plural}.{GROUP}", "-o", "json"))["items"]
    return next((one for one in listed if one["metadata"]["name"] == name), None)


def serve(cluster: SlurmClusterSite, name: str) -> Json:
    """Bring about the MariaDB and the Grant of a name; the spec of the former."""
    eventually("there is a Grant", lambda: find(cluster, "grants", name) is not None, 120)
    found = find(cluster, "mariadbs", name)
    assert found is not None
    spec: Json = found["spec"]
    ref, password = spec["passwordSecretKeyRef"], secrets.token_hex(8)
    assert ref["generate"] is True
    cluster.apply(mariadb.password(ref["name"], password))
    for one in mariadb.objects(
        None, {spec["database"]: password}, name=name, user=spec["username"]
    ):
        cluster.apply(one)
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "Running"}
    body = json.dumps({"status": {"conditions": [ready]}})
    for _, plural in KINDS:
        kind = f"{plural}.{GROUP}"
        cluster.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", body)
    return spec
