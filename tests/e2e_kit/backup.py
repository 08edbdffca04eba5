"""A Backup and a Restore of a SlurmCluster, and the files by which they are compared."""

from __future__ import annotations

import json
from typing import Any

from e2e_kit.api import Json
from e2e_kit.slurmcluster import SlurmClusterSite

API = "penstock.dev/v1alpha1"
BACKUP, RESTORE = "nightly", "back"
REPOSITORY: Json = {
    "pvc": {"claimName": "backups", "path": "jail"},
    "passwordSecretRef": {"name": "backup-password", "key": "password"},
}
BESIDE: tuple[Json, ...] = (
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "backups"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "2Gi"}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "backup-password"},
        "stringData": {"password": "of this test"},
    },
)
FILES = """
set -e
useradd -m -s /bin/bash carol
cd /home/carol
mkdir -p shared/deep
echo one >shared/one
ln shared/one shared/deep/same
ln -s ../one shared/deep/link
mkfifo shared/queue
truncate -s 8M shared/sparse
chown -R carol:carol shared
chmod 4750 shared/one
chmod 3770 shared
setfacl -m u:slurm:rx,d:u:slurm:rwx shared
setfattr -n user.note -v kept shared/one
"""
"""Run as root in a session."""
LIST = """
cd /
find home root etc/passwd etc/shadow usr/bin -xdev -printf '%p %y %U %G %m %n %s %T@ %l\\n' | sort
getfacl -Rpn /home/carol
getfattr -d -m - -R /home/carol
find /home/carol -samefile /home/carol/shared/one | sort
getcap -r /usr/bin 2>/dev/null || true
find home usr/bin -xdev -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
"""
"""Owners, modes, links, times, ACLs, attributes and content of files in the jail."""


def back_up(cluster: SlurmClusterSite, image: str, *, name: str = BACKUP, **more: Any) -> None:
    """Create a Backup that is made once."""
    for one in BESIDE:
        cluster.apply(one)
    spec: Json = {
        "clusterRef": {"name": cluster.name},
        "repository": REPOSITORY,
        "retention": {"keepLast": 2},
        "image": image,
        **more,
    }
    cluster.apply(_object("Backup", name, spec))


def restore(
    cluster: SlurmClusterSite, image: str, *, name: str = RESTORE, of: str = BACKUP, **more: Any
) -> None:
    """Create a Restore of that Backup, or change it."""
    spec: Json = {"backupRef": {"name": of}, "image": image, **more}
    cluster.apply(_object("Restore", name, spec))


def status(cluster: SlurmClusterSite, kind: str, name: str) -> Json:
    """The status of one of them."""
    found: Json = json.loads(cluster.kubectl("get", kind, name, "-o", "json"))
    return found.get("status", {})


def reason(cluster: SlurmClusterSite, kind: str, name: str) -> str:
    """The reason of its condition Ready."""
    found: list[Json] = status(cluster, kind, name).get("conditions", [])
    return next((one["reason"] for one in found if one["type"] == "Ready"), "")


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
