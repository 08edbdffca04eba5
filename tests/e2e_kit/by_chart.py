"""The operator by its chart, in the place of the one that a node's tests share."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from e2e_kit import manifests
from e2e_kit.api import Json
from e2e_kit.site import OPERATOR, Site
from penstock.local import install
from penstock.local.errors import LocalError
from support.release import Release

CHART = "slurm-operator"


@contextmanager
def operator(site: Site, namespace: str, values: Mapping[str, Any]) -> Generator[Release]:
    """`helm install` of the operator with the node's images and these values.

    The other operator has no pod meanwhile, and one that is ready afterwards.
    """
    release = Release(site.node, CHART, namespace)
    scale = ("-n", install.SYSTEM, "scale", f"deployment/{OPERATOR}")
    site.kubectl(*scale, "--replicas=0")
    try:
        install_operator(site, release, values)
        yield release
    finally:
        release.uninstall()
        site.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
        site.kubectl(*scale, "--replicas=1")
        site.operator_pod()


def install_operator(site: Site, release: Release, values: Mapping[str, Any]) -> None:
    """`helm install`, and wait until the operator is available."""
    started = time.monotonic()
    repository, _, tag = site.images.operator.rpartition(":")
    image = {"repository": repository, "tag": tag}
    own = {"operator": {"image": image, "slurmImage": site.images.slurm}}
    release.install({**own, **values}, CHART)
    rollout = ("rollout", "status", f"deployment/{CHART}", "--timeout=120s")
    site.kubectl("-n", release.namespace, *rollout)
    print(f"\noperator available {time.monotonic() - started:.1f} s after helm install")


_ROLES = ("slurmctld", "slurmrestd", "slurmd")


def cluster_values(site: Site, replicas: int = 2) -> Json:
    """Values of the chart `slurm`: a cluster of the node's images, for cgroups of version 1."""
    roles = {role: {"image": site.images.slurm.replace("{role}", role)} for role in _ROLES}
    own: Json = {"image": ""}
    return {
        "clusterName": "charts",
        "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        "controller": {
            "slurmctld": roles["slurmctld"],
            "reconfigure": own,
            "logfile": own,
            "persistence": {"enabled": False},
            "extraConf": manifests.EXTRA_CONF,
        },
        "restapi": {"slurmrestd": roles["slurmrestd"]},
        "nodesets": {
            "compute": {
                "replicas": replicas,
                "oversubscribeNode": True,
                "slurmd": roles["slurmd"],
                "logfile": own,
                "partition": {"enabled": True, "config": "Default=YES"},
            }
        },
    }


_JAIL_CONF = """ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
"""
"""Of a node without cgroups of version 2, and of images without PMIx."""


def slurmcluster_values(site: Site, images: Mapping[str, str], name: str) -> Json:
    """Values of the chart `slurm-cluster`: two workers, in the shape of 1.23.

    `images` are those of the jail by role. All else that a small node can have is the default.
    """
    resources: Json = {"cpu": "20m", "memory": "256Mi", "ephemeralStorage": "64Mi"}
    munge: Json = {"resources": {"cpu": "5m", "memory": "32Mi", "ephemeralStorage": "16Mi"}}
    return {
        "clusterName": name,
        "clusterType": "cpu",
        "k8sNodeFilters": [{"name": "cpu"}],
        "plugStackConfig": {"pyxis": {"required": False}},
        "customCgroupConfig": "CgroupPlugin=disabled",
        "customSlurmConfig": _JAIL_CONF,
        # The disk of the machine that runs the tests may be fuller than a node's should be.
        "slurmScripts": {"builtIn": {"boot_disk_full.sh": {"enabled": False}}},
        "images": {
            "slurmctld": images["jail-slurmctld"],
            "slurmd": images["jail-slurmd"],
            "sshd": images["jail-login"],
            "munge": images["munge"],
            "populateJail": images["populate-jail"],
            "sConfigController": site.images.operator,
            "soperatorExporter": site.images.operator,
        },
        "slurmNodes": {
            "controller": {"slurmctld": {"resources": resources}, "munge": munge},
            "worker": {
                "slurmd": {"resources": {**resources, "gpu": 0}},
                "munge": munge,
                "volumes": {"sharedMemorySize": "64Mi"},
            },
            "login": {
                "size": 1,
                "sshd": {"resources": resources},
                "munge": munge,
                "sshdServiceType": "NodePort",
                "sshdServiceNodePort": 30122,
            },
            "exporter": {"enabled": False},
            "rest": {"size": 1, "rest": {"resources": resources}},
        },
        "sConfigController": {"container": {"resources": resources}},
    }


def faulty(name: str) -> Json:
    """A NodeSet that only the webhook rejects, `spec.slurmd.env` being no list."""
    spec: Json = {"controllerRef": {"name": "absent"}, "replicas": 0, "slurmd": {"env": "A=b"}}
    return manifests.of("NodeSet", name, **spec)


def rejection(site: Site, namespace: str) -> str:
    """The answer to a faulty NodeSet, which is not stored; empty when it would be."""
    text = yaml.safe_dump(faulty("probe"))
    try:
        site.kubectl("apply", "-n", namespace, "--dry-run=server", "-f", "-", stdin=text)
    except LocalError as error:
        return str(error)
    return ""
